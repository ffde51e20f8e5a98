"""Sessions and their logs in dictionaries, under one lock.

It is written to be read: each operation states what it does with the pure functions of ``turnlog.log`` and
``turnlog.storage.rules``, and reading is ``EventFilter.apply``.
"""

from __future__ import annotations

import base64
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import datetime

from turnlog.errors import (
    InvalidBatchError,
    InvalidValueError,
    SessionAlreadyExistsError,
    SessionNotFoundError,
    StoreClosedError,
    StoreError,
)
from turnlog.log.codec import decode_body, encode_body
from turnlog.log.event_filter import EventFilter
from turnlog.log.events import SessionEvent, as_utc
from turnlog.log.names import check_name
from turnlog.log.session import Session, SessionAttributes
from turnlog.log.tally import Tally, tally_of
from turnlog.log.tokens import TokenCounter
from turnlog.log.windows import check_count
from turnlog.storage import forking
from turnlog.storage.changes import SessionChange
from turnlog.storage.protocol import AppendResult, Batch, Clock, RestoreResult, SessionPage, Turn
from turnlog.storage.rules import (
    Lease,
    boundaries_of,
    check_batch,
    check_boundary,
    check_version,
    effective_version,
    indexed_values,
    is_gone,
    is_replay,
    lease_after,
    slid_expiry,
)


class _Log:
    """One session: its value, its batches, and who holds its turn."""

    def __init__(self, session: Session, serial: int) -> None:
        self.session = session
        self.serial = serial
        self.batches: list[tuple[SessionEvent, ...]] = []
        self.by_id: dict[str, SessionEvent] = {}
        self.lease = Lease()

    @property
    def version(self) -> int:
        return len(self.by_id)

    def up_to(self, as_of: int | None) -> list[tuple[SessionEvent, ...]]:
        """The batches of the log at ``as_of``."""
        version = effective_version(self.session.id, as_of, self.version, 0)
        kept: list[tuple[SessionEvent, ...]] = []
        for batch in self.batches:
            if (batch[-1].position or 0) > version:
                break
            kept.append(batch)
        return kept

    def add(self, batch: Sequence[SessionEvent]) -> tuple[SessionEvent, ...]:
        placed = tuple(_own_copy(event).at(position) for position, event in enumerate(batch, self.version + 1))
        self.batches.append(placed)
        self.by_id |= {event.id: event for event in placed}
        return placed


