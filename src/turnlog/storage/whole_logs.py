"""Every operation of a store over a ``RecordKeeper``, by reading and writing whole logs (docs/how-to/write-a-store.md).

Each operation reads records, decides, and puts a new record in place in its last step: so each is whole or absent, and
a keeper has nothing to undo. Reading is ``EventFilter.apply``.
"""

# ruff: noqa: D102 - the port says what each operation guarantees

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import chain
from typing import Self

from turnlog.errors import (
    AppendOutcomeUnknownError,
    InvalidBatchError,
    InvalidValueError,
    SessionAlreadyExistsError,
    SessionNotFoundError,
    StoreClosedError,
    StoreUnavailableError,
)
from turnlog.log.codec import decode, encode
from turnlog.log.event_filter import EventFilter
from turnlog.log.events import SessionEvent, as_utc
from turnlog.log.names import check_name
from turnlog.log.queries import EventQuery, SearchPage, search_page
from turnlog.log.session import Session
from turnlog.log.tally import Tally, tally_of
from turnlog.log.tokens import TokenCounter, default_counter
from turnlog.log.windows import check_count
from turnlog.storage import forking, rules
from turnlog.storage.changes import SessionChange
from turnlog.storage.opening import system_clock
from turnlog.storage.protocol import (
    DEFAULT_PAGE,
    EVERYTHING,
    AppendResult,
    Batch,
    Clock,
    Durability,
    EventList,
    RecordKeeper,
    RestoreResult,
    SessionPage,
    Turn,
)
from turnlog.storage.records import SessionRecord

_CURSOR = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00 \d{20}")


def place_of(record: SessionRecord) -> str:
    """Where the session stands in a listing, as text that sorts so: what a cursor says."""
    return f"{record.session.created_at.isoformat(timespec='microseconds')} {record.serial:020}"


def copied(events: Iterable[SessionEvent]) -> EventList:
    """Events that share nothing with those given: what a caller does to one of them never reaches the log."""
    return [decode(*encode(event), SessionEvent) for event in events]


