"""The pools of a store: for threads one in each process, for tasks one in each event loop as well.

A socket that two processes share is of no use to either, and a task cannot wait on another loop's. So whoever comes
first, in a process or a loop, gets a pool of its own; what a child inherits from its parent is left alone.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any, Final, Generic, TypeVar
from weakref import WeakSet

import psycopg
from msgspec import Struct
from psycopg import AsyncConnection, Connection
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from turnlog.errors import StoreClosedError, StoreUnavailableError
from turnlog.storage.sql.drivers.postgres.options import PostgresOptions

P = TypeVar("P", "ConnectionPool[Connection]", "AsyncConnectionPool[AsyncConnection]")

#: What a child has inherited. It is kept, for to be collected it would have to talk to threads that are not there.
_left_alone: Final[list[Any]] = []


def _arguments(options: PostgresOptions) -> dict[str, Any]:
    return {
        "conninfo": options.conninfo,
        "min_size": options.pool_min,
        "max_size": options.pool_max,
        "timeout": options.pool_timeout,
        "kwargs": {"autocommit": True},
        "open": False,
    }


def _session_settings(options: PostgresOptions) -> bytes:
    """Sent once on each connection.

    A statement that commits itself waits for a row's lock and goes by its newest version. And the server finds out
    within two minutes that a machine is gone which holds a lock. (Its own time limit for idle transactions would be
    simpler, but does not run behind a pipeline: the flush request that ends one stops its clock.)
    """
    settings = {
        "default_transaction_isolation": "'read committed'",
        "lock_timeout": int(options.lock_timeout * 1000),
        "tcp_keepalives_idle": 60,
        "tcp_keepalives_interval": 10,
        "tcp_keepalives_count": 6,
    }
    return "; ".join(f"SET {name} = {value}" for name, value in settings.items()).encode()


class _Process(Generic[P]):
    """What belongs to one process: its pools, by what they serve."""

    def __init__(self) -> None:
        self.number = os.getpid()
        self.lock = threading.Lock()
        self.pools: dict[Any, P] = {}
        self.connections: dict[Any, WeakSet[psycopg.BaseConnection[Any]]] = {}
        self.is_closed = False


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

    @property
    def is_given(self) -> bool:
        """Whether the caller has brought the pool."""
        return self._given is not None

    def current(self) -> ConnectionPool[Connection]:
        """The pool to use here; raises ``StoreClosedError``."""
        process = self._here()
        if process.is_closed:
            raise StoreClosedError("the store is closed")
        if self._given is not None:
            return self._given.check()
        pool = process.pools.get(None)
        if pool is None:
            with process.lock:
                pool = process.pools.get(None)
                if pool is None:
                    pool = ConnectionPool(configure=self._configure, **_arguments(self._options))
                    pool.open()
                    process.pools[None] = pool
        return pool

    def _configure(self, connection: Connection) -> None:
        connection.execute(_session_settings(self._options))

    def _here(self) -> _Process[ConnectionPool[Connection]]:
        if self._process.number != os.getpid():
            _leave_alone(self._process)
            self._process = _Process()
        return self._process

    def refresh(self) -> None:
        """Replace the connections that are broken: where one is, the others are likely to be too."""
        self.current().check()

    def close(self) -> None:
        """Close the pools that were made here."""
        process = self._here()
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
        self._process: _Process[AsyncConnectionPool[AsyncConnection]] = _Process()

    @property
    def is_given(self) -> bool:
        """Whether the caller has brought the pool."""
        return self._given is not None

    async def current(self) -> AsyncConnectionPool[AsyncConnection]:
        """The pool to use here; raises ``StoreClosedError``."""
        process = self._here()
        if process.is_closed:
            raise StoreClosedError("the store is closed")
        if self._given is not None:
            return self._given.check()
        loop = asyncio.get_running_loop()
        pool = process.pools.get(loop)
        if pool is None:
            pool = self._made(process, loop)
        if pool.closed:
            await pool.open()
        return pool

    def _made(
        self, process: _Process[AsyncConnectionPool[AsyncConnection]], loop: asyncio.AbstractEventLoop
    ) -> AsyncConnectionPool[AsyncConnection]:
        connections: WeakSet[psycopg.BaseConnection[Any]] = WeakSet()

        async def configure(connection: AsyncConnection) -> None:
            connections.add(connection)
            await connection.execute(_session_settings(self._options))

        with process.lock:
            for ended in [other for other in process.pools if other.is_closed()]:
                del process.pools[ended]
                _finish(process.connections.pop(ended))
            pool: AsyncConnectionPool[AsyncConnection] = AsyncConnectionPool(
                configure=configure, **_arguments(self._options)
            )
            process.pools[loop], process.connections[loop] = pool, connections
        return pool

    def _here(self) -> _Process[AsyncConnectionPool[AsyncConnection]]:
        if self._process.number != os.getpid():
            _leave_alone(self._process)
            self._process = _Process()
        return self._process

    async def refresh(self) -> None:
        """Replace the connections that are broken: where one is, the others are likely to be too."""
        await (await self.current()).check()

    async def close(self) -> None:
        """Close the pools that were made here, each in its own loop where that still runs."""
        process = self._here()
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
                _finish(process.connections[loop])


def _finish(connections: WeakSet[psycopg.BaseConnection[Any]]) -> None:
    """Hang up on connections whose loop has ended: nobody waits on them any more."""
    for connection in list(connections):
        connection.pgconn.finish()


def _leave_alone(process: _Process[Any]) -> None:
    """Keep the parent's pools from being closed: their threads and the other end of their sockets are the parent's."""
    _left_alone.append(process)
    for pool in process.pools.values():
        pool._closed = True  # noqa: SLF001 - nothing public says so
