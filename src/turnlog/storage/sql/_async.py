"""The repository over a driver: checks what comes in, makes the plan, and has it run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Final, Self

from turnlog.errors import (
    AppendOutcomeUnknownError,
    InvalidValueError,
    SessionBusyError,
    SessionNotFoundError,
    StoreError,
    VersionConflictError,
)
from turnlog.log.event_filter import EventFilter
from turnlog.log.events import SessionEvent, as_utc
from turnlog.log.names import check_name
from turnlog.log.queries import EventQuery, SearchPage, search_page
from turnlog.log.session import Session, SessionAttributes
from turnlog.log.tally import Tally
from turnlog.log.tokens import TokenCounter, default_counter
from turnlog.log.windows import check_count
from turnlog.storage.changes import SessionChange
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
from turnlog.storage.rules import check_batch, check_indexed, indexed_keys
from turnlog.storage.sql.driver import AsyncDriver, CommitFailedError
from turnlog.storage.sql.plans import appending, at_once, finding, indexing, iterating, reading, sessions, tallying
from turnlog.storage.sql.plans.plan import Plan, StoreSettings

#: How often an append is made again on a server where its commit was lost and has stored nothing.
_MOST_LOST_COMMITS: Final = 3


class AsyncSqlRepository:
    """An ``AsyncSessionRepository`` on an SQL engine. Make one with ``turnlog.open_async_store``."""

    def __init__(
        self,
        driver: AsyncDriver,
        clock: Clock,
        indexed_metadata: Sequence[str] = (),
        token_counter: TokenCounter | None = None,
    ) -> None:
        self._driver = driver
        self._clock = clock
        self._wanted = tuple(indexed_metadata)
        self._counter = default_counter() if token_counter is None else token_counter
        self._settings: StoreSettings | None = None
        self._boundaries = reading.BoundaryCache()

    @property
    def clock(self) -> Clock:
        """The clock that expiry and turns go by."""
        return self._clock

    @property
    def durability(self) -> Durability:
        """What may be claimed (R-15)."""
        return self._driver.durability()

    @property
    def indexed_metadata(self) -> tuple[str, ...]:
        """The indexed keys; complete once the store has been used."""
        return indexed_keys(self._wanted) if self._settings is None else self._settings.indexed

    def _now(self) -> datetime:
        return as_utc(self._clock(), "the clock's time")

    @property
    def token_counter(self) -> TokenCounter:
        """The counter whose counts are kept beside the events (C-9)."""
        return self._counter

    async def open(self) -> StoreSettings:
        """Connect, and make sure of the index; happens by itself on first use."""
        if self._settings is None:
            # Nearly always there is nothing to write, and then opening waits for no writer.
            indexed = await self._driver.read(indexing.read_keys)
            if not {*self._wanted} <= {*indexed}:
                indexed = await self._driver.write(lambda _: indexing.add_keys(self._wanted))
            self._settings = StoreSettings(indexed, self._counter)
        return self._settings

    async def create(self, session: Session) -> Session:
        """See the protocol."""
        settings = await self.open()
        await self._driver.write(lambda _: sessions.create(session, settings, self._now()))
        return session

    async def find(self, session_id: str) -> Session | None:
        """See the protocol."""
        check_name("session id", session_id)
        return await self._driver.read(lambda: sessions.find(session_id, self._now()))

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
        return await self._driver.read(
            lambda: sessions.list_sessions(attribute, limit, cursor, newest_first, self._now())
        )

    async def find_by_metadata(
        self, name: str, value: str, *, limit: int = DEFAULT_PAGE, cursor: str | None = None, newest_first: bool = False
    ) -> SessionPage:
        """See the protocol."""
        settings = await self.open()
        attribute = (name, check_indexed(name, value, settings.indexed))
        return await self._driver.read(
            lambda: sessions.list_sessions(attribute, limit, cursor, newest_first, self._now())
        )

    async def update(self, session_id: str, change: SessionChange) -> Session:
        """See the protocol."""
        check_name("session id", session_id)
        _ = await self.open()
        return await self._driver.write(lambda _: sessions.update(session_id, change, self._now()))

    async def delete(self, session_id: str) -> bool:
        """See the protocol."""
        check_name("session id", session_id)
        return await self._driver.write(lambda _: sessions.delete(session_id, self._now()))

    async def delete_expired(self, before: datetime, *, batch_size: int = 100) -> int:
        """See the protocol."""
        limit, moment = check_count("batch_size", batch_size, least=1), as_utc(before, "before")
        total = 0
        while removed := await self._driver.write(lambda _: sessions.delete_expired(moment, self._now(), limit)):
            total += removed
        return total

    async def append(
        self,
        session_id: str,
        events: Sequence[SessionEvent],
        *,
        expected_version: int | None = None,
        turn: Turn | None = None,
    ) -> AppendResult:
        """See the protocol."""
        check_name("session id", session_id)
        if expected_version is not None:
            check_count("expected_version", expected_version, least=0)
        batch = check_batch(session_id, events)
        settings = await self.open()
        may_be_stored = False
        if self._driver.changes_at_once and at_once.fits(batch, expected_version, turn):
            try:
                stored = await self._driver.write_at_once(
                    lambda: at_once.append(session_id, batch[0], expected_version, settings, self._now())
                )
            except CommitFailedError:
                may_be_stored = True
            else:
                if stored is not None:
                    return stored
        return await self._append(session_id, batch, expected_version, turn, settings, may_be_stored=may_be_stored)

    async def _append(
        self,
        session_id: str,
        batch: tuple[SessionEvent, ...],
        expected_version: int | None,
        turn: Turn | None,
        settings: StoreSettings,
        *,
        may_be_stored: bool,
    ) -> AppendResult:
        """Append in a transaction; ``may_be_stored`` when an attempt at once gave no answer."""
        target, can_change = appending.Target(), self._driver.changes_at_once

        def plan(attempt: int) -> Plan[AppendResult]:
            # Where there was an attempt at once, something has kept it from being stored: mostly, that it is.
            look_first = attempt > 0 or may_be_stored or (can_change and len(batch) == 1)
            return appending.append(
                session_id,
                batch,
                expected_version,
                turn,
                settings,
                self._now(),
                look_first=look_first,
                target=target,
                at_once=can_change,
            )

        ids = tuple(event.id for event in batch)
        try:
            for left in reversed(range(_MOST_LOST_COMMITS if can_change else 1)):
                try:
                    return await self._driver.write(plan)
                except CommitFailedError as failed:
                    settled = await self._settle(session_id, target.key, batch, failed)
                    if settled is not None:
                        return settled
                    if not left:
                        raise failed.cause  # noqa: B904 - it has the driver's error for its cause
        except (StoreError, SessionNotFoundError, SessionBusyError, VersionConflictError) as error:
            # The attempt that gave no answer may have been stored and deleted since, perhaps with a new session under
            # the id, or may yet come through.
            if may_be_stored:
                raise AppendOutcomeUnknownError(session_id, ids) from error
            raise
        raise AssertionError

    async def _settle(self, session_id: str, key: int, batch: Batch, failed: CommitFailedError) -> AppendResult | None:
        """The answer to a commit is lost: look the ids up once (R-14). None where nothing was stored."""
        try:
            stored = await self._driver.settle(lambda: finding.settle(session_id, key, batch, self._now()))
        except (StoreError, SessionNotFoundError) as error:
            raise AppendOutcomeUnknownError(session_id, tuple(event.id for event in batch)) from error
        if stored is None:
            return None
        decided = failed.decided
        # Where this call would have put them, it is this call that has stored them.
        is_own = isinstance(decided, AppendResult) and not decided.is_replay and decided.events == stored.events
        return AppendResult(stored.events, stored.version, is_replay=not is_own)

    async def restore(self, session: Session, batches: Iterable[Batch]) -> RestoreResult:
        """See the protocol."""
        settings = await self.open()
        source = appending.Source(batches)
        return await self._driver.write(
            lambda attempt: appending.restore_once(session, source, settings, self._now(), attempt)
        )

    async def fork(self, session_id: str, target: Session, *, at: int | None = None) -> int:
        """See the protocol."""
        check_name("session id", session_id)
        settings = await self.open()
        return await self._driver.write(lambda _: appending.fork(session_id, target, at, settings, self._now()))

    async def events(self, session_id: str, filter: EventFilter = EVERYTHING, *, as_of: int | None = None) -> EventList:
        """See the protocol."""
        check_name("session id", session_id)
        if self._driver.changes_at_once and as_of is None and at_once.reads(filter):
            return await self._driver.read(lambda: at_once.newest(session_id, filter.window, self._now()))
        return await self._driver.read(lambda: reading.events(session_id, filter, as_of, self._now(), self._boundaries))

    async def iter_events(
        self, session_id: str, filter: EventFilter = EVERYTHING, *, as_of: int | None = None, batch_size: int = 500
    ) -> AsyncIterator[EventList]:
        """See the protocol."""
        check_name("session id", session_id)
        walk = iterating.Walk(session_id, filter, as_of, check_count("batch_size", batch_size, least=1))
        while not walk.is_done:
            found, walk = await self._driver.read(partial(self._step, walk))
            if found:
                yield found

    def _step(self, walk: iterating.Walk) -> Plan[iterating.Step]:
        return iterating.step(walk, self._now(), self._boundaries)

    async def iter_batches(self, session_id: str, *, as_of: int | None = None) -> AsyncIterator[EventList]:
        """See the protocol."""
        check_name("session id", session_id)
        walk = iterating.BatchWalk(session_id, as_of)
        while not walk.is_done:
            batches, walk = await self._driver.read(partial(self._step_batches, walk))
            for batch in batches:
                yield batch

    def _step_batches(self, walk: iterating.BatchWalk) -> Plan[iterating.BatchStep]:
        return iterating.step_batches(walk, self._now())

    async def find_events(
        self, session_id: str, *, event_ids: Sequence[str] | None = None, run_id: str | None = None
    ) -> EventList:
        """See the protocol."""
        check_name("session id", session_id)
        if (event_ids is None) == (run_id is None):
            raise InvalidValueError("find_events takes event_ids or run_id, one of the two")
        return await self._driver.read(lambda: finding.find_events(session_id, event_ids, run_id, self._now()))

    async def count(self, session_id: str, filter: EventFilter = EVERYTHING, *, as_of: int | None = None) -> int:
        """See the protocol."""
        check_name("session id", session_id)
        return await self._driver.read(
            lambda: reading.count_events(session_id, filter, as_of, self._now(), self._boundaries)
        )

    async def search(self, session_id: str, query: EventQuery) -> SearchPage:
        """See the protocol."""
        return search_page(query, await self.events(session_id, query.as_filter()))

    async def version(self, session_id: str) -> int:
        """See the protocol."""
        check_name("session id", session_id)
        return await self._driver.read(lambda: finding.version(session_id, self._now()))

    async def tally(
        self, session_id: str, counter: TokenCounter | None = None, known: Tally | None = None
    ) -> Tally | None:
        """See the protocol."""
        check_name("session id", session_id)
        by = self._counter if counter is None else counter
        counted = await self._driver.read(lambda: tallying.tally(session_id, by, known, self._now(), self._boundaries))
        if counted is not None and counted.made:
            await self._driver.write(lambda _: tallying.keep(counted))
        return None if counted is None else counted.tally

    async def take_turn(self, session_id: str, turn: Turn) -> int:
        """See the protocol."""
        check_name("session id", session_id)
        return await self._driver.write(lambda _: appending.take_turn(session_id, turn, self._now()))

    async def renew_turn(self, session_id: str, turn: Turn) -> None:
        """See the protocol."""
        check_name("session id", session_id)
        await self._driver.write(lambda _: appending.renew_turn(session_id, turn, self._now()))

    async def release_turn(self, session_id: str, token: str) -> bool:
        """See the protocol."""
        check_name("session id", session_id)
        return await self._driver.write(lambda _: appending.release_turn(session_id, token, self._now()))

    async def fill_index(self, key: str) -> int:
        """Index all sessions by a further metadata key, from now on; returns how many have a value under it (V-2)."""
        filled, indexed = await self._driver.write(lambda _: indexing.fill(check_name("an indexed key", key)))
        self._settings = StoreSettings(indexed, self._counter)
        return filled

    async def close(self) -> None:
        """See the protocol."""
        await self._driver.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