class WholeLogRepository:
    """A ``SessionRepository`` of what the keeper keeps. It is closed with the store."""

    def __init__(
        self,
        keeper: RecordKeeper,
        clock: Clock = system_clock,
        indexed_metadata: Sequence[str] = (),
        token_counter: TokenCounter | None = None,
    ) -> None:
        self.clock = clock
        self.indexed_metadata = rules.indexed_keys(indexed_metadata)
        self.token_counter = default_counter() if token_counter is None else token_counter
        self._keeper = keeper
        self._lock = forking.ForkSafeLock()
        self._is_closed = False
        # What the transaction under way goes by.
        self._records: MutableMapping[str, SessionRecord]
        self._now: datetime

    @property
    def durability(self) -> Durability:
        return self._keeper.durability

    @contextmanager
    def _transaction(self) -> Generator[MutableMapping[str, SessionRecord]]:
        with self._lock.current:
            if self._is_closed:
                raise StoreClosedError("the store is closed")
            with self._keeper.transaction() as self._records:
                self._now = as_utc(self.clock(), "the clock's time")
                yield self._records

    def _find(self, session_id: str) -> SessionRecord | None:
        record = self._records.get(check_name("session id", session_id))
        return None if record is None or self._is_gone(record) else record

    def _is_gone(self, record: SessionRecord) -> bool:
        return rules.is_gone(record.session, record.lease, self._now)

    def _looked_up(self, session_id: str) -> SessionRecord | None:
        with self._transaction():
            return self._find(session_id)

    def _known(self, session_id: str) -> SessionRecord:
        if record := self._find(session_id):
            return record
        raise SessionNotFoundError(session_id)

    def _new(self, session: Session) -> SessionRecord:
        rules.indexed_values(session, self.indexed_metadata)
        if self._find(session.id):
            raise SessionAlreadyExistsError(session.id)
        return SessionRecord(session.replace(), self._keeper.next_serial())

    def create(self, session: Session) -> Session:
        with self._transaction() as records:
            records[session.id] = self._new(session)
            return session.replace()

    def find(self, session_id: str) -> Session | None:
        record = self._looked_up(session_id)
        return record.session.replace() if record else None

    def list(
        self,
        *,
        principal: str | None = None,
        limit: int = DEFAULT_PAGE,
        cursor: str | None = None,
        newest_first: bool = False,
    ) -> SessionPage:
        if principal is not None:
            check_name("principal", principal)
        return self._page(lambda session: principal in (None, session.principal), limit, cursor, newest_first)

    def find_by_metadata(
        self, name: str, value: str, *, limit: int = DEFAULT_PAGE, cursor: str | None = None, newest_first: bool = False
    ) -> SessionPage:
        rules.check_indexed(name, value, self.indexed_metadata)
        return self._page(lambda session: session.metadata.get(name) == value, limit, cursor, newest_first)

    def _page(
        self, is_chosen: Callable[[Session], bool], limit: int, cursor: str | None, newest_first: bool
    ) -> SessionPage:
        check_count("limit", limit, least=1)
        if cursor is not None and not (isinstance(cursor, str) and _CURSOR.fullmatch(cursor)):
            raise InvalidValueError(f"{cursor!r} is no cursor of a listing")
        with self._transaction() as records:
            found = [record for record in map(self._find, records) if record and is_chosen(record.session)]
        found.sort(key=place_of, reverse=newest_first)
        if cursor is not None:
            found = [
                record for record in found if place_of(record) != cursor and (place_of(record) < cursor) == newest_first
            ]
        sessions = tuple(record.session.replace() for record in found[:limit])
        return SessionPage(sessions, place_of(found[limit - 1]) if limit < len(found) else None)

    def update(self, session_id: str, change: SessionChange) -> Session:
        with self._transaction() as records:
            record = self._known(session_id)
            session = change.applied(record.session, self._now)
            rules.indexed_values(session, self.indexed_metadata)
            records[session_id] = record._replace(session=session)
            return session.replace()

    def delete(self, session_id: str) -> bool:
        with self._transaction() as records:
            was_there = self._find(session_id) is not None
            records.pop(session_id, None)  # and what remains of an expired one
            return was_there

    def delete_expired(self, before: datetime, *, batch_size: int = 100) -> int:
        check_count("batch_size", batch_size, least=1)  # and one step does, as nobody is let in
        before = as_utc(before, "before")
        with self._transaction() as records:
            gone = [name for name, kept in records.items() if self._is_gone(kept) and kept.session.is_expired(before)]
            for session_id in gone:
                del records[session_id]
            return len(gone)

    def append(
        self,
        session_id: str,
        events: Sequence[SessionEvent],
        *,
        expected_version: int | None = None,
        turn: Turn | None = None,
    ) -> AppendResult:
        if expected_version is not None:
            check_count("expected_version", expected_version, least=0)
        batch = rules.check_batch(session_id, events)
        is_decided = False
        try:
            with self._transaction() as records:
                known = self._known(session_id)
                record, result = self._appended(known, batch, expected_version, turn)
                if record is not known:
                    is_decided = True
                    records[session_id] = record
                return result
        except StoreUnavailableError as error:
            if is_decided:
                raise AppendOutcomeUnknownError(session_id, tuple(event.id for event in batch)) from error
            raise

    def _appended(
        self, record: SessionRecord, batch: Batch, expected_version: int | None = None, turn: Turn | None = None
    ) -> tuple[SessionRecord, AppendResult]:
        session, version, now = record.session, record.version, self._now
        ids = {event.id for event in batch}
        stored = {event.id: event for event in chain(*record.batches) if event.id in ids}
        if rules.is_replay(batch, stored):
            return record, AppendResult(tuple(copied(stored[event.id] for event in batch)), version, is_replay=True)
        rules.check_version(session.id, expected_version, version)
        lease = rules.lease_after(session.id, record.lease, turn, now, batch)
        rules.check_boundary(batch, version, rules.boundaries_of(record.batches))
        kept = copied(event.at(position) for position, event in enumerate(batch, version + 1))
        slid = session.replace(expires_at=rules.slid_expiry(session.expires_at, session.time_to_live, now))
        record = record._replace(session=slid, lease=lease, batches=(*record.batches, tuple(kept)))
        return record, AppendResult(tuple(copied(kept)), record.version, is_replay=False)

    def restore(self, session: Session, batches: Iterable[Batch]) -> RestoreResult:
        # Read before the transaction: the batches may come slowly, or from this very store.
        given = [rules.check_batch(session.id, events) for events in batches]
        with self._transaction() as records:
            there = self._find(session.id) or self._new(session)
            _check_ids_of_restored(there, given)
            record = there._replace(lease=rules.Lease())  # a restore waits for nobody's turn
            counts = {False: 0, True: 0}
            for batch in given:
                record, result = self._appended(record, batch)
                counts[result.is_replay] += len(result.events)
            records[session.id] = record._replace(lease=there.lease)
            return RestoreResult(counts[False], counts[True], record.version)

    def fork(self, session_id: str, target: Session, *, at: int | None = None) -> int:
        with self._transaction() as records:
            source = self._batches(self._known(session_id), at)
            copies = tuple(tuple(event.replace(session_id=target.id) for event in batch) for batch in source)
            copy = self._new(target)._replace(batches=copies)
            records[target.id] = copy
            return copy.version

    def _batches(self, record: SessionRecord | None, as_of: int | None = None) -> Sequence[EventList]:
        if record is None:
            return []
        version = rules.effective_version(record.session.id, as_of, record.version, 0)
        return [copied(batch) for batch in record.batches if (batch[-1].position or 0) <= version]

    def _read(
        self, record: SessionRecord | None, filter: EventFilter = EVERYTHING, as_of: int | None = None
    ) -> EventList:
        return filter.apply(chain(*self._batches(record, as_of)))

    def iter_batches(self, session_id: str, *, as_of: int | None = None) -> Iterator[EventList]:
        return iter(self._batches(self._looked_up(session_id), as_of))

    def events(self, session_id: str, filter: EventFilter = EVERYTHING, *, as_of: int | None = None) -> EventList:
        return self._read(self._looked_up(session_id), filter, as_of)

    def iter_events(
        self, session_id: str, filter: EventFilter = EVERYTHING, *, as_of: int | None = None, batch_size: int = 500
    ) -> Iterator[EventList]:
        check_count("batch_size", batch_size, least=1)
        found = self.events(session_id, filter, as_of=as_of)
        return (found[first : first + batch_size] for first in range(0, len(found), batch_size))

    def find_events(
        self, session_id: str, *, event_ids: Sequence[str] | None = None, run_id: str | None = None
    ) -> EventList:
        if (event_ids is None) == (run_id is None):
            raise InvalidValueError("find_events takes event_ids or run_id, one of the two")
        ids, runs = set(event_ids or ()), {run_id} - {None}
        return [event for event in self.events(session_id) if event.id in ids or event.run_id in runs]

    def count(self, session_id: str, filter: EventFilter = EVERYTHING, *, as_of: int | None = None) -> int:
        return len(self.events(session_id, filter, as_of=as_of))

    def search(self, session_id: str, query: EventQuery) -> SearchPage:
        return search_page(query, self.events(session_id, query.as_filter()))

    def version(self, session_id: str) -> int:
        record = self._looked_up(session_id)
        return record.version if record else 0

    def tally(self, session_id: str, counter: TokenCounter | None = None, known: Tally | None = None) -> Tally | None:
        _ = known  # to count all anew is slow, and right
        record = self._looked_up(session_id)
        log = self._read(record)
        view = EventFilter(active_view=True).apply(log)
        return tally_of(f"{record.serial}", log, view, counter or self.token_counter) if record else None

    def take_turn(self, session_id: str, turn: Turn) -> int:
        return self._lease(session_id, Turn(turn.token, turn.lease, take=True))

    def renew_turn(self, session_id: str, turn: Turn) -> None:
        self._lease(session_id, Turn(turn.token, turn.lease))

    def _lease(self, session_id: str, turn: Turn) -> int:
        with self._transaction() as records:
            record = self._known(session_id)
            lease = rules.lease_after(session_id, record.lease, turn, self._now)
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
        with self._lock.current:
            if not self._is_closed:
                self._is_closed = True
                self._keeper.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self.close()


def _check_ids_of_restored(there: SessionRecord, batches: Iterable[Batch]) -> None:
    """Only what was stored before may come again."""
    stored = {event.id for event in chain(*there.batches)}
    new = [event.id for event in chain(*batches) if event.id not in stored]
    if len(set(new)) < len(new):
        raise InvalidBatchError(f"an event id stands twice in what is restored to session {there.session.id!r}")
