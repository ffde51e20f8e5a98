"""A store is closed while others use it: what was acknowledged stays, all others are told, and nothing is left open."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from tests.concurrency.stores import MEMORY, opened, opened_async, sqlite_url
from tests.concurrency.watched import Gate, watched_store
from turnlog.errors import StoreClosedError, StoreError
from turnlog.storage.protocol import AsyncSessionRepository, Batch, SessionRepository
from turnlog.storage.sql.drivers.sqlite.connecting import Connection
from turnlog.testing import factories

# Threads that hang would keep a signal's error from ending the test; this way ends the process and shows where.
pytestmark = pytest.mark.timeout(120, method="thread")

USERS = 8
#: What each user has done before the store is closed.
USES = 10

STORES = pytest.mark.parametrize("kind", ["memory", "sqlite", "sqlite in memory"])


def url_of(kind: str, folder: Path) -> str:
    return {"memory": MEMORY, "sqlite": sqlite_url(folder), "sqlite in memory": "sqlite::memory:"}[kind]


def open_files(folder: Path) -> list[str]:
    """The files below the folder that this process has open."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("NOT TESTED: this system does not show the open files of a process")
    links: list[str] = []
    for descriptor in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names of descriptors, some gone when looked at
        try:
            links.append(os.readlink(f"/proc/self/fd/{descriptor}"))  # noqa: PTH115 - the same
        except OSError:
            continue
    return [link for link in links if link.startswith(str(folder))]


def own_threads() -> list[str]:
    # The one that renews leases is the process's own, and ends some seconds after the last turn.
    mine = ("turnlog-reader", "turnlog-writer")
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(mine)]


class Users:
    """Threads that use a store until they are told that it is closed."""

    def __init__(self, store: SessionRepository) -> None:
        self.acknowledged: set[str] = set()
        self._store = store
        self._busy = threading.Barrier(USERS + 1)

    def use(self, name: int) -> None:
        for number in count():
            if number == USES:
                self._busy.wait()
            event = factories.user(number, id=f"{name}-{number}")
            try:
                self._store.append("s", [event])
                self.acknowledged.add(event.id)
                self._store.events("s")
            except StoreClosedError:
                return

    def close_meanwhile(self) -> None:
        with ThreadPoolExecutor(USERS) as pool:
            users = [pool.submit(self.use, name) for name in range(USERS)]
            self._busy.wait()
            self._store.close()
            for user in users:
                user.result()


@STORES
def test_closed_while_threads_use_it(kind: str, tmp_path: Path) -> None:
    store = opened(url_of(kind, tmp_path))
    store.create(factories.session())
    users = Users(store)
    users.close_meanwhile()
    assert open_files(tmp_path) == []
    if kind == "sqlite":
        with opened(sqlite_url(tmp_path)) as again:
            assert {event.id for event in again.events("s")} >= users.acknowledged


@STORES
async def test_closed_while_tasks_use_it(kind: str, tmp_path: Path) -> None:
    store = opened_async(url_of(kind, tmp_path))
    await store.create(factories.session())
    acknowledged, busy = set[str](), asyncio.Event()

    async def use(name: int) -> None:
        for number in count():
            if number == USES:
                busy.set()
            event = factories.user(number, id=f"{name}-{number}")
            try:
                await store.append("s", [event])
                acknowledged.add(event.id)
                await store.events("s")
            except StoreClosedError:
                return
            await asyncio.sleep(0)

    users = [asyncio.ensure_future(use(name)) for name in range(USERS)]
    await busy.wait()
    await store.close()
    await asyncio.gather(*users)
    assert open_files(tmp_path) == []
    assert own_threads() == []
    if kind == "sqlite":
        async with opened_async(sqlite_url(tmp_path)) as again:
            assert {event.id for event in await again.events("s")} >= acknowledged


