"""How the tests bring a store into the state that they ask about, and look at all of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from turnlog.log.events import SessionEvent
from turnlog.log.session import Session
from turnlog.storage.protocol import AsyncSessionRepository, EventList
from turnlog.testing.contract.exactness import exactly
from turnlog.testing.factories import SESSION_ID, session


async def begun(
    repository: AsyncSessionRepository, *batches: Sequence[SessionEvent], of: Session | None = None
) -> EventList:
    """A session (``s`` unless it is given) with these batches; returns the log as stored."""
    made = session() if of is None else of
    await repository.create(made)
    log: EventList = []
    for batch in batches:
        log.extend((await repository.append(made.id, batch)).events)
    return log


async def drained(batches: AsyncIterator[EventList]) -> list[EventList]:
    """All that an iterator yields."""
    return [batch async for batch in batches]


async def state(repository: AsyncSessionRepository, session_id: str = SESSION_ID) -> Any:
    """Everything that can be seen of one session, for telling whether anything has changed."""
    return exactly(
        (
            await repository.find(session_id),
            await repository.version(session_id),
            await drained(repository.iter_batches(session_id)),
        )
    )
