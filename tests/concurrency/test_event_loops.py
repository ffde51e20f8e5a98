"""Stores and event loops: inside a running one, across several, and with callers that are cancelled."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from tests.concurrency.stores import MEMORY, opened, opened_async, sqlite_url
from tests.concurrency.watched import Gate, gated_async_store
from turnlog.storage.protocol import AsyncSessionRepository
from turnlog.testing import factories

# Threads that hang would keep a signal's error from ending the test; this way ends the process and shows where.
pytestmark = pytest.mark.timeout(120, method="thread")

STORES = pytest.mark.parametrize("kind", ["memory", "sqlite", "sqlite in memory"])


def url_of(kind: str, folder: Path) -> str:
    return {"memory": MEMORY, "sqlite": sqlite_url(folder), "sqlite in memory": "sqlite::memory:"}[kind]


@STORES
async def test_the_sync_store_works_inside_a_running_loop(kind: str, tmp_path: Path) -> None:
    """As in a notebook."""
    asyncio.get_running_loop()
    with opened(url_of(kind, tmp_path)) as store:
        store.create(factories.session())
        store.append("s", factories.turn(1))
        assert store.version("s") == 4


@STORES
def test_one_async_store_serves_several_loops(kind: str, tmp_path: Path) -> None:
    """It belongs to none of them."""
    store = opened_async(url_of(kind, tmp_path))

    async def use(number: int) -> int:
        if number == 1:
            await store.create(factories.session())
        await asyncio.gather(*(store.append("s", [factories.user(10 * number + n)]) for n in range(5)))
        return await store.version("s")

    assert [asyncio.run(use(number)) for number in (1, 2, 3)] == [5, 10, 15]
    asyncio.run(store.close())


async def test_a_cancelled_append_is_whole_or_absent(tmp_path: Path) -> None:
    """Cancelled at a different moment each time; afterwards the store works, and appending again settles it (R-14)."""
    async with opened_async(sqlite_url(tmp_path)) as store:
        await store.create(factories.session())
        for number in range(1, 101):
            batch = factories.conversation(1, first=4 * number)
            task = asyncio.ensure_future(store.append("s", batch))
            for _ in range(number % 7):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            found = await store.find_events("s", event_ids=[event.id for event in batch])
            assert len(found) in (0, 4)
            again = await store.append("s", batch)
            assert [event.id for event in again.events] == [event.id for event in batch]
            assert await store.version("s") == 4 * number


async def test_a_write_goes_on_when_its_caller_is_cancelled(tmp_path: Path) -> None:
    """Cancelled while its commit is under way: it is there, and what waited beside it has its own outcome."""
    gate = Gate("COMMIT")
    async with gated_async_store(tmp_path, gate) as store:
        await store.create(factories.session())
        gate.close()
        cancelled = asyncio.ensure_future(store.append("s", factories.turn(1)))
        await asyncio.to_thread(gate.wait_until_reached)
        beside = asyncio.ensure_future(store.append("s", factories.turn(5)))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        assert cancelled.cancelled()
        gate.open()
        assert [event.position for event in (await beside).events] == [5, 6, 7, 8]
        assert await store.version("s") == 8


def test_a_loop_that_ends_while_a_write_is_under_way(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody hears of the outcome any more, and nothing complains; the store serves the next loop."""
    gate = Gate("COMMIT")
    store = gated_async_store(tmp_path, gate)
    caplog.set_level(logging.WARNING)

    async def leave_behind(store: AsyncSessionRepository) -> None:
        await store.create(factories.session())
        gate.close()
        left = asyncio.ensure_future(store.append("s", factories.turn(1)))
        await asyncio.to_thread(gate.wait_until_reached)
        left.cancel()

    async def come_back(store: AsyncSessionRepository) -> int:
        await store.append("s", factories.turn(5))
        version = await store.version("s")
        await store.close()
        return version

    asyncio.run(leave_behind(store))
    gate.open()
    assert asyncio.run(come_back(store)) == 8
    assert not caplog.records
