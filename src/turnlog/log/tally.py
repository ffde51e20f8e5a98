"""Tallies: running sums over a session's view, so that a trigger costs what is new (C-2, C-9)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from turnlog.log.events import SessionEvent
from turnlog.log.messages import UserMessage
from turnlog.log.tokens import TokenCounter, message_tokens
from turnlog.log.turns import turn_starts


class Tally(Struct, frozen=True):
    """The sums of a view at ``version``, behind the boundary at ``boundary`` (0: none).

    ``turns`` counts real turns, ``tokens`` the messages of the base branch. ``log`` tells this log from any other
    that ever had the session's id: sums of one are never carried on with another.
    """

    log: str
    version: int
    boundary: int
    turns: int
    tokens: int

    def goes_on_in(self, log: str, version: int, boundary: int) -> bool:
        """Whether the sums at ``version`` are these and what was appended since: same log, same view."""
        return self.log == log and self.boundary == boundary and self.version <= version


def tally_of(log: str, events: Sequence[SessionEvent], view: Sequence[SessionEvent], counter: TokenCounter) -> Tally:
    """The tally of a whole log held as a list, and of its view: the reference for stores that keep counts."""
    starts = {event.position for event, start in zip(events, turn_starts(events), strict=True) if start}
    boundary = next((event.position or 0 for event in reversed(events) if event.is_boundary), 0)
    base = base_branch(events)
    return Tally(
        log=log,
        version=len(events),
        boundary=boundary,
        turns=sum(event.position in starts for event in view),
        tokens=sum(
            message_tokens(event.message, counter)
            for event in view
            if event.message is not None and event.branch == base
        ),
    )


def base_branch(events: Sequence[SessionEvent]) -> str | None:
    """The branch of the first user message, which is root where there is none yet (V-5)."""
    first = next((event for event in events if isinstance(event.message, UserMessage) and not event.is_synthetic), None)
    return None if first is None else first.branch