async def test_closed_from_another_loop(tmp_path: Path) -> None:
    """A call is handed to the threads before the close, or refused: it never finds them gone."""
    store = opened_async(sqlite_url(tmp_path))
    await store.create(factories.session())
    busy = asyncio.Event()

    async def use(name: int) -> None:
        for number in count():
            if number == USES:
                busy.set()
            try:
                await store.append("s", [factories.user(number, id=f"{name}-{number}")])
                await store.version("s")
            except StoreClosedError:
                return

    users = [asyncio.ensure_future(use(name)) for name in range(USERS)]
    await busy.wait()
    await asyncio.to_thread(lambda: asyncio.run(store.close()))
    await asyncio.gather(*users)
    assert own_threads() == []


def test_a_write_under_way_ends_before_the_close(tmp_path: Path) -> None:
    """The connection is not closed under a commit."""
    gate = Gate("COMMIT")
    store = watched_store(tmp_path, gate)
    store.create(factories.session())
    gate.close()
    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(store.append, "s", factories.turn(1))
        gate.wait_until_reached()
        closing = pool.submit(store.close)
        gate.open()
        assert writing.result().version == 4
        closing.result()
    with opened(sqlite_url(tmp_path)) as again:
        assert again.version("s") == 4


def test_a_read_under_way_closes_its_own_connection(tmp_path: Path) -> None:
    gate = Gate("BEGIN")
    store = watched_store(tmp_path, gate)
    store.create(factories.session())
    gate.close()
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(store.version, "s")
        gate.wait_until_reached()
        store.close()
        assert open_files(tmp_path)
        gate.open()
        assert reading.result() == 0
    assert open_files(tmp_path) == []


def test_many_readers_leave_few_connections_open(tmp_path: Path) -> None:
    connections: list[Connection] = []
    start = threading.Barrier(20)
    with watched_store(tmp_path, lambda _: None, connections) as store:
        store.create(factories.session())

        def read(_: int) -> int:
            start.wait()
            return store.version("s")

        with ThreadPoolExecutor(20) as pool:
            assert list(pool.map(read, range(20))) == [0] * 20
        # One for the writer, one for each reader that is kept. SQLite itself keeps the database file of a closed
        # connection open while another one has it open, for the next that is opened: not counted.
        assert len([name for name in open_files(tmp_path) if name.endswith("-wal")]) <= 1 + 8
    assert connections
    assert open_files(tmp_path) == []


@pytest.mark.parametrize("kind", ["sqlite", "sqlite in memory"])
def test_not_closed_from_the_batches_of_a_restore(kind: str, tmp_path: Path) -> None:
    """It would wait for itself."""
    with opened(url_of(kind, tmp_path)) as store:

        def batches() -> Iterator[Batch]:
            yield factories.turn(1)
            with pytest.raises(StoreError):
                store.close()
            yield factories.turn(5)

        store.restore(factories.session(), batches())
        assert store.version("s") == 8


@STORES
def test_after_a_close_everything_is_refused(kind: str, tmp_path: Path) -> None:
    store = opened(url_of(kind, tmp_path))
    store.close()
    store.close()
    uses: list[Callable[[], object]] = [
        lambda: store.create(factories.session()),
        lambda: store.append("s", factories.turn(1)),
        lambda: store.events("s"),
        lambda: store.version("s"),
        lambda: list(store.iter_events("s")),
        lambda: store.restore(factories.session(), []),
    ]
    for use in uses:
        with pytest.raises(StoreClosedError):
            use()


@STORES
@pytest.mark.parametrize("used", [True, False], ids=["used", "never used"])
async def test_after_an_async_close_everything_is_refused(kind: str, tmp_path: Path, *, used: bool) -> None:
    store: AsyncSessionRepository = opened_async(url_of(kind, tmp_path))
    if used:
        await store.version("s")
    await store.close()
    await store.close()
    with pytest.raises(StoreClosedError):
        await store.append("s", factories.turn(1))
    with pytest.raises(StoreClosedError):
        await store.events("s")
    with pytest.raises(StoreClosedError):
        await store.create(factories.session())
    assert open_files(tmp_path) == []
    assert own_threads() == []
