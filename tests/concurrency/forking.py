"""Processes that fork with a store open: ``python -m tests.concurrency.forking SCENARIO FOLDER``; 0 if all is well.

A process of its own each, since a fork that goes wrong takes the whole process with it.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

from tests.concurrency.stores import MEMORY, opened, opened_async, sqlite_url
from turnlog.errors import StoreUnavailableError
from turnlog.log.events import SessionEvent
from turnlog.log.messages import UserMessage
from turnlog.storage.protocol import Batch, SessionRepository
from turnlog.testing import factories

FORKS: Final = 20
#: What a child appends.
APPENDS: Final = 5


def event(event_id: str, session_id: str = "s") -> SessionEvent:
    return SessionEvent(session_id=session_id, id=event_id, message=UserMessage(event_id))


def in_child(work: Callable[[], object]) -> int:
    """The id of a new child that does the work and ends with 0, or with a traceback and 1."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException:  # noqa: BLE001 - the child must not return into the parent's code
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def assert_ended_well(child: int) -> None:
    _, status = os.waitpid(child, 0)
    assert status == 0, f"a child ended with {status}"


def assert_whole(store: SessionRepository, acknowledged: set[str] | None = None) -> None:
    """A log without gap or repeat, that holds all that was acknowledged."""
    events = store.events("s")
    assert [one.position for one in events] == list(range(1, len(events) + 1))
    assert store.version("s") == len(events)
    ids = {one.id for one in events}
    assert len(ids) == len(events)
    assert (acknowledged or set()) <= ids


def assert_sound(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@contextmanager
def another_thread_writing(store: SessionRepository, acknowledged: set[str]) -> Generator[None, None, None]:
    """Inside the block another thread appends without a pause."""
    done = threading.Event()

    def write() -> None:
        for number in count():
            if done.is_set():
                return
            store.append("s", [event(f"parent-{number}")])
            acknowledged.add(f"parent-{number}")
            # Between two appends there is room for other processes.
            store.events("s")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def child_ids(number: int) -> list[str]:
    return [f"child-{number}-{index}" for index in range(APPENDS)]


def append_all(store: SessionRepository, ids: list[str]) -> None:
    for event_id in ids:
        store.append("s", [event(event_id)])
        assert store.find_events("s", event_ids=[event_id])


def sync_file(folder: Path) -> None:
    """Children and parent go on with the same file."""
    acknowledged = set[str]()
    with opened(sqlite_url(folder)) as store:
        store.create(factories.session())
        with another_thread_writing(store, acknowledged):
            for number in range(FORKS):
                ids = child_ids(number)
                assert_ended_well(in_child(partial(append_all, store, ids)))
                acknowledged.update(ids)
                store.append("s", [event(f"between-{number}")])
        assert_whole(store, acknowledged)
    assert_sound(folder / "raced.db")


def children_outlive_the_parents_store(folder: Path) -> None:
    """The parent closes its store, the last in its process, while the child uses its own: nothing is taken from it."""
    url = sqlite_url(folder)
    to_child, to_parent = os.pipe(), os.pipe()
    store = opened(url)
    store.create(factories.session())
    store.append("s", [event("first")])

    def work() -> None:
        store.append("s", [event("child-1")])
        os.write(to_parent[1], b"1")
        os.read(to_child[0], 1)
        store.append("s", [event("child-2")])

    child = in_child(work)
    os.read(to_parent[0], 1)
    store.close()
    os.write(to_child[1], b"1")
    assert_ended_well(child)
    with opened(url) as again:
        assert [one.id for one in again.events("s")] == ["first", "child-1", "child-2"]


def own_copy(url: str) -> None:
    """In memory a child goes on with a copy, whole as it was at the fork."""
    with opened(url) as store:
        store.create(factories.session())

        def work(number: int) -> None:
            assert_whole(store)
            append_all(store, child_ids(number))
            assert_whole(store, set(child_ids(number)))

        acknowledged = set[str]()
        with another_thread_writing(store, acknowledged):
            for number in range(FORKS):
                assert_ended_well(in_child(partial(work, number)))
        assert_whole(store, acknowledged)
        assert not any(one.id.startswith("child") for one in store.events("s"))


def sync_memory(_: Path) -> None:
    own_copy(MEMORY)


def sync_sqlite_in_memory(_: Path) -> None:
    own_copy("sqlite::memory:")


def run_in_child(child: Callable[[list[str]], Coroutine[None, None, None]], ids: list[str]) -> None:
    asyncio.run(child(ids))


def async_file(folder: Path) -> None:
    """A task forks while others write; the child has a loop of its own, and the parent's loop goes on."""
    url = sqlite_url(folder)
    acknowledged = set[str]()

    async def main() -> None:
        async with opened_async(url) as store:
            await store.create(factories.session())

            async def child(ids: list[str]) -> None:
                for event_id in ids:
                    await store.append("s", [event(event_id)])
                assert len(await store.find_events("s", event_ids=ids)) == len(ids)
                await store.close()

            async def write(name: int) -> None:
                for number in range(FORKS):
                    await store.append("s", [event(f"task-{name}-{number}")])
                    acknowledged.add(f"task-{name}-{number}")

            writing = [asyncio.ensure_future(write(name)) for name in range(4)]
            for number in range(FORKS):
                await store.append("s", [event(f"between-{number}")])
                ids = child_ids(number)
                born = in_child(partial(run_in_child, child, ids))
                await asyncio.to_thread(assert_ended_well, born)
                acknowledged.update(ids)
            await asyncio.gather(*writing)

    asyncio.run(main())
    with opened(url) as store:
        assert_whole(store, acknowledged)
    assert_sound(folder / "raced.db")


def in_the_middle_of_its_own_restore(folder: Path) -> None:
    """A child born in the middle of a transaction has no part in it, and is told so; the parent finishes it."""
    url = sqlite_url(folder)

    def refused(store: SessionRepository) -> None:
        for use in (lambda: store.version("s"), lambda: opened(url)):
            try:
                use()
            except StoreUnavailableError:
                continue
            raise AssertionError("the child used a file that was being written when it was born")

    with opened(url) as store:

        def batches() -> Iterator[Batch]:
            yield [event("first")]
            assert_ended_well(in_child(lambda: refused(store)))
            yield [event("second")]

        store.restore(factories.session(), batches())
        assert_whole(store, {"first", "second"})


SCENARIOS: Final = {
    scenario.__name__: scenario
    for scenario in (
        sync_file,
        children_outlive_the_parents_store,
        sync_memory,
        sync_sqlite_in_memory,
        async_file,
        in_the_middle_of_its_own_restore,
    )
}

if __name__ == "__main__":
    SCENARIOS[sys.argv[1]](Path(sys.argv[2]))
