"""A small pool for the tasks of one event loop, without tasks of its own.

``psycopg_pool`` connects in tasks beside, which outlive the cancellation that ends a loop: a program that leaves its
loop without closing the store would hang. Here whoever finds no connection makes one.
"""

from __future__ import annotations

import asyncio
import random
from typing import Final
from weakref import WeakSet

import psycopg
from psycopg import AsyncConnection
from psycopg_pool import PoolTimeout

from turnlog.storage.sql.drivers.postgres.options import PostgresOptions

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0


def session_settings(options: PostgresOptions) -> bytes:
    """Sent once on each connection.

    A statement that commits itself waits for a row's lock and goes by its newest version. And the server finds out
    within two minutes that a machine is gone which holds a lock. (Its own time limit for idle transactions would be
    simpler, but does not run behind a pipeline: the flush request that ends one stops its clock.)
    """
    settings: Final = {
        "default_transaction_isolation": "'read committed'",
        "lock_timeout": int(options.lock_timeout * 1000),
        "tcp_keepalives_idle": 60,
        "tcp_keepalives_interval": 10,
        "tcp_keepalives_count": 6,
    }
    return "; ".join(f"SET {name} = {value}" for name, value in settings.items()).encode()


class LoopPool:
    """Lends at most ``pool_max`` connections; the one that came back last goes first."""

    def __init__(self, options: PostgresOptions) -> None:
        self._options = options
        self._idle: list[AsyncConnection] = []
        self._made: WeakSet[AsyncConnection] = WeakSet()
        self._places = asyncio.Semaphore(options.pool_max)
        self._is_closed = False
        self._last_error: psycopg.Error | None = None

    async def getconn(self) -> AsyncConnection:
        """Lend a connection, making one if there is none; raises ``PoolTimeout`` after ``pool_timeout``."""
        if self._idle and not self._places.locked():
            await self._places.acquire()  # nobody is before us, so this waits for nothing
            if (connection := self._waiting()) is not None:
                return connection
            self._places.release()
        try:
            async with asyncio.timeout(self._options.pool_timeout):
                await self._places.acquire()
                try:
                    return self._waiting() or await self._connected()
                except BaseException:
                    self._places.release()
                    raise
        except TimeoutError:
            why = "" if self._last_error is None else f": {self._last_error}"
            raise PoolTimeout(f"after {self._options.pool_timeout:g} seconds{why}") from self._last_error

    def _waiting(self) -> AsyncConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed:
                return connection
        return None

    async def _connected(self) -> AsyncConnection:
        """A new connection; as often as it takes, for a server may be about to come back, or to hand over."""
        pause = _FIRST_PAUSE
        while True:
            try:
                return await self._set_up(await AsyncConnection.connect(self._options.address, autocommit=True))
            except psycopg.OperationalError as error:
                self._last_error = error
            await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - spreads tries, guards nothing
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _set_up(self, connection: AsyncConnection) -> AsyncConnection:
        self._made.add(connection)
        try:
            await connection.execute(session_settings(self._options))
        except BaseException:
            connection.pgconn.finish()
            raise
        self._last_error = None
        return connection

    async def putconn(self, conn: AsyncConnection) -> None:
        """Take it back. Nothing is waited for, so that this cannot be cancelled half-way."""
        if self._is_closed or conn.closed or conn.info.transaction_status:
            conn.pgconn.finish()
        else:
            self._idle.append(conn)
        self._places.release()

    async def check(self) -> None:
        """Let go of the idle connections that are broken."""
        waiting, self._idle = self._idle, []
        for connection in waiting:
            try:
                await connection.execute("")
            except psycopg.Error:
                connection.pgconn.finish()
            else:
                self._idle.append(connection)

    async def close(self) -> None:
        """Close what is idle; what is lent is closed when it comes back."""
        self._is_closed = True
        while self._idle:
            await self._idle.pop().close()

    def hang_up(self) -> None:
        """Close everything at once: the loop has ended, and nobody waits on it any more."""
        self._is_closed = True
        for connection in list(self._made):
            connection.pgconn.finish()
