"""What a strategy decides: a plan for the new view, or that it needs a summary first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from turnlog.log.events import SessionEvent
from turnlog.log.messages import Message

if TYPE_CHECKING:
    from turnlog.compaction.request import CompactionRequest
    from turnlog.compaction.summary import SummaryRequest


class Summary(Struct, frozen=True):
    """What a summariser returns: the text, and what it cost where that is known."""

    text: str
    model: str | None = None
    usage: dict[str, Any] | None = None


class CompactionPlan(Struct, frozen=True, kw_only=True):
    """The new view of a compaction: ``pinned``, then the summary if there is one, then ``preserved``.

    Both hold events of the view that was asked about; whatever they leave out is covered. An empty ``reason`` marks a
    plan to carry out; else nothing is to be done, and the reason says why.
    """

    strategy: str
    pinned: tuple[SessionEvent, ...] = ()
    preserved: tuple[SessionEvent, ...] = ()
    summary: Summary | None = None
    reason: str = ""


class SummaryNeeded(Struct, frozen=True):
    """A strategy's request for a model call; ``resume`` takes the summary and goes on (C-3)."""

    request: SummaryRequest
    summarize: Summarize
    resume: Callable[[Summary], Outcome]


Outcome: TypeAlias = CompactionPlan | SummaryNeeded
Strategy: TypeAlias = Callable[["CompactionRequest"], Outcome]
#: Any callable that makes a summary, sync or async; a plain string stands for its text.
Summarize: TypeAlias = Callable[["SummaryRequest"], "str | Summary | Awaitable[str | Summary]"]


class CompactionResult(Struct, frozen=True, kw_only=True):
    """What a compaction did. Unchanged: nothing was written, and ``reason`` says why.

    ``tokens_estimated_saved`` is net of the summary. Usage and model are the summariser's, all its calls together.
    """

    is_unchanged: bool
    reason: str = ""
    covered_events: tuple[SessionEvent, ...] = ()
    pinned_events: tuple[SessionEvent, ...] = ()
    preserved_events: tuple[SessionEvent, ...] = ()
    summary: tuple[Message, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0
    boundary: SessionEvent | None = None
    model: str | None = None
    usage: dict[str, Any] | None = None

    @property
    def tokens_estimated_saved(self) -> int:
        """The tokens that the view lost; 0 when unchanged."""
        return 0 if self.is_unchanged else self.tokens_before - self.tokens_after