class MemoryLogs:
    """Every operation of a store, without colour; callable from any thread."""

    def __init__(self, clock: Clock, indexed: tuple[str, ...]) -> None:
        self.clock = clock
        self.indexed = (SessionAttributes.PRINCIPAL_NAME, *indexed)
        self._logs: dict[str, _Log] = {}
        self._serial = 0
        self._closed = False
        self._lock = forking.ForkSafeLock()
        self._is_writing = False

    @contextmanager
    def _locked(self) -> Generator[datetime, None, None]:
        with self._lock.current:
            if self._closed:
                raise StoreClosedError("the store is closed")
            yield as_utc(self.clock(), "the clock's time")

    @contextmanager
    def _locked_to_write(self) -> Generator[datetime, None, None]:
        with self._locked() as now:
            if self._is_writing:  # this very thread: it reads the batches that it restores
                raise StoreError("a write was begun while this thread's own write is running: batches must not write")
            self._is_writing = True
            try:
                yield now
            finally:
                self._is_writing = False

    def _find(self, session_id: str, now: datetime) -> _Log | None:
        log = self._logs.get(check_name("session id", session_id))
        return None if log is None or is_gone(log.session, log.lease, now) else log

    def _get(self, session_id: str, now: datetime) -> _Log:
        log = self._find(session_id, now)
        if log is None:
            raise SessionNotFoundError(session_id)
        return log

    def create(self, session: Session) -> Session:
        """See the protocol."""
        with self._locked_to_write() as now:
            self._create(session, now)
            return session

    def _create(self, session: Session, now: datetime) -> _Log:
        indexed_values(session, self.indexed)
        if self._find(session.id, now) is not None:
            raise SessionAlreadyExistsError(session.id)
        self._serial += 1
        log = self._logs[session.id] = _Log(session.replace(), self._serial)
        return log

    def find(self, session_id: str) -> Session | None:
        """See the protocol."""
        with self._locked() as now:
            log = self._find(session_id, now)
            return None if log is None else log.session.replace()

    def page(
        self, attribute: tuple[str, str] | None, limit: int, cursor: str | None, newest_first: bool
    ) -> SessionPage:
        """One page of the sessions that have the attribute, or of all."""
        check_count("limit", limit, least=1)
        with self._locked() as now:
            alive = [log for log in self._logs.values() if not is_gone(log.session, log.lease, now)]
            chosen = [
                log for log in alive if attribute is None or attribute in indexed_values(log.session, self.indexed)
            ]
            chosen.sort(key=_place, reverse=newest_first)
            if cursor is not None:
                last = _read_cursor(cursor)
                chosen = [log for log in chosen if (_place(log) < last if newest_first else _place(log) > last)]
            more = _cursor(chosen[limit - 1]) if len(chosen) > limit else None
            return SessionPage(tuple(log.session.replace() for log in chosen[:limit]), more)

    def update(self, session_id: str, change: SessionChange) -> Session:
        """See the protocol."""
        with self._locked_to_write() as now:
            log = self._get(session_id, now)
            after = change.applied(log.session, now)
            indexed_values(after, self.indexed)
            log.session = after
            return after.replace()

    def delete(self, session_id: str) -> bool:
        """See the protocol."""
        with self._locked_to_write() as now:
            was_there = self._find(session_id, now) is not None
            self._logs.pop(session_id, None)
            return was_there

    def delete_expired(self, before: datetime, batch_size: int) -> int:
        """See the protocol."""
        check_count("batch_size", batch_size, least=1)
        with self._locked_to_write() as now:
            end = min(as_utc(before, "before"), now)
            gone = [
                log.session.id
                for log in self._logs.values()
                if log.session.is_expired(end) and is_gone(log.session, log.lease, now)
            ]
            for session_id in gone:
                del self._logs[session_id]
            return len(gone)

    def append(
        self, session_id: str, events: Sequence[SessionEvent], expected_version: int | None, turn: Turn | None
    ) -> AppendResult:
        """See the protocol."""
        if expected_version is not None:
            check_count("expected_version", expected_version, least=0)
        batch = check_batch(check_name("session id", session_id), events)
        with self._locked_to_write() as now:
            log = self._get(session_id, now)
            stored = _stored(log, batch)
            if is_replay(batch, stored):
                return AppendResult(tuple(_own_copy(stored[event.id]) for event in batch), log.version, is_replay=True)
            check_version(session_id, expected_version, log.version)
            lease = lease_after(session_id, log.lease, turn, now, batch)
            check_boundary(batch, log.version, boundaries_of(log.batches))
            placed = log.add(batch)
            log.lease = lease
            _slide(log, now)
            return AppendResult(tuple(map(_own_copy, placed)), log.version, is_replay=False)

    def restore(self, session: Session, batches: Iterable[Batch]) -> RestoreResult:
        """See the protocol."""
        with self._locked_to_write() as now:
            there = self._find(session.id, now)
            before, replayed = 0 if there is None else there.version, 0
            # What comes is collected apart, so that a refusal in the middle leaves nothing behind.
            log = _Log(session.replace(), 0)
            for batch in () if there is None else there.batches:
                log.add(batch)
            for given in batches:
                batch = check_batch(session.id, given)
                if is_replay(batch, _stored(log, batch, before)):
                    replayed += len(batch)
                    continue
                if any(event.id in log.by_id for event in batch):
                    raise InvalidBatchError(f"an event id stands twice in what is restored to session {session.id!r}")
                check_boundary(batch, log.version, boundaries_of(log.batches))
                log.add(batch)
            if there is None:
                there = self._create(session, now)
            if log.version > before:
                _slide(there, now)
            there.batches, there.by_id = log.batches, log.by_id
            return RestoreResult(log.version - before, replayed, log.version)

    def fork(self, session_id: str, target: Session, at: int | None) -> int:
        """See the protocol."""
        with self._locked_to_write() as now:
            batches = self._get(session_id, now).up_to(at)
            log = self._create(target, now)
            for batch in batches:
                log.add([event.replace(session_id=target.id) for event in batch])
            return log.version

    def events(self, session_id: str, filter: EventFilter, as_of: int | None) -> list[SessionEvent]:
        """See the protocol."""
        with self._locked() as now:
            log = self._find(session_id, now)
            batches = [] if log is None else log.up_to(as_of)
        return [_own_copy(event) for event in filter.apply([event for batch in batches for event in batch])]

    def batches(self, session_id: str, as_of: int | None) -> list[list[SessionEvent]]:
        """The log's batches at ``as_of``."""
        with self._locked() as now:
            log = self._find(session_id, now)
            return [] if log is None else [list(map(_own_copy, batch)) for batch in log.up_to(as_of)]

    def find_events(self, session_id: str, event_ids: Sequence[str] | None, run_id: str | None) -> list[SessionEvent]:
        """See the protocol."""
        if (event_ids is None) == (run_id is None):
            raise InvalidValueError("find_events takes event_ids or run_id, one of the two")
        wanted = {check_name("event id", event_id) for event_id in event_ids or ()}
        if run_id is not None:
            check_name("run id", run_id)
        with self._locked() as now:
            log = self._find(session_id, now)
            found = () if log is None else log.by_id.values()
            return [
                _own_copy(event)
                for event in found
                if event.id in wanted or (run_id is not None and event.run_id == run_id)
            ]

    def tally(self, session_id: str, counter: TokenCounter) -> Tally | None:
        """The sums, made anew each time."""
        with self._locked() as now:
            log = self._find(session_id, now)
            if log is None:
                return None
            events = [event for batch in log.batches for event in batch]
        return tally_of(str(log.serial), events, EventFilter(active_view=True).apply(events), counter)

    def version(self, session_id: str) -> int:
        """See the protocol."""
        with self._locked() as now:
            log = self._find(session_id, now)
            return 0 if log is None else log.version

    def hold_turn(self, session_id: str, turn: Turn) -> int:
        """Take or renew the turn, as ``turn.take`` says; returns the version."""
        with self._locked_to_write() as now:
            log = self._get(session_id, now)
            log.lease = lease_after(session_id, log.lease, turn, now)
            return log.version

    def release_turn(self, session_id: str, token: str) -> bool:
        """See the protocol."""
        with self._locked_to_write() as now:
            log = self._find(session_id, now)
            if log is None or log.lease.token != token:
                return False
            log.lease = Lease()
            return True

    def close(self) -> None:
        """See the protocol."""
        self._closed = True


