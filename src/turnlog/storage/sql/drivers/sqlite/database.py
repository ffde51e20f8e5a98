"""One open file: a writing connection, a pool of reading ones, checkpoints, and what happens after a fork."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import TypeAlias, TypeVar

from turnlog.errors import StoreClosedError
from turnlog.storage.sql.driver import run_plan
from turnlog.storage.sql.drivers.sqlite.checkpoints import Checkpointer
from turnlog.storage.sql.drivers.sqlite.connecting import Connection, SqliteOptions, connect, prepare
from turnlog.storage.sql.drivers.sqlite.errors import translation
from turnlog.storage.sql.drivers.sqlite.writer import GroupWriter, Job, Transaction
from turnlog.storage.sql.plans.plan import Plan, PlanFactory
from turnlog.storage.sql.statements import Rows, Statement

T = TypeVar("T")

#: Idle reading connections kept open; more are opened when more threads read at once.
_MOST_IDLE = 8

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
        self._writing = connect(options)
        try:
            prepare(self._writing, options)
        except BaseException:
            self._writing.close()
            raise
        self._begin()
        _OPEN.add(self)

    def _begin(self) -> None:
        """Everything around the writing connection: new in a new process."""
        self._forked = False
        self._idle: deque[Connection] = deque()
        self._lock = threading.RLock()
        self._checkpointer = Checkpointer(self._writing, self.options)
        self._writer = GroupWriter(Transaction(self._execute_writing), self._checkpointer.after_commit)

    def submit(self, make: PlanFactory[T]) -> Job[T]:
        """Queue a write. It runs in some thread's ``complete``, together with what waits beside it."""
        self._check_usable()
        return self._writer.submit(make)

    def complete(self, job: Job[T]) -> T:
        """Wait for a write and return its outcome."""
        if not self.options.in_memory:
            return self._writer.complete(job)
        # In memory there is one connection for all: readers see the state between two transactions.
        with self._lock:
            return self._writer.complete(job)

    def read(self, make: Callable[[], Plan[T]]) -> T:
        """Run a plan on one snapshot; readers of a file never wait for writers."""
        self._check_usable()
        if self.options.in_memory:
            with self._lock:
                return run_plan(make(), self._execute_writing)
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
        if self._closed:
            raise StoreClosedError("the store is closed")
        return execute_on(self._writing, statement, self.options.path)

    def _reader(self) -> Connection:
        try:
            return self._idle.pop()
        except IndexError:
            connection = self._connect(self.options)
            connection.execute("PRAGMA query_only = ON")
            return connection

    def _give_back(self, connection: Connection) -> None:
        if self._closed or len(self._idle) >= _MOST_IDLE:
            connection.close()
        else:
            self._idle.append(connection)

    def close(self) -> None:
        """Close all connections, after a last checkpoint; a read under way closes its own when it ends."""
        if self._closed:
            return
        self._closed = True
        _OPEN.discard(self)
        if self._forked:
            return
        self._checkpointer.run()
        while self._idle:
            self._idle.pop().close()
        self._writing.close()

    def _check_usable(self) -> None:
        if self._closed:
            raise StoreClosedError("the store is closed")
        if self._forked:
            self._reopen()

    def notice_fork(self) -> None:
        """Called in a forked child, where no other thread lives: what was inherited is not to be used (H-13)."""
        # Closing an inherited connection would touch the parent's locks: all are kept, unused, until the process ends.
        # Memory has no locks; the child goes on with its copy.
        _INHERITED.append((self._writing, *self._idle))
        self._begin()
        self._forked = not self.options.in_memory

    def _reopen(self) -> None:
        with self._lock:
            if self._forked:
                self._writing = self._connect(self.options)
                self._begin()


def execute_on(connection: Connection, statement: Statement, place: str) -> Rows:
    """Execute one statement: its rows, or one row with the number that it changed."""
    try:
        if statement.many:
            return [(connection.executemany(statement.sql, statement.parameters).rowcount,)]
        cursor = connection.execute(statement.sql, statement.parameters)
        return [(cursor.rowcount,)] if cursor.description is None else cursor.fetchall()
    except sqlite3.Error as error:
        raise translation(error, place) from error


_OPEN: weakref.WeakSet[SqliteDatabase] = weakref.WeakSet()
_INHERITED: list[tuple[Connection, ...]] = []


def _after_fork_in_child() -> None:
    for database in list(_OPEN):
        database.notice_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
