"""Whose connections they are: of each loop, of each process, or of a caller who has brought a pool (H-13)."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import psycopg
import pytest
from psycopg import AsyncConnection, Connection
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from tests.concurrency.stores import opened_async
from tests.conftest import ROOT
from tests.postgres.forking import SCENARIOS
from turnlog.errors import StoreClosedError
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.opening import system_clock
from turnlog.storage.sql import AsyncSqlRepository, SqlRepository
from turnlog.storage.sql.drivers.postgres import AsyncPostgresDriver, PostgresDriver, PostgresOptions
from turnlog.testing import factories

pytestmark = [pytest.mark.store, pytest.mark.timeout(120)]


def sessions_on(url: str) -> int:
    """How many others are connected to the database."""
    query = b"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(url, autocommit=True) as connection:
        (found,) = connection.execute(query + b" AND backend_type = 'client backend'").fetchall()
    return int(found[0])


def test_one_async_store_serves_several_loops_one_after_the_other(url: str) -> None:
    """It belongs to none of them, and hangs up on what a loop that has ended has left."""
    store = opened_async(url)

    async def use(number: int) -> int:
        if number == 0:
            await store.create(factories.session())
        await asyncio.gather(*(store.append("s", [factories.user(10 * number + n)]) for n in range(5)))
        return await store.version("s")

    assert [asyncio.run(use(number)) for number in range(5)] == [5, 10, 15, 20, 25]
    assert sessions_on(url) <= 8
    asyncio.run(store.close())
    wait_until_nobody_is_on(url)


def wait_until_nobody_is_on(url: str) -> None:
    gc.collect()  # a connection that was being made when its loop ended belongs to nobody
    while sessions_on(url):
        pass


def test_two_loops_at_once(url: str) -> None:
    """And it is closed from one of them while the other still runs."""
    store = opened_async(url)
    first_done, second_done = threading.Event(), threading.Event()

    async def use(first: int) -> None:
        await asyncio.gather(*(store.append("s", [factories.user(first + n)]) for n in range(20)))

    async def stay() -> None:
        await use(100)
        first_done.set()
        await asyncio.to_thread(second_done.wait)

    async def close() -> None:
        await use(200)
        assert await store.version("s") == 40
        await store.close()
        second_done.set()

    async def begin() -> None:
        await store.create(factories.session())

    asyncio.run(begin())
    other = threading.Thread(target=lambda: asyncio.run(stay()))
    other.start()
    assert first_done.wait(30)
    asyncio.run(close())
    other.join()
    wait_until_nobody_is_on(url)


async def test_a_cancelled_call_gives_its_connection_back(url: str) -> None:
    """Cancelled at a different moment each time; a write is whole or absent (R-14)."""
    store = opened_async(f"{url}?pool_max=2")
    await store.create(factories.session())
    for number in range(1, 61):
        batch = factories.turn(4 * number)
        call: Any = store.append("s", batch) if number % 2 else store.events("s")
        task = asyncio.ensure_future(call)
        for _ in range(number % 13):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        if number % 2:
            found = await store.find_events("s", event_ids=[event.id for event in batch])
            assert len(found) in (0, 4)
            again = await store.append("s", batch)
            assert [event.id for event in again.events] == [event.id for event in batch]
    assert await store.version("s") == 30 * 4
    # Both connections can be had.
    driver: Any = cast("AsyncSqlRepository", store)._driver
    pool = await driver._pools.current()
    lent = [await asyncio.wait_for(pool.getconn(), 5) for _ in range(2)]
    for connection in lent:
        await pool.putconn(connection)
    await store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="NOT TESTED: this system has no fork")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_fork(scenario: str, url: str) -> None:
    command = [sys.executable, "-m", "tests.postgres.forking", scenario, url]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr


#: A pool that is set up for other uses than ours: transactions begin by themselves, and are serialisable.
_OTHERS: dict[str, Any] = {
    "autocommit": False,
    "row_factory": dict_row,
    "options": "-c default_transaction_isolation=serializable",
}


@pytest.fixture
def given(url: str) -> Iterator[ConnectionPool[Connection]]:
    pool: ConnectionPool[Connection] = ConnectionPool(url, min_size=1, max_size=2, kwargs=_OTHERS, open=False)
    with pool:
        yield pool


@pytest.fixture
async def given_to_tasks(url: str) -> AsyncIterator[AsyncConnectionPool[AsyncConnection]]:
    pool: AsyncConnectionPool[AsyncConnection] = AsyncConnectionPool(
        url, min_size=1, max_size=2, kwargs=_OTHERS, open=False
    )
    async with pool:
        yield pool


def test_a_pool_that_is_brought_is_used_and_left_as_it_was(url: str, given: ConnectionPool[Connection]) -> None:
    driver = PostgresDriver(PostgresOptions(conninfo=url), given)
    with SqlRepository(driver, system_clock, token_counter=EstimatedTokens()) as store:
        store.create(factories.session())
        assert store.append("s", [factories.user(1)]).version == 1
        assert store.append("s", factories.turn(2)).version == 5
        assert len(store.events("s")) == 5
    assert not given.closed
    with given.connection() as connection:
        assert not connection.autocommit
        # What was acknowledged is there for everybody, not only inside a transaction that nobody ends.
        found: Any = connection.execute("SELECT version FROM session").fetchone()
        assert found == {"version": 5}
    with pytest.raises(StoreClosedError):
        store.version("s")


async def test_a_pool_that_is_brought_for_tasks(url: str, given_to_tasks: AsyncConnectionPool[AsyncConnection]) -> None:
    driver = AsyncPostgresDriver(PostgresOptions(conninfo=url), given_to_tasks)
    async with AsyncSqlRepository(driver, system_clock, token_counter=EstimatedTokens()) as store:
        await store.create(factories.session())
        appends = [store.append("s", [factories.user(number)]) for number in range(1, 9)]
        assert sorted(result.version for result in await asyncio.gather(*appends)) == list(range(1, 9))
        assert (await store.append("s", factories.turn(20))).version == 12
    assert not given_to_tasks.closed
    async with given_to_tasks.connection() as connection:
        assert not connection.autocommit
        cursor = await connection.execute("SELECT version FROM session")
        found: Any = await cursor.fetchone()
        assert found == {"version": 12}


def test_a_pool_that_is_not_open_is_told(url: str) -> None:
    pool: ConnectionPool[Connection] = ConnectionPool(url, open=False)
    store = SqlRepository(PostgresDriver(PostgresOptions(conninfo=url), pool), system_clock)
    with pytest.raises(StoreClosedError, match="not open"):
        store.version("s")
