"""The PostgreSQL driver: a pool of connections, a transaction per plan, another try where that is safe (R-6, R-14)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from turnlog.errors import StoreBusyError, StoreClosedError, StoreError, StoreUnavailableError
from turnlog.storage.protocol import Durability
from turnlog.storage.sql.driver import CommitFailedError, UniqueViolationError
from turnlog.storage.sql.drivers.postgres.colours import shielded
from turnlog.storage.sql.drivers.postgres.durability import SETTINGS, durability_of, schema_fault
from turnlog.storage.sql.drivers.postgres.errors import RETRIED, translation
from turnlog.storage.sql.drivers.postgres.options import PostgresOptions, for_server
from turnlog.storage.sql.plans.plan import Plan, PlanFactory
from turnlog.storage.sql.statements import Rows, Statement

T = TypeVar("T")

#: Transactions that one write may take: deadlocks and lost connections are rare, and never endless.
_MOST_ATTEMPTS = 6
_FIRST_PAUSE = 0.01


class AsyncPostgresDriver:
    """Runs plans on a pool. One given by the caller is used and left open; one of its own is closed with the driver."""

    def __init__(self, options: PostgresOptions, pool: AsyncConnectionPool[AsyncConnection] | None = None) -> None:
        self._options = options
        self._own_pool = pool is None
        self._pool: AsyncConnectionPool[AsyncConnection] | None = pool
        self._opening = asyncio.Lock()
        self._durability: Durability | None = None
        self._closed = False

    async def open(self) -> None:
        """Connect, and make sure that the database is a turnlog store at our schema; it is not changed here (R-13)."""
        async with self._opening:
            if self._closed:
                raise StoreClosedError("the store is closed")
            if self._durability is not None:
                return
            if self._pool is None:
                self._pool = AsyncConnectionPool(
                    self._options.conninfo,
                    min_size=self._options.pool_min,
                    max_size=self._options.pool_max,
                    timeout=self._options.pool_timeout,
                    kwargs={"autocommit": True},
                    open=False,
                )
                await self._pool.open()
            try:
                async with self._pool.connection() as connection:
                    settings = {name: (await self._execute(connection, sql))[0][0] for name, sql in SETTINGS.items()}
            except psycopg.Error as error:
                raise translation(error, self._options.place) from error
            fault = schema_fault(settings, self._options.place)
            if fault is not None:
                raise fault
            self._durability = durability_of(settings)

    changes_at_once = True

    async def write_at_once(self, make: Callable[[], Plan[T]]) -> T | None:
        """See ``turnlog.storage.sql.driver.AsyncDriver``: the statement is sent once, and commits itself."""
        return await shielded(self._write_at_once(make))

    async def _write_at_once(self, make: Callable[[], Plan[T]]) -> T | None:
        await self.open()
        try:
            async with self._connection() as connection:
                return await self._plan(connection, make())
        except (UniqueViolationError, _UndoneError):
            return None
        except StoreUnavailableError as error:
            raise CommitFailedError(error, None) from error

    async def write(self, make: PlanFactory[T]) -> T:
        """See ``turnlog.storage.sql.driver.AsyncDriver``; goes on when the caller is cancelled."""
        return await shielded(self._write(make))

    async def _write(self, make: PlanFactory[T]) -> T:
        await self.open()
        refused = 0
        for attempt in range(_MOST_ATTEMPTS):
            try:
                return await self._transaction(make, refused)
            except UniqueViolationError:
                refused += 1
            except (_UndoneError, StoreUnavailableError) as error:
                if attempt == _MOST_ATTEMPTS - 1:
                    raise self._given_up(error) from error
            await asyncio.sleep(_pause(attempt))
        raise StoreError("a unique key was violated again after looking first")

    async def _transaction(self, make: PlanFactory[T], refused: int) -> T:
        """Run the plan once. Whatever fails before COMMIT is sent has stored nothing."""
        async with self._connection() as connection:
            await self._run(connection, "BEGIN")
            result = await self._plan(connection, make(refused))
            try:
                await connection.execute("COMMIT")
            except RETRIED as error:
                raise _UndoneError(str(error)) from error
            except psycopg.Error as error:
                cause = translation(error, self._options.place)
                raise CommitFailedError(StoreError(str(cause)), result) from error
            return result

    async def read(self, make: Callable[[], Plan[T]]) -> T:
        """See ``turnlog.storage.sql.driver.AsyncDriver``."""
        await self.open()
        for attempt in range(_MOST_ATTEMPTS - 1):
            try:
                return await self._snapshot(make)
            except (_UndoneError, StoreUnavailableError):
                await asyncio.sleep(_pause(attempt))
        return await self._snapshot(make)

    async def _snapshot(self, make: Callable[[], Plan[T]]) -> T:
        async with self._connection() as connection:
            await self._run(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            result = await self._plan(connection, make())
            await self._run(connection, "COMMIT")
            return result

    def _connection(self) -> _Borrowed:
        if self._pool is None or self._closed:
            raise StoreClosedError("the store is closed")
        return _Borrowed(self._pool, self._options.place)

    async def _plan(self, connection: AsyncConnection, plan: Plan[T]) -> T:
        try:
            statement = next(plan)
            while True:
                try:
                    rows = await self._statement(connection, statement)
                except RETRIED as error:
                    raise _UndoneError(str(error)) from error
                except psycopg.Error as error:
                    raise translation(error, self._options.place) from error
                statement = plan.send(rows)
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            plan.close()

    async def _run(self, connection: AsyncConnection, sql: str) -> None:
        try:
            await self._execute(connection, sql)
        except psycopg.Error as error:
            raise translation(error, self._options.place) from error

    async def _statement(self, connection: AsyncConnection, statement: Statement) -> Rows:
        sql = for_server(statement.sql).encode()
        async with connection.cursor() as cursor:
            if statement.many:
                await cursor.executemany(sql, statement.parameters)
            else:
                await cursor.execute(sql, statement.parameters)
            return [(cursor.rowcount,)] if cursor.description is None else await cursor.fetchall()

    async def _execute(self, connection: AsyncConnection, sql: str) -> Rows:
        return await self._statement(connection, Statement(sql))

    def _given_up(self, error: Exception) -> StoreError:
        if isinstance(error, StoreError):
            return error
        return StoreBusyError(
            f"{self._options.place}: the server undid the transaction {_MOST_ATTEMPTS} times: {error}"
        )

    def durability(self) -> Durability:
        """See ``turnlog.storage.sql.driver.AsyncDriver``."""
        if self._durability is None:
            return Durability(None, None, "not known before the store is opened")
        return self._durability

    async def close(self) -> None:
        """See ``turnlog.storage.sql.driver.AsyncDriver``."""
        self._closed = True
        if self._pool is not None and self._own_pool:
            await self._pool.close()


def _pause(attempt: int) -> float:
    """Seconds before the next try: longer each time, and never the same for two who collided."""
    return _FIRST_PAUSE * 2.0**attempt * random.random()  # noqa: S311 - spreads tries, guards nothing


class _UndoneError(Exception):
    """The server has undone the transaction: a deadlock, or a serialisation failure."""


class _Borrowed:
    """A connection of the pool. What is left open on it when the block fails is undone, or the connection given up."""

    def __init__(self, pool: AsyncConnectionPool[AsyncConnection], place: str) -> None:
        self._pool = pool
        self._place = place
        self._connection: AsyncConnection | None = None

    async def __aenter__(self) -> AsyncConnection:
        try:
            self._connection = await self._pool.getconn()
        except psycopg.Error as error:
            raise translation(error, self._place) from error
        return self._connection

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        if self._connection is None:
            return
        if error is not None:
            try:
                await self._connection.rollback()
            except psycopg.Error:
                await self._connection.close()
        await self._pool.putconn(self._connection)
