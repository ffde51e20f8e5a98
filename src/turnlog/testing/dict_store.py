"""A store over a dict, written from the port alone: docs/how-to/write-a-store.md walks through it."""

# ruff: noqa: D101, D102 - the port says what each operation guarantees

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain, count
from threading import RLock
from typing import Any, NamedTuple, Self

from turnlog.errors import SessionAlreadyExistsError, SessionNotFoundError, StoreClosedError
from turnlog.log.codec import decode, encode
from turnlog.log.event_filter import EventFilter
from turnlog.log.events import SessionEvent
from turnlog.log.queries import EventQuery, SearchPage, search_page
from turnlog.log.session import Session
from turnlog.log.tally import Tally, tally_of
from turnlog.log.tokens import TokenCounter, default_counter
from turnlog.storage import rules
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


class Record(NamedTuple):
    """A session and its log, a value: each operation makes a new one and puts it in place in its last step."""

    session: Session
    serial: int
    lease: rules.Lease = rules.Lease()
    batches: tuple[Batch, ...] = ()

    @property
    def version(self) -> int:
        return sum(map(len, self.batches))

    @property
    def place(self) -> str:
        return f"{self.session.created_at.isoformat(timespec='microseconds')} {self.serial:020}"


def copied(events: Iterable[SessionEvent]) -> EventList:
    """Events that share nothing with those given: what a caller does to one of them never reaches the log."""
    return [decode(*encode(event), SessionEvent) for event in events]


