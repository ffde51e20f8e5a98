"""The two drivers over one database: threads call it, tasks hop to it, one hop for a whole transaction."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import TypeVar

from turnlog.errors import StoreClosedError
from turnlog.storage.protocol import Durability
from turnlog.storage.sql.drivers.sqlite.connecting import SqliteOptions, connect
from turnlog.storage.sql.drivers.sqlite.database import Connect, SqliteDatabase
from turnlog.storage.sql.drivers.sqlite.durability import durability_of
from turnlog.storage.sql.drivers.sqlite.threads import Hop, Readers, Worker
from turnlog.storage.sql.plans.plan import Plan, PlanFactory

T = TypeVar("T")


class SqliteDriver:
    """Runs plans in the calling thread."""

    def __init__(self, options: SqliteOptions, connect: Connect = connect) -> None:
        self._database = SqliteDatabase(options, connect)

    #: SQLite's data-changing statements stand alone.
    changes_at_once = False

    def write_at_once(self, make: Callable[[], Plan[T]]) -> T | None:
        """See ``turnlog.storage.sql.driver.Driver``."""
        return self.write(lambda _: make())

    def write(self, make: PlanFactory[T]) -> T:
        """See ``turnlog.storage.sql.driver.Driver``."""
        return self._database.complete(self._database.submit(make))

    def read(self, make: Callable[[], Plan[T]]) -> T:
        """See ``turnlog.storage.sql.driver.Driver``."""
        return self._database.read(make)

    def settle(self, make: Callable[[], Plan[T]]) -> T:
        """See ``turnlog.storage.sql.driver.Driver``: what can be read is durable."""
        return self.read(make)

    def durability(self) -> Durability:
        """See ``turnlog.storage.sql.driver.Driver``."""
        return durability_of(self._database)

    def close(self) -> None:
        """See ``turnlog.storage.sql.driver.Driver``."""
        self._database.close()


class AsyncSqliteDriver:
    """Runs plans in threads of its own: one writes, a few read. It belongs to no loop and opens when first used."""

    def __init__(self, options: SqliteOptions, connect: Connect = connect) -> None:
        self._options = options
        self._connect = connect
        self._database: SqliteDatabase | None = None
        self._closed = False
        self._start_threads()

    def _start_threads(self) -> None:
        self._process = os.getpid()
        self._opening = threading.Lock()
        # What is handed to the threads is handed over before a close, or not at all.
        self._handing_over = threading.Lock()
        self._writer = Worker("turnlog-writer")
        self._readers = Readers()

    #: SQLite's data-changing statements stand alone.
    changes_at_once = False

    async def write_at_once(self, make: Callable[[], Plan[T]]) -> T | None:
        """See ``turnlog.storage.sql.driver.AsyncDriver``."""
        return await self.write(lambda _: make())

    async def write(self, make: PlanFactory[T]) -> T:
        """See ``turnlog.storage.sql.driver.AsyncDriver``."""
        if self._database is None:
            await self._in_reader(self._opened)
        database = self._opened()
        self._begin_in_process()
        with self._handing_over:
            self._check_open()
            # Queued here and not in the thread: what other tasks queue while a commit runs shares the next one.
            job = database.submit(make)
            hop = Hop(lambda: database.complete(job))
            self._writer.submit(hop.run)
        return await hop

    async def read(self, make: Callable[[], Plan[T]]) -> T:
        """See ``turnlog.storage.sql.driver.AsyncDriver``."""
        return await self._in_reader(lambda: self._opened().read(make))

    async def settle(self, make: Callable[[], Plan[T]]) -> T:
        """See ``turnlog.storage.sql.driver.AsyncDriver``: what can be read is durable."""
        return await self.read(make)

    def _in_reader(self, call: Callable[[], T]) -> Hop[T]:
        self._begin_in_process()
        with self._handing_over:
            self._check_open()
            hop = Hop(call)
            self._readers.submit(hop)
        return hop

    def _opened(self) -> SqliteDatabase:
        if self._database is None:
            with self._opening:
                if self._database is None:
                    self._database = SqliteDatabase(self._options, self._connect)
        return self._database

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError("the store is closed")

    def _begin_in_process(self) -> None:
        if self._process != os.getpid():  # forked: the threads stayed with the parent
            self._start_threads()

    def durability(self) -> Durability:
        """See ``turnlog.storage.sql.driver.AsyncDriver``."""
        self._begin_in_process()
        self._check_open()
        return durability_of(self._opened())

    async def close(self) -> None:
        """See ``turnlog.storage.sql.driver.AsyncDriver``. Writes under way are finished first."""
        self._begin_in_process()
        with self._handing_over:
            if self._closed:
                return
            self._closed = True
        await asyncio.get_running_loop().run_in_executor(None, self._close)

    def _close(self) -> None:
        self._writer.close()
        self._readers.close()
        if self._database is not None:
            self._database.close()
