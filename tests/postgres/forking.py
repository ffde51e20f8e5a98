"""A process forks with a store open: ``python -m tests.postgres.forking SCENARIO URL``; both sides go on."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, Final

from psycopg import Connection
from psycopg_pool import ConnectionPool

from tests.concurrency.stores import opened, opened_async
from turnlog.errors import StoreClosedError, StoreUnavailableError
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.opening import system_clock
from turnlog.storage.sql import SqlRepository
from turnlog.storage.sql.drivers.postgres import PostgresDriver, PostgresOptions
from turnlog.testing import factories

_EACH: Final = 20


def in_child(work: Callable[[], None]) -> int:
    """Fork; the exit code of the child that does the work."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - told by the exit code
            sys.stderr.write(f"the child: {error!r}\n")
            sys.stderr.flush()
            os._exit(1)
        sys.exit(0)  # the long way, so that what is collected at the end is collected here too
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def threads(url: str) -> None:
    """Other threads write while the process forks; parent and child write after it."""
    with opened(url) as store:
        store.create(factories.session())
        stop = threading.Event()
        written: list[int] = []

        def write(first: int) -> None:
            number = first
            while not stop.is_set():
                store.append("s", [factories.user(number)])
                written.append(number)
                number += 1

        writers = [threading.Thread(target=write, args=(first,)) for first in (10_000, 20_000)]
        for writer in writers:
            writer.start()

        def child() -> None:
            for number in range(_EACH):
                store.append("s", [factories.user(30_000 + number)])
            store.close()

        while len(written) < _EACH:
            pass
        assert in_child(child) == 0
        before = len(written)
        while len(written) < before + _EACH:
            pass
        stop.set()
        for writer in writers:
            writer.join()
        assert store.version("s") == len(written) + _EACH


def tasks(url: str) -> None:
    """The parent has used the store in a loop; the child does in one of its own; then the parent again."""
    store = opened_async(url)

    async def use(first: int) -> None:
        await asyncio.gather(*(store.append("s", [factories.user(first + n)]) for n in range(_EACH)))

    async def begin() -> None:
        await store.create(factories.session())
        await use(10_000)

    async def child() -> None:
        await use(20_000)
        await store.close()

    asyncio.run(begin())
    assert in_child(lambda: asyncio.run(child())) == 0
    asyncio.run(use(30_000))

    async def end() -> int:
        version = await store.version("s")
        await store.close()
        return version

    assert asyncio.run(end()) == 3 * _EACH


def given_pool(url: str) -> None:
    """A pool that the caller has brought is the parent's; the child is told so."""
    pool: ConnectionPool[Connection] = ConnectionPool(url, min_size=1, open=False)
    with pool:
        driver = PostgresDriver(PostgresOptions(conninfo=url), pool)
        store = SqlRepository(driver, system_clock, token_counter=EstimatedTokens())
        store.create(factories.session())

        def child() -> None:
            try:
                store.version("s")
            except StoreUnavailableError:
                os._exit(0)
            os._exit(1)

        assert in_child(child) == 0
        assert store.version("s") == 0


def closed(url: str) -> None:
    """What was closed before the fork is closed behind it."""
    store = opened(url)
    store.close()

    def child() -> None:
        try:
            store.version("s")
        except StoreClosedError:
            return
        raise AssertionError

    assert in_child(child) == 0


SCENARIOS: Final[dict[str, Callable[[str], Any]]] = {
    "threads": threads,
    "tasks": tasks,
    "given pool": given_pool,
    "closed": closed,
}

if __name__ == "__main__":
    SCENARIOS[sys.argv[1]](sys.argv[2])
