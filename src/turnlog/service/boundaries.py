"""What clear and rewind write, and what they read for it, as pure functions (A-5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from turnlog.errors import UnreadableDataError, VersionOutOfRangeError
from turnlog.log.event_filter import Branch, EventFilter
from turnlog.log.events import EventType, SessionEvent
from turnlog.log.messages import MessageType, UserMessage
from turnlog.log.turns import TurnState
from turnlog.log.view import Boundary, BoundaryError, Range, read_boundary, segments, without
from turnlog.log.windows import Window

#: The newest event whatever it is; with whole turns, its turn from the start.
NEWEST: Final = EventFilter.last(1, whole_turns=False)
NEWEST_TURN: Final = EventFilter.last(1)
NEWEST_BOUNDARY: Final = EventFilter(event_types={EventType.COMPACTION}, window=Window.last(1, whole_turns=False))
FIRST_USER_MESSAGE: Final = EventFilter(
    message_types={MessageType.USER}, exclude_synthetic=True, window=Window.page(0, 1)
)
#: The system messages of the view, of which one is in force.
SYSTEM_MESSAGES: Final = EventFilter.active().merge(EventFilter(message_types={MessageType.SYSTEM}))


def check_target(session_id: str, version: int, newest: int) -> None:
    """Refuse to rewind to what is no version of the log."""
    if not 0 <= version <= newest:
        raise VersionOutOfRangeError(session_id, version, newest)


def first_real_message_behind(position: int) -> EventFilter:
    """The first message behind ``position`` that no compaction wrote."""
    return EventFilter.real_only().replace(after=position, window=Window.page(0, 1))


def interrupted_turn(turn: Sequence[SessionEvent], following: Sequence[SessionEvent]) -> int | None:
    """The start of ``turn``, the newest one up to some version, if the message that follows still belongs to it.

    ``turn`` holds all its events up to that version; in the preamble it holds one that is no user message.
    """
    first = turn[0]
    if not isinstance(first.message, UserMessage) or first.is_synthetic or not following:
        return None
    state = TurnState(base=first.branch or "")
    for event in turn:
        state = state.after(event)
    goes_on = state.after(following[0]).turns == state.turns
    return first.position if goes_on else None


def view_ranges(boundaries: Sequence[SessionEvent], version: int) -> tuple[Range, ...]:
    """The view at ``version``, given the newest boundary up to there (or none)."""
    if not boundaries:
        return segments(None, version)
    return segments(boundary_of(boundaries[0]), version)


def boundary_of(event: SessionEvent) -> Boundary:
    """What a stored boundary says."""
    try:
        return read_boundary(event.payload, event.position or 0)
    except BoundaryError as error:
        raise UnreadableDataError(event.session_id, event.position, str(error)) from error


def latest_seen(events: Sequence[SessionEvent], branch: Branch) -> SessionEvent | None:
    """The latest of ``events`` by position, wherever it stands in the view, that an agent on ``branch`` sees (F-7)."""
    seen = EventFilter(branch=branch)
    return max(filter(seen.matches, events), key=lambda event: event.position or 0, default=None)


def boundary_event(
    session_id: str, strategy: str, before: Sequence[Range], after: Sequence[Range], version: int, branch: str | None
) -> SessionEvent:
    """A boundary behind ``version`` that turns the view ``before`` into ``after``."""
    gone = without(before, after)
    covered = (min(low for low, _ in gone), max(high for _, high in gone)) if gone else None
    boundary = Boundary(view=tuple(after), end=version + 1, strategy=strategy, covered=covered)
    return SessionEvent(session_id=session_id, type=EventType.COMPACTION, payload=boundary.payload(), branch=branch)
