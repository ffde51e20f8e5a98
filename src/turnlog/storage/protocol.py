"""The port: what a store is. A store written from this file alone passes the contract in ``turnlog.testing``.

A store keeps one log per session. Positions count 1, 2, 3… without a gap; a log's *version* is its last position, 0
when empty. Each ``append`` is one *batch*: stored whole or not at all, contiguous, in order. Every operation is
linearizable: it takes effect at one moment between call and return, and a read sees everything acknowledged before it
began.

An expired session is unknown to every operation except ``delete_expired``, swept or not: ``expires_at <= now`` by the
store's clock, unless a turn is held on it (R-7). Stores hold their own copies: what a caller does to a value that it
passed in or got out never reaches the log.

The first two protocols differ in colour only. ``turnlog.storage.rules`` holds the decisions as pure functions, and
``turnlog.storage.values`` what is spoken of. Where a log fits into one read, ``turnlog.storage.whole_logs`` has every
operation already, over the third protocol, ``RecordKeeper``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from types import TracebackType
from typing import Protocol, Self, TypeAlias, runtime_checkable

from turnlog.log.event_filter import EventFilter
from turnlog.log.events import SessionEvent
from turnlog.log.queries import EventQuery, SearchPage
from turnlog.log.session import Session
from turnlog.log.tally import Tally
from turnlog.log.tokens import TokenCounter
from turnlog.storage.changes import SessionChange
from turnlog.storage.records import SessionRecord
from turnlog.storage.values import AppendResult, Durability, RestoreResult, SessionPage, Turn

__all__ = [
    "DEFAULT_PAGE",
    "EVERYTHING",
    "AppendResult",
    "AsyncSessionRepository",
    "Batch",
    "Clock",
    "Durability",
    "EventList",
    "RecordKeeper",
    "RestoreResult",
    "SessionPage",
    "SessionRecord",
    "SessionRepository",
    "Turn",
]

Clock: TypeAlias = Callable[[], datetime]
EventList: TypeAlias = list[SessionEvent]
Batch: TypeAlias = Sequence[SessionEvent]

EVERYTHING = EventFilter.all()
DEFAULT_PAGE = 50


@runtime_checkable
class SessionRepository(Protocol):
    """A store, called from any thread."""

    @property
    def clock(self) -> Clock:
        """The store's clock: aware UTC. Expiry and turns go by it, never by a server's (R-7)."""
        ...

    @property
    def durability(self) -> Durability:
        """What may be claimed, read from the engine when it was opened (R-15)."""
        ...

    @property
    def indexed_metadata(self) -> tuple[str, ...]:
        """The metadata keys that ``find_by_metadata`` knows, the principal's first (V-2)."""
        ...

    @property
    def token_counter(self) -> TokenCounter:
        """The counter of this store's events (C-9)."""
        ...

    def create(self, session: Session) -> Session:
        """Store a new session, whose log is empty. Remains of an expired one under this id go in the same step (R-7).

        Of several creators exactly one wins; the others get ``SessionAlreadyExistsError`` and change nothing (R-2).
        Values under indexed keys must be names (R-8), else ``InvalidValueError``.
        """
        ...

    def find(self, session_id: str) -> Session | None:
        """The session, or None."""
        ...

    def list(
        self,
        *,
        principal: str | None = None,
        limit: int = DEFAULT_PAGE,
        cursor: str | None = None,
        newest_first: bool = False,
    ) -> SessionPage:
        """Sessions by ``created_at``, equal times in the order of creation, oldest first; all, or one principal's.

        A walk by cursor sees every session that lives throughout it exactly once.
        """
        ...

    def find_by_metadata(
        self, name: str, value: str, *, limit: int = DEFAULT_PAGE, cursor: str | None = None, newest_first: bool = False
    ) -> SessionPage:
        """The sessions whose metadata has ``value`` under the indexed key ``name``; order and cursor as in ``list``.

        Raises ``NotIndexedError`` for a key that is not indexed.
        """
        ...

    def update(self, session_id: str, change: SessionChange) -> Session:
        """Apply ``change`` to the session as it is at that moment, and return it.

        Concurrent updates never lose one another. ``created_at`` and the events stay. Raises ``SessionNotFoundError``.
        """
        ...

    def delete(self, session_id: str) -> bool:
        """Remove the session and all its events in one step; False when there was none."""
        ...

    def delete_expired(self, before: datetime, *, batch_size: int = 100) -> int:
        """Remove the sessions that expired at or before ``before`` (and are expired now); return how many.

        Works in steps of ``batch_size`` sessions and looks at each again in its step, so that one extended meanwhile
        stays.
        """
        ...

    def append(
        self,
        session_id: str,
        events: Sequence[SessionEvent],
        *,
        expected_version: int | None = None,
        turn: Turn | None = None,
    ) -> AppendResult:
        """Append one batch: all or none, in order (R-3).

        It is decided in this order:

        1. ``InvalidBatchError`` for an empty batch, an id twice, two sessions, or a misplaced boundary or synthetic
           event.
        2. ``SessionNotFoundError``.
        3. A *replay*: every id is stored with equal content. Nothing changes; the first write's events are returned
           (R-4). Equal ids with other content: ``EventContentConflictError``; some stored, some not:
           ``PartialReplayError``.
        4. ``VersionConflictError`` if ``expected_version`` is given and the log has moved.
        5. The turn (H-11): with ``turn``, ``TurnInterruptedError`` if the caller no longer holds it, or
           ``SessionBusyError`` if it cannot be taken; without, ``SessionBusyError`` if a turn is held and the batch
           must wait for it.

        A stored append renews its turn's lease and slides the expiry of a session with ``time_to_live`` (R-7).
        When the answer to the commit is lost and cannot be settled: ``AppendOutcomeUnknownError`` (R-14).
        """
        ...

    def restore(self, session: Session, batches: Iterable[Batch]) -> RestoreResult:
        """Store a whole log, batch by batch, in one transaction: an import, or a copy.

        ``session`` is created if it is not there. Each batch is recognised as a replay as in ``append``. Boundaries are
        accepted where they stand at the position they were written at. ``batches`` is consumed once, lazily. When it
        raises, nothing is stored. What is stored waits for nobody's turn, and slides the expiry as in ``append``.
        """
        ...

    def fork(self, session_id: str, target: Session, *, at: int | None = None) -> int:
        """Copy the log up to version ``at`` (default: all) into the new session ``target``, in one transaction (A-5).

        Ids, positions, timestamps and batches are kept. A version inside a batch counts as the one before it. Returns
        the new log's version. Raises as ``create`` does, ``SessionNotFoundError``, and ``VersionOutOfRangeError``.
        """
        ...

    def events(self, session_id: str, filter: EventFilter = EVERYTHING, *, as_of: int | None = None) -> EventList:
        """What ``filter.apply`` gives over the whole log, or over the log as it was at version ``as_of`` (A-3, F-9).

        A version inside a batch reads as the one before it; beyond the log: ``VersionOutOfRangeError``. Empty for an
        unknown session (R-5).
        """
        ...

    def iter_events(
        self, session_id: str, filter: EventFilter = EVERYTHING, *, as_of: int | None = None, batch_size: int = 500
    ) -> Iterator[EventList]:
        """The same events in the same order, at most ``batch_size`` at a time; later appends are not seen."""
        ...

    def iter_batches(self, session_id: str, *, as_of: int | None = None) -> Iterator[EventList]:
        """The whole log, one list per append, in order: what ``restore`` takes."""
        ...

    def find_events(
        self, session_id: str, *, event_ids: Sequence[str] | None = None, run_id: str | None = None
    ) -> EventList:
        """The events with one of these ids, or of this run, in log order; unknown ids are left out."""
        ...

    def count(self, session_id: str, filter: EventFilter = EVERYTHING, *, as_of: int | None = None) -> int:
        """``len(events(...))`` without reading the events, where the criteria allow it."""
        ...

    def search(self, session_id: str, query: EventQuery) -> SearchPage:
        """One page of literal hits over the whole log, covered events included, oldest first (S-1)."""
        ...

    def version(self, session_id: str) -> int:
        """The position of the last event, 0 when empty or unknown (V-7, R-5)."""
        ...

    def tally(self, session_id: str, counter: TokenCounter | None = None, known: Tally | None = None) -> Tally | None:
        """The sums of the newest view by ``counter`` (default: the store's own), None for an unknown session (C-9).

        ``known`` is an earlier tally by the same counter: where the view has only grown since, what is new is read
        alone. A store may keep the counts it makes.
        """
        ...

    def take_turn(self, session_id: str, turn: Turn) -> int:
        """Take the turn, or renew it when its token holds it already; return the log's version (H-11).

        ``SessionBusyError`` while another token's lease runs; ``SessionNotFoundError``.
        """
        ...

    def renew_turn(self, session_id: str, turn: Turn) -> None:
        """Extend the lease to now + ``turn.lease``. ``TurnInterruptedError`` if the token no longer holds the turn."""
        ...

    def release_turn(self, session_id: str, token: str) -> bool:
        """Give the turn back; False when the token did not hold it."""
        ...

    def close(self) -> None:
        """Release everything the store opened; a second call does nothing. Afterwards: ``StoreClosedError``."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


@runtime_checkable
class AsyncSessionRepository(Protocol):
    """The same store for asyncio: every guarantee of :class:`SessionRepository` holds. No call blocks the event loop.

    Writes are shielded: a cancelled caller does not know the outcome, but the write is whole or absent.
    """

    @property
    def clock(self) -> Clock: ...

    @property
    def durability(self) -> Durability: ...

    @property
    def indexed_metadata(self) -> tuple[str, ...]: ...

    @property
    def token_counter(self) -> TokenCounter: ...

    async def create(self, session: Session) -> Session: ...

    async def find(self, session_id: str) -> Session | None: ...

    async def list(
        self,
        *,
        principal: str | None = None,
        limit: int = DEFAULT_PAGE,
        cursor: str | None = None,
        newest_first: bool = False,
    ) -> SessionPage: ...

    async def find_by_metadata(
        self, name: str, value: str, *, limit: int = DEFAULT_PAGE, cursor: str | None = None, newest_first: bool = False
    ) -> SessionPage: ...

    async def update(self, session_id: str, change: SessionChange) -> Session: ...

    async def delete(self, session_id: str) -> bool: ...

    async def delete_expired(self, before: datetime, *, batch_size: int = 100) -> int: ...

    async def append(
        self,
        session_id: str,
        events: Sequence[SessionEvent],
        *,
        expected_version: int | None = None,
        turn: Turn | None = None,
    ) -> AppendResult: ...

    async def restore(self, session: Session, batches: Iterable[Batch]) -> RestoreResult: ...

    async def fork(self, session_id: str, target: Session, *, at: int | None = None) -> int: ...

    async def events(
        self, session_id: str, filter: EventFilter = EVERYTHING, *, as_of: int | None = None
    ) -> EventList: ...

    def iter_events(
        self, session_id: str, filter: EventFilter = EVERYTHING, *, as_of: int | None = None, batch_size: int = 500
    ) -> AsyncIterator[EventList]: ...

    def iter_batches(self, session_id: str, *, as_of: int | None = None) -> AsyncIterator[EventList]: ...

    async def find_events(
        self, session_id: str, *, event_ids: Sequence[str] | None = None, run_id: str | None = None
    ) -> EventList: ...

    async def count(self, session_id: str, filter: EventFilter = EVERYTHING, *, as_of: int | None = None) -> int: ...

    async def search(self, session_id: str, query: EventQuery) -> SearchPage: ...

    async def version(self, session_id: str) -> int: ...

    async def tally(
        self, session_id: str, counter: TokenCounter | None = None, known: Tally | None = None
    ) -> Tally | None: ...

    async def take_turn(self, session_id: str, turn: Turn) -> int: ...

    async def renew_turn(self, session_id: str, turn: Turn) -> None: ...

    async def release_turn(self, session_id: str, token: str) -> bool: ...

    async def close(self) -> None: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


class RecordKeeper(Protocol):
    """Where whole sessions are kept, each as one record: a dict, a folder of files, a key-value service.

    ``turnlog.storage.whole_logs`` makes a store of it. It calls from any thread, but from one at a time.
    """

    @property
    def durability(self) -> Durability:
        """What may be claimed of a record once its transaction has ended (R-15)."""
        ...

    def transaction(self) -> AbstractContextManager[MutableMapping[str, SessionRecord]]:
        """The records by session id, as they are now, while no other process reads or writes them.

        Setting an item puts the whole record there, or leaves what was there, also when the machine stops in between.
        There is nothing to roll back: the block decides first, and its last step sets or deletes one record. (Only
        ``delete_expired`` deletes several, any of which may stand alone.)

        Raises ``StoreBusyError`` if it cannot begin in time, and ``StoreUnavailableError`` if the records cannot be
        reached, or it is not known whether the write got through: an append then ends as unknown (R-14).
        """
        ...

    def next_serial(self) -> int:
        """A number greater than all before it, also those before a restart; asked for in a transaction.

        It orders sessions of one ``created_at``, and tells a log from earlier ones under its id. Gaps do no harm.
        """
        ...

    def close(self) -> None:
        """Release what is open. Called once, and nothing is called afterwards."""
        ...
