"""What clear, rewind and expand read from a store before anything is decided (A-3, A-5)."""

from __future__ import annotations

from collections.abc import Sequence

from turnlog.errors import EventNotFoundError, InvalidValueError
from turnlog.log.event_filter import ANY_BRANCH, Branch, EventFilter
from turnlog.log.events import EventMetadata, SessionEvent
from turnlog.log.messages import SystemMessage
from turnlog.log.view import Range, positions_of, ranges_of
from turnlog.service import boundaries
from turnlog.storage.protocol import AsyncSessionRepository, EventList


async def boundary_for(
    repository: AsyncSessionRepository, session_id: str, strategy: str, target: int | None, newest: int
) -> SessionEvent:
    """The boundary behind version ``newest`` that makes the view that of version ``target``, or clears it for None."""
    before = await _ranges_of_view(repository, session_id, newest)
    if target is None:
        systems = await repository.events(session_id, boundaries.SYSTEM_MESSAGES, as_of=newest)
        kept = await system_in_force(repository, session_id, systems, ANY_BRANCH)
        after = ranges_of([] if kept is None else [kept.position or 0])
    else:
        boundaries.check_target(session_id, target, newest)
        after = await _ranges_of_view(repository, session_id, await _rewound(repository, session_id, target))
    branch = await _base_branch(repository, session_id)
    return boundaries.boundary_event(session_id, strategy, before, after, newest, branch)


async def system_in_force(
    repository: AsyncSessionRepository, session_id: str, events: Sequence[SessionEvent], branch: Branch
) -> SessionEvent | None:
    """Of the system messages among ``events`` the latest that ``branch`` sees, or the base branch for ANY_BRANCH (C-5).

    What a sub-agent was told on a branch of its own is no instruction to its caller.
    """
    systems = [event for event in events if isinstance(event.message, SystemMessage)]
    if branch is ANY_BRANCH and any(event.branch is not None for event in systems):
        branch = await _base_branch(repository, session_id)
    return boundaries.latest_seen(systems, branch)


async def _base_branch(repository: AsyncSessionRepository, session_id: str) -> str | None:
    """The branch of the first user message, on which boundaries lie too; root where there is none yet (V-5)."""
    first = await repository.events(session_id, boundaries.FIRST_USER_MESSAGE)
    return first[0].branch if first else None


async def _ranges_of_view(repository: AsyncSessionRepository, session_id: str, version: int) -> tuple[Range, ...]:
    newest = await repository.events(session_id, boundaries.NEWEST_BOUNDARY, as_of=version)
    return boundaries.view_ranges(newest, version)


async def _rewound(repository: AsyncSessionRepository, session_id: str, version: int) -> int:
    """The newest version up to ``version`` at which neither a batch nor a turn was in the middle."""
    while True:
        newest = await repository.events(session_id, boundaries.NEWEST, as_of=version)
        if not newest:
            return 0
        position = newest[0].position or 0
        turn = await repository.events(session_id, boundaries.NEWEST_TURN, as_of=position)
        following = await repository.events(session_id, boundaries.first_real_message_behind(position))
        start = boundaries.interrupted_turn(turn, following)
        if start is None:
            return position
        version = start - 1


async def covered_by(repository: AsyncSessionRepository, session_id: str, event_id: str) -> EventList:
    """The message events that left the view with the boundary that ``event_id`` is, or belongs to (A-2)."""
    boundary = await _boundary(repository, session_id, event_id)
    kept = {*positions_of(boundaries.boundary_of(boundary).view)}
    version = (boundary.position or 1) - 1
    before = await repository.events(session_id, EventFilter.active(), as_of=version)
    return [event for event in before if event.position not in kept]


async def _boundary(repository: AsyncSessionRepository, session_id: str, event_id: str) -> SessionEvent:
    found = await repository.find_events(session_id, event_ids=[event_id])
    if not found:
        raise EventNotFoundError(session_id, repr(event_id))
    if found[0].is_boundary:
        return found[0]
    boundary_id = found[0].metadata.get(EventMetadata.BOUNDARY) if found[0].is_synthetic else None
    if not isinstance(boundary_id, str):
        raise InvalidValueError(f"event {event_id!r} is no boundary and belongs to no summary: it covers nothing")
    return await _boundary(repository, session_id, boundary_id)
