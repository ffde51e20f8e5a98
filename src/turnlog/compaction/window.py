"""``WindowCompactionStrategy``: keep the newest turns, cover the rest (C-3, C-4)."""

from __future__ import annotations

from msgspec import Struct

from turnlog.compaction.plan import CompactionPlan
from turnlog.compaction.request import CompactionRequest, EventSequence, is_pending
from turnlog.errors import InvalidValueError
from turnlog.log.events import SessionEvent
from turnlog.log.windows import check_count


class Cut(Struct, frozen=True):
    """Where a view is cut: the turns that stay and the events that go; ``reason`` says why nothing goes."""

    kept: tuple[EventSequence, ...]
    covered: EventSequence
    reason: str = ""

    @property
    def preserved(self) -> EventSequence:
        """The events of the turns that stay."""
        return tuple(event for turn in self.kept for event in turn)


class WindowCompactionStrategy(Struct, frozen=True, kw_only=True):
    """Keeps the newest ``last_turns`` turns, or ``last_events`` events, or ``max_tokens`` tokens; exactly one is given.

    A cut falls on a turn start only: one that lands inside a turn moves forward to the next start, or back to the
    last. The newest turn stays whole whatever its size, and so does an earlier one with a call marked pending. The
    system message in force, the preamble and an earlier summary are pinned, and count towards ``max_tokens``.
    """

    last_turns: int | None = None
    last_events: int | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in self.__struct_fields__ if getattr(self, name) is not None}
        if len(given) != 1:
            raise InvalidValueError("give exactly one of last_turns, last_events, max_tokens")
        for name, value in given.items():
            check_count(name, value, least=1)

    def __call__(self, request: CompactionRequest) -> CompactionPlan:
        """The plan: what is pinned and preserved."""
        parts = request.parts
        cut = self.cut(request, pinned_tokens=request.tokens_of((*parts.system, *parts.preamble, *parts.summary)))
        if cut.reason:
            return CompactionPlan(strategy="window", reason=cut.reason)
        pinned = (*parts.system, *parts.preamble, *parts.summary)
        return CompactionPlan(strategy="window", pinned=pinned, preserved=cut.preserved)

    def cut(self, request: CompactionRequest, *, pinned_tokens: int) -> Cut:
        """Where the view is cut, ``pinned_tokens`` of a token budget being spoken for."""
        turns = request.parts.turns
        if not turns:
            return Cut((), (), "the view holds no turn")
        first = self._first_kept(request, turns, pinned_tokens)
        covered = [turn for turn in turns[:first] if not is_pending(turn)]
        if not covered:
            why = "the newest turn alone is kept whole, whatever its size" if len(turns) == 1 else "the view fits"
            return Cut(turns, (), why)
        kept = tuple(turn for index, turn in enumerate(turns) if index >= first or is_pending(turn))
        return Cut(kept, tuple(event for turn in covered for event in turn))

    def _first_kept(self, request: CompactionRequest, turns: tuple[EventSequence, ...], pinned_tokens: int) -> int:
        """The index of the oldest turn inside the window; the newest turn at the latest."""
        if self.last_turns is not None:
            return max(0, len(turns) - self.last_turns)
        room = self.last_events if self.last_events is not None else (self.max_tokens or 0) - pinned_tokens
        first = len(turns)
        for turn in reversed(turns):
            room -= _messages(turn) if self.last_events is not None else request.tokens_of(turn)
            if room < 0:
                break
            first -= 1
        return min(first, len(turns) - 1)


def _messages(turn: tuple[SessionEvent, ...]) -> int:
    return sum(event.is_message for event in turn)
