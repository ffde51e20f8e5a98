"""The pools of a store: for threads one in each process, for tasks one in each event loop as well.

A socket that two processes share is of no use to either, and a task cannot wait on another loop's. So whoever comes
first, in a process or a loop, gets a pool of its own; what a child inherits from its parent is left alone.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any, Final, Generic, Protocol, TypeVar

from msgspec import Struct
from psycopg import AsyncConnection, Connection
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from turnlog.errors import StoreClosedError, StoreUnavailableError
from turnlog.storage.forking import watch
from turnlog.storage.sql.drivers.postgres.loop_pool import LoopPool, session_settings
from turnlog.storage.sql.drivers.postgres.options import PostgresOptions

P = TypeVar("P")


class AsyncPool(Protocol):
    """What is asked of a pool for tasks."""

    async def getconn(self) -> AsyncConnection:
        """Lend a connection."""
        ...

    async def putconn(self, conn: AsyncConnection) -> None:
        """Take it back."""
        ...

    async def check(self) -> None:
        """Replace those that are broken."""
        ...


#: What a child has inherited. It is kept, for to be collected it would have to talk to threads that are not there.
_left_alone: Final[list[Any]] = []


class _Process(Generic[P]):
    """What belongs to one process: its pools, by what they serve."""

    def __init__(self, *, is_closed: bool = False) -> None:
        self.lock = threading.Lock()
        self.pools: dict[Any, P] = {}
        self.is_closed = is_closed

    def check_open(self) -> None:
        """Raise ``StoreClosedError`` after a close."""
        if self.is_closed:
            raise StoreClosedError("the store is closed")


class _Given(Struct, Generic[P]):
    """A pool that the caller has brought, and the process it belongs to."""

    pool: P
    process: int

    def check(self) -> P:
        if self.process != os.getpid():
            raise StoreUnavailableError("the pool was brought by the parent process: open a store in this one")
        return self.pool


class Pools:
    """A pool for the threads of each process. One that is given is used in its own process, and left open."""

    def __init__(self, options: PostgresOptions, given: ConnectionPool[Connection] | None) -> None:
        self._options = options
        self._given = None if given is None else _Given(given, os.getpid())
        self._process: _Process[ConnectionPool[Connection]] = _Process()
        watch(self)

    @property
    def is_given(self) -> bool:
        """Whether the caller has brought the pool."""
        return self._given is not None

    def check_open(self) -> None:
        """Raise ``StoreClosedError`` after a close."""
        self._process.check_open()

    def current(self) -> ConnectionPool[Connection]:
        """The pool to use here; raises ``StoreClosedError``."""
        process = self._process
        process.check_open()
        if self._given is not None:
            return self._given.check()
        pool = process.pools.get(None)
        if pool is None:
            with process.lock:
                pool = process.pools.get(None)
                if pool is None:
                    made: ConnectionPool[Connection] = ConnectionPool(
                        self._options.address,
                        min_size=self._options.pool_min,
                        max_size=self._options.pool_max,
                        timeout=self._options.pool_timeout,
                        kwargs={"autocommit": True},
                        configure=self._configure,
                        open=False,
                    )
                    made.open()
                    pool = process.pools[None] = made
        return pool

    def _configure(self, connection: Connection) -> None:
        connection.execute(session_settings(self._options))

    def before_fork(self, seconds: float) -> None:
        """See ``turnlog.storage.forking.Forkable``: nothing has to rest, for the child begins anew."""
        del seconds

    def after_fork_in_parent(self) -> None:
        """See ``turnlog.storage.forking.Forkable``."""

    def after_fork_in_child(self) -> None:
        """See ``turnlog.storage.forking.Forkable``."""
        _leave_alone(self._process)
        self._process = _Process(is_closed=self._process.is_closed)

    def refresh(self) -> None:
        """Replace the connections that are broken: where one is, the others are likely to be too."""
        self.current().check()

    def close(self) -> None:
        """Close the pools that were made here."""
        process = self._process
        process.is_closed = True
        with process.lock:
            pools = list(process.pools.values())
            process.pools.clear()
        for pool in pools:
            pool.close()


class AsyncPools:
    """A pool for the tasks of each event loop. One that is given is used in its own loop, and left open."""

    def __init__(self, options: PostgresOptions, given: AsyncConnectionPool[AsyncConnection] | None) -> None:
        self._options = options
        self._given = None if given is None else _Given(given, os.getpid())
        self._process: _Process[LoopPool] = _Process()
        watch(self)

    @property
    def is_given(self) -> bool:
        """Whether the caller has brought the pool."""
        return self._given is not None

    def check_open(self) -> None:
        """Raise ``StoreClosedError`` after a close."""
        self._process.check_open()

    async def current(self) -> AsyncPool:
        """The pool to use here; raises ``StoreClosedError``."""
        process = self._process
        process.check_open()
        if self._given is not None:
            return self._given.check()
        loop = asyncio.get_running_loop()
        pool = process.pools.get(loop)
        if pool is None:
            with process.lock:
                for ended in [other for other in process.pools if other.is_closed()]:
                    process.pools.pop(ended).hang_up()
                pool = process.pools[loop] = LoopPool(self._options)
        return pool

    def before_fork(self, seconds: float) -> None:
        """See ``turnlog.storage.forking.Forkable``: nothing has to rest, for the child begins anew."""
        del seconds

    def after_fork_in_parent(self) -> None:
        """See ``turnlog.storage.forking.Forkable``."""

    def after_fork_in_child(self) -> None:
        """See ``turnlog.storage.forking.Forkable``."""
        _left_alone.append(self._process)
        self._process = _Process(is_closed=self._process.is_closed)

    async def refresh(self) -> None:
        """Replace the connections that are broken: where one is, the others are likely to be too."""
        await (await self.current()).check()

    async def close(self) -> None:
        """Close the pools that were made here, each in its own loop where that still runs."""
        process = self._process
        process.is_closed = True
        with process.lock:
            pools = list(process.pools.items())
            process.pools.clear()
        for loop, pool in pools:
            if loop is asyncio.get_running_loop():
                await pool.close()
            elif loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(pool.close(), loop))
            else:
                pool.hang_up()


def _leave_alone(process: _Process[ConnectionPool[Connection]]) -> None:
    """Keep the parent's pools from being closed: their threads and the other end of their sockets are the parent's."""
    _left_alone.append(process)
    for pool in process.pools.values():
        pool._closed = True  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - nothing public does it