def _stored(log: _Log, batch: Sequence[SessionEvent], version: int | None = None) -> dict[str, SessionEvent]:
    """The stored events among the batch's ids, up to ``version``."""
    found = {event.id: log.by_id[event.id] for event in batch if event.id in log.by_id}
    return (
        found if version is None else {id_: event for id_, event in found.items() if (event.position or 0) <= version}
    )


def _slide(log: _Log, now: datetime) -> None:
    session = log.session
    log.session = session.replace(expires_at=slid_expiry(session.expires_at, session.time_to_live, now))


def _own_copy(event: SessionEvent) -> SessionEvent:
    """The event through the stored form and back: the log shares no dictionary with a caller."""
    body = decode_body(*encode_body(event))
    return event.replace(message=body.message, payload=body.payload, metadata=body.metadata)


def _place(log: _Log) -> tuple[datetime, int]:
    return (log.session.created_at, log.serial)


def _cursor(log: _Log) -> str:
    return base64.urlsafe_b64encode(f"{log.session.created_at.isoformat()} {log.serial}".encode()).decode()


def _read_cursor(cursor: str) -> tuple[datetime, int]:
    try:
        created_at, _, serial = base64.urlsafe_b64decode(cursor.encode()).decode().partition(" ")
        return datetime.fromisoformat(created_at), int(serial)
    except (ValueError, AttributeError) as error:
        raise InvalidValueError(f"{cursor!r} is no cursor of a listing") from error
