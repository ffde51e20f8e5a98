"""One open file: a writing connection, a pool of reading ones, checkpoints, and what happens at a fork."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TypeAlias, TypeVar

from turnlog.errors import StoreClosedError, StoreUnavailableError
from turnlog.storage import forking
from turnlog.storage.sql.driver import run_plan
from turnlog.storage.sql.drivers.sqlite.checkpoints import Checkpointer
from turnlog.storage.sql.drivers.sqlite.connecting import Connection, SqliteOptions, connect, prepare
from turnlog.storage.sql.drivers.sqlite.errors import ENGINE_ERRORS, translation
from turnlog.storage.sql.drivers.sqlite.reads import Reads
from turnlog.storage.sql.drivers.sqlite.writer import GroupWriter, Job, Transaction
from turnlog.storage.sql.plans.plan import Plan, PlanFactory
from turnlog.storage.sql.statements import Rows, Statement

T = TypeVar("T")

#: Idle reading connections kept open; more are opened when more threads read at once.
_MOST_IDLE = 8

_ONLY_READ = Statement("PRAGMA query_only = ON")
_BEGIN = Statement("BEGIN")
_COMMIT = Statement("COMMIT")

#: Makes a connection; tests put one in that fails when told to.
Connect: TypeAlias = Callable[[SqliteOptions], Connection]


class SqliteDatabase:
    """The connections of one store in one process; every method may be called from any thread."""

    def __init__(self, options: SqliteOptions, connect: Connect = connect) -> None:
        self.options = options
        self._connect = connect
        self._closed = False
        self._rests = False
        self._is_stranded = False
        with forking.opening() as hand_over:
            self._begin(self._prepared())
            hand_over(self)

    def _prepared(self) -> Connection:
        connection = self._new_connection()
        try:
            prepare(connection, self.options)
        except BaseException:
            connection.close()
            raise
        return connection

    def _new_connection(self) -> Connection:
        if self.options.path in _STRANDED:
            raise self._stranded()
        return self._connect(self.options)

    def _stranded(self) -> StoreUnavailableError:
        return StoreUnavailableError(
            f"{self.options.path} was being written or read when this process was forked: use it in the parent"
        )

    def _begin(self, writing: Connection | None) -> None:
        """Everything around the writing connection: new in a new process."""
        self._writing = writing
        self._checkpointer = None if writing is None else Checkpointer(writing, self.options)
        self._idle: deque[Connection] = deque()
        self._reads = Reads()
        self._lock = threading.RLock()
        transaction = Transaction(self._execute_writing, self._abandon_writing)
        self._writer = GroupWriter(transaction, self._after_commit)

    def submit(self, make: PlanFactory[T]) -> Job[T]:
        """Queue a write. It runs in some thread's ``complete``, together with what waits beside it."""
        self._check_open()
        return self._writer.submit(make)

    def complete(self, job: Job[T]) -> T:
        """Wait for a write and return its outcome."""
        with self._alone_in_memory():
            return self._writer.complete(job)

    def _alone_in_memory(self) -> AbstractContextManager[object]:
        # In memory there is one connection for all: readers see the state between two transactions.
        return self._lock if self.options.in_memory else nullcontext()

    def read(self, make: Callable[[], Plan[T]]) -> T:
        """Run a plan on one snapshot; readers of a file never wait for writers."""
        if self.options.in_memory:
            with self._lock:
                self._check_open()
                return run_plan(make(), self._execute_writing)
        with self._reads:
            self._check_open()
            connection = self._reader()
            try:
                result = self._read_snapshot(connection, make)
            except BaseException:
                connection.close()
                raise
            self._give_back(connection)
            return result

    def _read_snapshot(self, connection: Connection, make: Callable[[], Plan[T]]) -> T:
        def execute(statement: Statement) -> Rows:
            return execute_on(connection, statement, self.options.path)

        execute(_BEGIN)
        result = run_plan(make(), execute)
        execute(_COMMIT)
        return result

    def _execute_writing(self, statement: Statement) -> Rows:
        self._check_open()
        if self._writing is None:  # closed by a fork, or abandoned
            self._writing = self._new_connection()
            self._checkpointer = Checkpointer(self._writing, self.options)
        return execute_on(self._writing, statement, self.options.path)

    def _abandon_writing(self) -> None:
        if self._writing is None:
            return
        if self.options.in_memory:  # the data live as long as the connection
            with suppress(sqlite3.Error):
                self._writing.rollback()
            return
        with suppress(sqlite3.Error):
            self._writing.close()
        self._writing = self._checkpointer = None

    def _after_commit(self) -> None:
        if self._checkpointer is not None:
            self._checkpointer.after_commit()

    def _reader(self) -> Connection:
        try:
            return self._idle.pop()
        except IndexError:
            connection = self._new_connection()
        try:
            execute_on(connection, _ONLY_READ, self.options.path)
        except BaseException:
            connection.close()
            raise
        return connection

    def _give_back(self, connection: Connection) -> None:
        self._idle.append(connection)
        # In this order: a close that has just emptied the pool sees the connection, or is seen here.
        if self._closed:
            self._close_idle()
        elif len(self._idle) > _MOST_IDLE:
            self._close_idle(but=_MOST_IDLE)

    def _close_idle(self, *, but: int = 0) -> None:
        while len(self._idle) > but:
            with suppress(IndexError):  # another thread has taken it
                self._idle.pop().close()

    def close(self) -> None:
        """Close all connections, after a last checkpoint. Writes under way end first; reads close their own."""
        with self._alone_in_memory(), self._writer.alone():
            if not self._closed:
                if self._checkpointer is not None:
                    self._checkpointer.run()
                self._closed = True
                self._close_connections()
        forking.unwatch(self)

    def _close_connections(self) -> None:
        self._close_idle()
        if self._writing is not None:
            self._writing.close()
        self._writing = self._checkpointer = None

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError("the store is closed")
        if self._is_stranded:
            raise self._stranded()

    def before_fork(self, seconds: float) -> None:
        """See ``turnlog.storage.forking``: no connection to a file stays open, and one in memory is left alone."""
        self._rests = False
        deadline = time.monotonic() + seconds
        if self.options.in_memory:
            self._rests = self._lock.acquire(timeout=seconds)
            return
        if not self._writer.pause(seconds):
            return
        if not self._reads.pause(max(0.0, deadline - time.monotonic())):
            self._reads.resume()
            self._writer.resume()
            return
        self._rests = True
        self._close_connections()

    def after_fork_in_parent(self) -> None:
        """See ``turnlog.storage.forking``: the next use connects again."""
        if not self._rests:
            return
        if self.options.in_memory:
            self._lock.release()
            return
        self._reads.resume()
        self._writer.resume()

    def after_fork_in_child(self) -> None:
        """See ``turnlog.storage.forking``: what another thread was in the middle of cannot be gone on with here."""
        if not self._rests:
            # Even closing what was inherited would touch the parent's locks: it is kept, unused, until the process
            # ends.
            _INHERITED.append((self._writing, *self._idle))
            if not self.options.in_memory:
                _STRANDED.add(self.options.path)
            self._writing, self._is_stranded = None, True
        self._begin(self._writing)


def execute_on(connection: Connection, statement: Statement, place: str) -> Rows:
    """Execute one statement: its rows, or one row with the number that it changed."""
    try:
        if statement.many:
            return [(connection.executemany(statement.sql, statement.parameters).rowcount,)]
        cursor = connection.execute(statement.sql, statement.parameters)
        return [(cursor.rowcount,)] if cursor.description is None else cursor.fetchall()
    except ENGINE_ERRORS as error:
        raise translation(error, place) from error


#: Files, and connections to them, that were in use while this process was forked off.
_STRANDED: set[str] = set()
_INHERITED: list[tuple[Connection | None, ...]] = []