class DictStore:
    token_counter = default_counter()
    durability = Durability(False, False, "kept in this process, as long as it lives")

    def __init__(self, clock: Clock = lambda: datetime.now(UTC), indexed_metadata: Sequence[str] = ()) -> None:
        self.clock = clock
        self.indexed_metadata = rules.indexed_keys(indexed_metadata)
        self._lock = RLock()
        self._records: dict[str, Record] = {}
        self._serials = count()
        self._is_closed = False

    @contextmanager
    def _transaction(self) -> Generator[dict[str, Record]]:
        with self._lock:
            if self._is_closed:
                raise StoreClosedError("the store is closed")
            yield self._records

    def _find(self, session_id: str) -> Record | None:
        record = self._records.get(session_id)
        return None if record is None or rules.is_gone(record.session, record.lease, self.clock()) else record

    def _known(self, session_id: str) -> Record:
        if record := self._find(session_id):
            return record
        raise SessionNotFoundError(session_id)

    def _new(self, session: Session) -> Record:
        rules.indexed_values(session, self.indexed_metadata)
        return Record(session.replace(), next(self._serials))

    def create(self, session: Session) -> Session:
        with self._transaction() as records:
            if self._find(session.id):
                raise SessionAlreadyExistsError(session.id)
            records[session.id] = self._new(session)
            return session.replace()

    def find(self, session_id: str) -> Session | None:
        with self._transaction():
            record = self._find(session_id)
            return record.session.replace() if record else None

    def list(self, *, principal: str | None = None, **page: Any) -> SessionPage:
        return self._page(lambda session: principal in (None, session.principal), **page)

    def find_by_metadata(self, name: str, value: str, **page: Any) -> SessionPage:
        rules.check_indexed(name, value, self.indexed_metadata)
        return self._page(lambda session: session.metadata.get(name) == value, **page)

    def _page(
        self,
        is_chosen: Callable[[Session], bool],
        *,
        limit: int = DEFAULT_PAGE,
        cursor: str | None = None,
        newest_first: bool = False,
    ) -> SessionPage:
        with self._transaction() as records:
            found = [record for record in map(self._find, records) if record and is_chosen(record.session)]
        found.sort(key=lambda record: record.place, reverse=newest_first)
        if cursor is not None:
            found = [record for record in found if record.place != cursor and (record.place < cursor) == newest_first]
        sessions = tuple(record.session.replace() for record in found[:limit])
        return SessionPage(sessions, found[limit - 1].place if limit < len(found) else None)

    def update(self, session_id: str, change: SessionChange) -> Session:
        with self._transaction() as records:
            record = self._known(session_id)
            session = change.applied(record.session, self.clock())
            rules.indexed_values(session, self.indexed_metadata)
            records[session_id] = record._replace(session=session)
            return session.replace()

    def delete(self, session_id: str) -> bool:
        with self._transaction() as records:
            return self._find(session_id) is not None and bool(records.pop(session_id))

    def delete_expired(self, before: datetime, *, batch_size: int = 100) -> int:
        _ = batch_size  # under one lock, one step does
        with self._transaction() as records:
            gone = [name for name, kept in records.items() if not self._find(name) and kept.session.is_expired(before)]
            for session_id in gone:
                del records[session_id]
            return len(gone)

    def append(self, session_id: str, events: Sequence[SessionEvent], **conditions: Any) -> AppendResult:
        batch = rules.check_batch(session_id, events)
        with self._transaction() as records:
            records[session_id], result = self._appended(self._known(session_id), batch, **conditions)
            return result

    def _appended(
        self, record: Record, batch: Batch, *, expected_version: int | None = None, turn: Turn | None = None
    ) -> tuple[Record, AppendResult]:
        session, version, now = record.session, record.version, self.clock()
        ids = {event.id for event in batch}
        stored = {event.id: event for event in chain(*record.batches) if event.id in ids}
        if rules.is_replay(batch, stored):
            return record, AppendResult(tuple(copied(stored.values())), version, is_replay=True)
        rules.check_version(session.id, expected_version, version)
        lease = rules.lease_after(session.id, record.lease, turn, now, batch)
        rules.check_boundary(batch, version, rules.boundaries_of(record.batches))
        kept = copied(event.at(position) for position, event in enumerate(batch, version + 1))
        slid = session.replace(expires_at=rules.slid_expiry(session.expires_at, session.time_to_live, now))
        record = record._replace(session=slid, lease=lease, batches=(*record.batches, kept))
        return record, AppendResult(tuple(copied(kept)), record.version, is_replay=False)

    def restore(self, session: Session, batches: Iterable[Batch]) -> RestoreResult:
        with self._transaction() as records:
            record = self._find(session.id) or self._new(session)
            counts = {False: 0, True: 0}
            for events in batches:
                record, result = self._appended(record, rules.check_batch(session.id, events))
                counts[result.is_replay] += len(result.events)
            records[session.id] = record
            return RestoreResult(counts[False], counts[True], record.version)

    def fork(self, session_id: str, target: Session, *, at: int | None = None) -> int:
        with self._transaction() as records:
            source = self.iter_batches(self._known(session_id).session.id, as_of=at)
            self.create(target)
            copies = tuple([event.replace(session_id=target.id) for event in batch] for batch in source)
            records[target.id] = records[target.id]._replace(batches=copies)
            return records[target.id].version

    def iter_batches(self, session_id: str, *, as_of: int | None = None) -> Iterator[EventList]:
        with self._transaction():
            if (record := self._find(session_id)) is None:
                return iter(())
            version = rules.effective_version(session_id, as_of, record.version, 0)
            return iter([copied(batch) for batch in record.batches if (batch[-1].position or 0) <= version])

    def events(self, session_id: str, filter: EventFilter = EVERYTHING, *, as_of: int | None = None) -> EventList:
        return filter.apply(chain(*self.iter_batches(session_id, as_of=as_of)))

    def iter_events(
        self, session_id: str, filter: EventFilter = EVERYTHING, *, as_of: int | None = None, batch_size: int = 500
    ) -> Iterator[EventList]:
        found = self.events(session_id, filter, as_of=as_of)
        return (found[first : first + batch_size] for first in range(0, len(found), batch_size))

    def find_events(
        self, session_id: str, *, event_ids: Sequence[str] | None = None, run_id: str | None = None
    ) -> EventList:
        ids, runs = set(event_ids or ()), {run_id} - {None}
        return [event for event in self.events(session_id) if event.id in ids or event.run_id in runs]

    def count(self, session_id: str, filter: EventFilter = EVERYTHING, *, as_of: int | None = None) -> int:
        return len(self.events(session_id, filter, as_of=as_of))

    def search(self, session_id: str, query: EventQuery) -> SearchPage:
        return search_page(query, self.events(session_id, query.as_filter()))

    def version(self, session_id: str) -> int:
        with self._transaction():
            record = self._find(session_id)
            return record.version if record else 0

    def tally(self, session_id: str, counter: TokenCounter | None = None, known: Tally | None = None) -> Tally | None:
        _ = known  # to count all anew is slow, and right
        with self._transaction():
            record, log = self._find(session_id), self.events(session_id)
        view = EventFilter(active_view=True).apply(log)
        return tally_of(f"{record.serial}", log, view, counter or self.token_counter) if record else None

    def take_turn(self, session_id: str, turn: Turn) -> int:
        return self._lease(session_id, Turn(turn.token, turn.lease, take=True))

    def renew_turn(self, session_id: str, turn: Turn) -> None:
        self._lease(session_id, Turn(turn.token, turn.lease))

    def _lease(self, session_id: str, turn: Turn) -> int:
        with self._transaction() as records:
            record = self._known(session_id)
            lease = rules.lease_after(session_id, record.lease, turn, self.clock())
            records[session_id] = record._replace(lease=lease)
            return record.version

    def release_turn(self, session_id: str, token: str) -> bool:
        with self._transaction() as records:
            record = self._find(session_id)
            if record is None or record.lease.token != token:
                return False
            records[session_id] = record._replace(lease=rules.Lease())
            return True

    def close(self) -> None:
        self._is_closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self.close()
