"""The memory store behind the protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime
from types import TracebackType
from typing import Self

from msgspec.structs import replace

from turnlog.log.event_filter import EventFilter
from turnlog.log.events import SessionEvent
from turnlog.log.names import check_name
from turnlog.log.queries import EventQuery, SearchPage, search_page
from turnlog.log.session import Session, SessionAttributes
from turnlog.log.tally import Tally
from turnlog.log.tokens import TokenCounter, default_counter
from turnlog.log.windows import check_count
from turnlog.storage.changes import SessionChange
from turnlog.storage.memory.logs import MemoryLogs
from turnlog.storage.protocol import (
    DEFAULT_PAGE,
    EVERYTHING,
    AppendResult,
    Batch,
    Clock,
    Durability,
    EventList,
    RestoreResult,
    SessionPage,
    Turn,
)
from turnlog.storage.rules import check_indexed


class AsyncMemoryRepository:
    """An ``AsyncSessionRepository`` in memory. Its lock is held for moments only, so no call waits long."""

    def __init__(
        self, clock: Clock, indexed_metadata: Sequence[str] = (), token_counter: TokenCounter | None = None
    ) -> None:
        self._logs = MemoryLogs(clock, tuple(indexed_metadata))
        self._counter = default_counter() if token_counter is None else token_counter

    @property
    def clock(self) -> Clock:
        """The clock that expiry and turns go by."""
        return self._logs.clock

    @property
    def durability(self) -> Durability:
        """Nothing survives the process."""
        return Durability(False, False, "for tests: everything is gone with the process")

    @property
    def indexed_metadata(self) -> tuple[str, ...]:
        """The indexed keys."""
        return self._logs.indexed

    @property
    def token_counter(self) -> TokenCounter:
        """The counter of ``tally``; no counts are kept."""
        return self._counter

    async def create(self, session: Session) -> Session:
        """See the protocol."""
        return self._logs.create(session)

    async def find(self, session_id: str) -> Session | None:
        """See the protocol."""
        return self._logs.find(session_id)

    async def list(
        self,
        *,
        principal: str | None = None,
        limit: int = DEFAULT_PAGE,
        cursor: str | None = None,
        newest_first: bool = False,
    ) -> SessionPage:
        """See the protocol."""
        owner = None if principal is None else check_name("principal", principal)
        attribute = None if owner is None else (SessionAttributes.PRINCIPAL_NAME, owner)
        return self._logs.page(attribute, limit, cursor, newest_first)

    async def find_by_metadata(
        self, name: str, value: str, *, limit: int = DEFAULT_PAGE, cursor: str | None = None, newest_first: bool = False
    ) -> SessionPage:
        """See the protocol."""
        attribute = (name, check_indexed(name, value, self._logs.indexed))
        return self._logs.page(attribute, limit, cursor, newest_first)

    async def update(self, session_id: str, change: SessionChange) -> Session:
        """See the protocol."""
        return self._logs.update(session_id, change)

    async def delete(self, session_id: str) -> bool:
        """See the protocol."""
        return self._logs.delete(session_id)

    async def delete_expired(self, before: datetime, *, batch_size: int = 100) -> int:
        """See the protocol."""
        return self._logs.delete_expired(before, batch_size)

    async def append(
        self,
        session_id: str,
        events: Sequence[SessionEvent],
        *,
        expected_version: int | None = None,
        turn: Turn | None = None,
    ) -> AppendResult:
        """See the protocol."""
        return self._logs.append(session_id, events, expected_version, turn)

    async def restore(self, session: Session, batches: Iterable[Batch]) -> RestoreResult:
        """See the protocol."""
        return self._logs.restore(session, batches)

    async def fork(self, session_id: str, target: Session, *, at: int | None = None) -> int:
        """See the protocol."""
        return self._logs.fork(session_id, target, at)

    async def events(self, session_id: str, filter: EventFilter = EVERYTHING, *, as_of: int | None = None) -> EventList:
        """See the protocol."""
        return self._logs.events(session_id, filter, as_of)

    async def iter_events(
        self, session_id: str, filter: EventFilter = EVERYTHING, *, as_of: int | None = None, batch_size: int = 500
    ) -> AsyncIterator[EventList]:
        """See the protocol."""
        check_count("batch_size", batch_size, least=1)
        found = self._logs.events(session_id, filter, as_of)
        for start in range(0, len(found), batch_size):
            yield found[start : start + batch_size]

    async def iter_batches(self, session_id: str, *, as_of: int | None = None) -> AsyncIterator[EventList]:
        """See the protocol."""
        for batch in self._logs.batches(session_id, as_of):
            yield batch

    async def find_events(
        self, session_id: str, *, event_ids: Sequence[str] | None = None, run_id: str | None = None
    ) -> EventList:
        """See the protocol."""
        return self._logs.find_events(session_id, event_ids, run_id)

    async def count(self, session_id: str, filter: EventFilter = EVERYTHING, *, as_of: int | None = None) -> int:
        """See the protocol."""
        return len(self._logs.events(session_id, filter, as_of))

    async def search(self, session_id: str, query: EventQuery) -> SearchPage:
        """See the protocol."""
        return search_page(query, self._logs.events(session_id, query.as_filter(), None))

    async def version(self, session_id: str) -> int:
        """See the protocol."""
        return self._logs.version(session_id)

    async def tally(
        self, session_id: str, counter: TokenCounter | None = None, known: Tally | None = None
    ) -> Tally | None:
        """See the protocol."""
        _ = known  # it would save nothing here
        return self._logs.tally(session_id, self._counter if counter is None else counter)

    async def take_turn(self, session_id: str, turn: Turn) -> int:
        """See the protocol."""
        return self._logs.hold_turn(session_id, replace(turn, take=True))

    async def renew_turn(self, session_id: str, turn: Turn) -> None:
        """See the protocol."""
        self._logs.hold_turn(session_id, replace(turn, take=False))

    async def release_turn(self, session_id: str, token: str) -> bool:
        """See the protocol."""
        return self._logs.release_turn(session_id, token)

    async def close(self) -> None:
        """See the protocol."""
        self._logs.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
