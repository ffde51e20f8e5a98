"""The fault switch: stores without the nets that keep a race from doing harm, to show that the tests see the harm.

Three nets hold one after another: the lock (``BEGIN IMMEDIATE`` to ``COMMIT``), the version that is compared by the
statement that moves it, and the unique keys. Readers then refuse what slipped through: a range of positions holds as
many events as it has positions. :func:`without_nets` takes all of them away for the SQLite files that are created and
opened inside its block, and lets the test say what happens once a writer has read the head of a log: where all writers
wait there for one another, each acts on what the others are about to change. Nothing outside the tests has this switch.
"""

# Locks and drivers are reached into, to take them away or to watch them.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from unittest.mock import patch

from turnlog.log.events import SessionEvent
from turnlog.storage.memory import logs
from turnlog.storage.memory.logs import MemoryLogs
from turnlog.storage.migrations import Dialect, full_schema
from turnlog.storage.sql import statements
from turnlog.storage.sql.drivers.sqlite import connecting, database
from turnlog.storage.sql.drivers.sqlite.writer import Transaction
from turnlog.storage.sql.plans import fetching
from turnlog.storage.sql.statements import Rows, Statement
from turnlog.testing.history import FinalLog, LogEntry, recorded_event


class Rendezvous:
    """Where all who are still running wait for one another, again and again."""

    def __init__(self, parties: int) -> None:
        self._running = parties
        self._arrived = 0
        self._round = 0
        self._changed = threading.Condition()

    def meet(self) -> None:
        """Wait until all have arrived."""
        with self._changed:
            self._arrived += 1
            here = self._round
            if not self._open_if_complete():
                self._changed.wait_for(lambda: self._round != here)

    def leave(self) -> None:
        """Run no more; the others do not wait any longer."""
        with self._changed:
            self._running -= 1
            self._open_if_complete()

    def _open_if_complete(self) -> bool:
        if self._arrived < self._running:
            return False
        self._arrived = 0
        self._round += 1
        self._changed.notify_all()
        return True


class _NoTransaction(Transaction):
    """Every statement by itself: no lock, nothing to undo."""

    def begin(self) -> None:
        pass

    def mark(self) -> None:
        pass

    def keep(self) -> None:
        pass

    def undo(self) -> None:
        pass

    def commit(self) -> None:
        pass

    def rollback(self) -> None:
        pass


#: Statements whose answer a writer acts on.
_LOOKS = (statements.HEAD_LOCKED, statements.SESSION)


@contextmanager
def without_nets(
    after_look: Callable[[], None] = lambda: None, *, version_check: bool = False, unique_keys: bool = False
) -> Generator[None, None, None]:
    """SQLite files are written without the lock, and without the other nets unless they are asked for.

    ``after_look`` is called by each writer when it has read what it will act on.
    """

    def unlocked(execute: Callable[[Statement], Rows], abandon: Callable[[], None]) -> Transaction:
        def watched(statement: Statement) -> Rows:
            rows = execute(statement)
            if statement.sql in _LOOKS:
                after_look()
            return rows

        return _NoTransaction(watched, abandon)

    moving = statements.MOVE_HEAD if version_check else statements.MOVE_HEAD.replace("AND version = ?", "AND ? >= 0")
    schema = full_schema("sqlite")
    if not unique_keys:
        schema = _without_keys(schema)

    def schema_of(_: Dialect) -> str:
        return schema

    def nothing(*_: object) -> None:
        pass

    with (
        patch.object(database, "Transaction", unlocked),
        patch.object(statements, "MOVE_HEAD", moving),
        patch.object(connecting, "full_schema", schema_of),
        patch.object(fetching, "check_contiguous", nothing),
    ):
        yield


def _without_keys(schema: str) -> str:
    for key in (",\n  PRIMARY KEY (session_key, position)", ",\n  UNIQUE (session_key, event_id)"):
        schema = schema.replace(key, "")
    return schema.replace("id TEXT NOT NULL UNIQUE", "id TEXT NOT NULL")


class NoLock:
    """Stands in for a lock and keeps nobody out."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


@contextmanager
def without_memory_lock(store: MemoryLogs, in_the_middle: Callable[[], None]) -> Generator[None, None, None]:
    """The memory store without its lock; ``in_the_middle`` is called when an appended event's position is decided."""
    own_copy = logs._own_copy

    def watched(event: SessionEvent) -> SessionEvent:
        if event.position is None:
            in_the_middle()
        return own_copy(event)

    with (
        patch.object(store._lock, "current", NoLock()),
        patch.object(store, "_locked_to_write", store._locked),  # else every other thread's write looks like its own
        patch.object(logs, "_own_copy", watched),
    ):
        yield


def kept_in_memory(store: MemoryLogs, session: str) -> FinalLog:
    """What the store holds; without its lock it refuses to read what it made of it."""
    log = store._logs[session]
    events = [event for batch in log.batches for event in batch]
    known = map(recorded_event, events)
    entries = (LogEntry(one.id, one.digest, event.position or 0) for one, event in zip(known, events, strict=True))
    return FinalLog(log.version, tuple(entries))
