"""The PostgreSQL driver: a pool of connections, a transaction per plan, another try where that is safe (R-6, R-14)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Self, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncRawCursor
from psycopg.errors import Diagnostic
from psycopg.rows import tuple_row
from psycopg_pool import AsyncConnectionPool

from turnlog.errors import StoreBusyError, StoreError, StoreUnavailableError
from turnlog.storage.protocol import Durability
from turnlog.storage.sql.driver import CommitFailedError, UniqueViolationError
from turnlog.storage.sql.drivers.postgres.colours import shielded
from turnlog.storage.sql.drivers.postgres.dialect import for_server
from turnlog.storage.sql.drivers.postgres.durability import (
    HAS_SETTINGS,
    NAMES,
    SCHEMA,
    SETTINGS,
    check_encoding,
    durability_of,
    fault_of,
)
from turnlog.storage.sql.drivers.postgres.errors import LostError, UndoneError, met, translation
from turnlog.storage.sql.drivers.postgres.options import PostgresOptions
from turnlog.storage.sql.drivers.postgres.pools import AsyncPools
from turnlog.storage.sql.drivers.postgres.running import (
    BEGIN_READING,
    BEGIN_WRITING,
    COMMIT,
    Run,
    rows_of,
    says_unconfirmed,
)
from turnlog.storage.sql.plans.plan import Plan, PlanFactory
from turnlog.storage.sql.statements import Rows, Statement

T = TypeVar("T")

#: Transactions that one call may take: deadlocks and lost connections are rare, and never endless.
_MOST_ATTEMPTS = 6
_FIRST_PAUSE = 0.01


class AsyncPostgresDriver:
    """Runs plans on a pool. One given by the caller is used and left open; one of its own is closed with the driver."""

    #: PostgreSQL's statements may change a row and use what they have changed.
    changes_at_once = True

    def __init__(self, options: PostgresOptions, pool: AsyncConnectionPool[AsyncConnection] | None = None) -> None:
        self._options = options
        self._pools = AsyncPools(options, pool)
        self._durability: Durability | None = None

    async def open(self) -> None:
        """Connect, and make sure that the database is a turnlog store at our schema; it is not changed here (R-13)."""
        if self._durability is not None:
            return
        self._pools.check_open()
        if self._pools.is_given:
            async with self._lent() as lent:
                self._durability = await self._checked(lent.connection)
            return
        # A connection of its own says at once why there is none; the pool would go on trying, and log each try.
        try:
            async with await AsyncConnection.connect(self._options.address, autocommit=True) as connection:
                self._durability = await self._checked(connection)
        except psycopg.Error as error:
            raise translation(error, self._options.place) from error

    async def _checked(self, connection: AsyncConnection) -> Durability:
        check_encoding(connection, self._options.place)
        try:
            (told,) = await self._execute(connection, Statement(SETTINGS))
            settings = dict(zip(NAMES, told, strict=True))
            is_ours = (await self._execute(connection, Statement(HAS_SETTINGS)))[0][0]
            found = await self._execute(connection, Statement(SCHEMA)) if is_ours else []
        except psycopg.Error as error:
            raise translation(error, self._options.place) from error
        schema = int(found[0][0]) if found else 0
        fault = fault_of(settings, schema, self._options.place, unsafe=self._options.unsafe)
        if fault is not None:
            raise fault
        return durability_of(settings)

    async def write_at_once(self, make: Callable[[], Plan[T]]) -> T | None:
        """See ``turnlog.storage.sql.driver.AsyncDriver``: the statement is sent once, and commits itself."""
        return await shielded(self._write_at_once(make))

    async def _write_at_once(self, make: Callable[[], Plan[T]]) -> T | None:
        await self.open()
        run = Run(make())
        async with self._lent(is_sheltered=True) as lent:
            run.begin()
            try:
                if run.due is not None:
                    run.answer((await self._send(lent.connection, [run.due]))[0])
            except (UniqueViolationError, UndoneError):
                return None
            except LostError as lost:
                raise CommitFailedError(lost.cause, None) from lost.cause
            finally:
                run.close()
            lent.check_confirmed(run.result)
            return run.result

    async def write(self, make: PlanFactory[T]) -> T:
        """See ``turnlog.storage.sql.driver.AsyncDriver``; goes on when the caller is cancelled."""
        return await shielded(self._write(make))

    async def settle(self, make: Callable[[], Plan[T]]) -> T:
        """See ``turnlog.storage.sql.driver.AsyncDriver``.

        It takes a lock, so that its own commit waits for the synchronous standbys that what it has found needs too.
        """
        return await self.write(lambda _: make())

    async def _write(self, make: PlanFactory[T]) -> T:
        refused = 0
        for attempt in range(_MOST_ATTEMPTS):
            try:
                return await self._transaction(Run(make(refused)), BEGIN_WRITING)
            except UniqueViolationError:
                refused += 1
            except (UndoneError, LostError) as error:
                await self._before_another(attempt, error)
        raise StoreError("a unique key was violated again after looking first")

    async def read(self, make: Callable[[], Plan[T]]) -> T:
        """See ``turnlog.storage.sql.driver.AsyncDriver``."""
        for attempt in range(_MOST_ATTEMPTS):
            try:
                return await self._transaction(Run(make()), BEGIN_READING)
            except (UndoneError, LostError) as error:
                await self._before_another(attempt, error)
            except CommitFailedError as unheard:
                await self._before_another(attempt, LostError(unheard.cause))
        raise AssertionError

    async def _before_another(self, attempt: int, error: UndoneError | LostError) -> None:
        """Wait a little, and see that the pool has connections that work; raises when it was the last attempt."""
        is_last = attempt == _MOST_ATTEMPTS - 1
        if isinstance(error, LostError):
            if is_last:
                raise error.cause
            await self._pools.refresh()
        elif is_last:
            message = f"{self._options.place}: the server undid the transaction {_MOST_ATTEMPTS} times: {error}"
            raise StoreBusyError(message) from error.__cause__
        await asyncio.sleep(_pause(attempt))

    async def _transaction(self, run: Run[T], begin: Statement) -> T:
        """Run the plan once. Whatever fails before COMMIT is sent has stored nothing.

        BEGIN goes with the first statement, COMMIT with the last, where the plan knows which that is.
        """
        await self.open()
        async with self._lent(is_sheltered=begin is BEGIN_WRITING) as lent:
            opening = [begin]
            try:
                run.begin()
                while (due := run.due) is not None:
                    if due.last and opening == [BEGIN_READING]:
                        run.answer((await self._send(lent.connection, [due]))[0])  # a snapshot by itself
                        return run.result
                    if due.last:
                        rows = await self._commit(lent, [*opening, due, COMMIT], due.decided)
                        run.answer(rows[len(opening)])
                        return run.result
                    rows = await self._send(lent.connection, [*opening, due])
                    run.answer(rows[-1])
                    opening = []
                if not opening:
                    await self._commit(lent, [COMMIT], run.result)
            finally:
                run.close()
            return run.result

    async def _commit(self, lent: _Lent, statements: Sequence[Statement], decided: object) -> list[Rows]:
        """Send what ends in COMMIT; raises ``CommitFailedError`` where nobody knows whether it took effect."""
        try:
            rows = await self._send(lent.connection, statements)
        except LostError as lost:
            raise CommitFailedError(lost.cause, decided) from lost.cause
        lent.check_confirmed(decided)
        return rows

    async def _send(self, connection: AsyncConnection, statements: Sequence[Statement]) -> list[Rows]:
        """The answers to statements that are sent together: one round trip. One that fails undoes the others."""
        try:
            if len(statements) == 1:
                return [await self._execute(connection, statements[0])]
            cursors = await self._pipelined(connection, statements)
            return [rows_of(cursor) or await cursor.fetchall() for cursor in cursors]
        except psycopg.Error as error:
            raise met(error, connection, self._options.place) from error

    async def _pipelined(
        self, connection: AsyncConnection, statements: Sequence[Statement]
    ) -> list[AsyncRawCursor[tuple[object, ...]]]:
        """Raises the first error; those that follow from it are of no interest, here or in a log."""
        first: psycopg.Error | None = None
        cursors: list[AsyncRawCursor[tuple[object, ...]]] = []
        try:
            async with connection.pipeline():
                try:
                    cursors = [await self._begun(connection, statement) for statement in statements]
                except psycopg.Error as error:
                    first = error
        except psycopg.Error as error:
            first = first or error
        if first is not None:
            raise first
        return cursors

    async def _execute(self, connection: AsyncConnection, statement: Statement) -> Rows:
        cursor = await self._begun(connection, statement)
        return rows_of(cursor) or await cursor.fetchall()

    async def _begun(self, connection: AsyncConnection, statement: Statement) -> AsyncRawCursor[tuple[object, ...]]:
        """A cursor of our own kind, whatever the connection has been told to make."""
        cursor = AsyncRawCursor(connection, row_factory=tuple_row)
        if statement.many:
            await cursor.executemany(for_server(statement.sql), statement.parameters)
        else:
            await cursor.execute(for_server(statement.sql), statement.parameters)
        return cursor

    def _lent(self, *, is_sheltered: bool = False) -> _Lent:
        return _Lent(self._pools, self._options.place, is_sheltered=is_sheltered)

    def durability(self) -> Durability:
        """See ``turnlog.storage.sql.driver.AsyncDriver``."""
        if self._durability is None:
            return Durability(None, None, "not known before the store is opened")
        return self._durability

    async def close(self) -> None:
        """See ``turnlog.storage.sql.driver.AsyncDriver``."""
        await self._pools.close()


def _pause(attempt: int) -> float:
    """Seconds before the next try: longer each time, and never the same for two who collided."""
    return _FIRST_PAUSE * 2.0**attempt * random.random()  # noqa: S311 - spreads tries, guards nothing


class _Lent:
    """A connection of the pool, in autocommit. What is left open on it is undone, or the connection given up.

    ``is_sheltered``: the caller cannot be cancelled, so that giving it back needs no shield of its own. Neither does a
    connection of our own pool on which nothing is left open: taking it back waits for nothing.
    """

    def __init__(self, pools: AsyncPools, place: str, *, is_sheltered: bool) -> None:
        self._pools = pools
        self._place = place
        self._is_sheltered = is_sheltered
        self._is_unconfirmed = False

    async def __aenter__(self) -> Self:
        self._pool = await self._pools.current()
        try:
            self.connection = await self._pool.getconn()
        except psycopg.Error as error:
            raise translation(error, self._place) from error
        self.connection.add_notice_handler(self._noted)
        self._has_autocommit = self.connection.autocommit
        if not self._has_autocommit:
            await self.connection.set_autocommit(True)
        return self

    def _noted(self, diagnostic: Diagnostic) -> None:
        self._is_unconfirmed = self._is_unconfirmed or says_unconfirmed(diagnostic)

    def check_confirmed(self, decided: object) -> None:
        """Raise ``CommitFailedError`` if a commit was not confirmed by the standby that it had to wait for."""
        if self._is_unconfirmed:
            raise CommitFailedError(StoreUnavailableError("no synchronous standby has confirmed the commit"), decided)

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        is_as_it_was = self._has_autocommit and not self.connection.info.transaction_status
        if self._is_sheltered or (is_as_it_was and not self._pools.is_given):
            await self._give_back()
        else:
            await shielded(self._give_back())

    async def _give_back(self) -> bool:
        """Return whether it may be used again."""
        connection = self.connection
        connection.remove_notice_handler(self._noted)
        try:
            if connection.info.transaction_status:
                await connection.rollback()
            if not self._has_autocommit and not connection.closed:
                await connection.set_autocommit(False)
        except psycopg.Error:
            await connection.close()
        finally:
            await self._pool.putconn(connection)
        return not connection.closed
