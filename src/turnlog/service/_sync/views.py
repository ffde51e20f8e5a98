# Generated from src/turnlog/service/_async/views.py by tools/unasync.py: edit that file, then run `make generate`.
"""What clear, rewind and expand read from a store before anything is decided (A-3, A-5)."""

from __future__ import annotations

from turnlog.errors import EventNotFoundError, InvalidValueError
from turnlog.log.event_filter import EventFilter
from turnlog.log.events import EventMetadata, SessionEvent
from turnlog.log.view import Range, positions_of
from turnlog.service import boundaries
from turnlog.storage.protocol import EventList, SessionRepository


def boundary_for(
    repository: SessionRepository, session_id: str, strategy: str, target: int | None, newest: int
) -> SessionEvent:
    """The boundary behind version ``newest`` that makes the view that of version ``target``, or empty where it is None."""
    before = _ranges_of_view(repository, session_id, newest)
    if target is None:
        systems = repository.events(session_id, boundaries.SYSTEM_MESSAGES, as_of=newest)
        after = boundaries.kept_by_clear(systems)
    else:
        boundaries.check_target(session_id, target, newest)
        after = _ranges_of_view(repository, session_id, _rewound(repository, session_id, target))
    # Boundaries lie on the base branch, which is that of the first user message (V-5).
    first = repository.events(session_id, boundaries.FIRST_USER_MESSAGE)
    branch = first[0].branch if first else None
    return boundaries.boundary_event(session_id, strategy, before, after, newest, branch)


def _ranges_of_view(repository: SessionRepository, session_id: str, version: int) -> tuple[Range, ...]:
    newest = repository.events(session_id, boundaries.NEWEST_BOUNDARY, as_of=version)
    return boundaries.view_ranges(newest, version)


def _rewound(repository: SessionRepository, session_id: str, version: int) -> int:
    """The newest version up to ``version`` at which neither a batch nor a turn was in the middle."""
    while True:
        newest = repository.events(session_id, boundaries.NEWEST, as_of=version)
        if not newest:
            return 0
        position = newest[0].position or 0
        turn = repository.events(session_id, boundaries.NEWEST_TURN, as_of=position)
        following = repository.events(session_id, boundaries.first_real_message_behind(position))
        start = boundaries.interrupted_turn(turn, following)
        if start is None:
            return position
        version = start - 1


def covered_by(repository: SessionRepository, session_id: str, event_id: str) -> EventList:
    """The message events that left the view with the boundary that ``event_id`` is, or belongs to (A-2)."""
    boundary = _boundary(repository, session_id, event_id)
    kept = {*positions_of(boundaries.boundary_of(boundary).view)}
    version = (boundary.position or 1) - 1
    before = repository.events(session_id, EventFilter.active(), as_of=version)
    return [event for event in before if event.position not in kept]


def _boundary(repository: SessionRepository, session_id: str, event_id: str) -> SessionEvent:
    found = repository.find_events(session_id, event_ids=[event_id])
    if not found:
        raise EventNotFoundError(session_id, repr(event_id))
    if found[0].is_boundary:
        return found[0]
    boundary_id = found[0].metadata.get(EventMetadata.BOUNDARY) if found[0].is_synthetic else None
    if not isinstance(boundary_id, str):
        raise InvalidValueError(f"event {event_id!r} is no boundary and belongs to no summary: it covers nothing")
    return _boundary(repository, session_id, boundary_id)
