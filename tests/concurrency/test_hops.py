"""A call in a thread that a task awaits: whatever a future of asyncio's does for its task, this one does too."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import Any

import pytest

from turnlog.storage.sql.drivers.sqlite.threads import Hop, Readers, Worker


@pytest.fixture
def worker() -> Generator[Worker]:
    made = Worker("test")
    yield made
    made.close()


def hop(worker: Worker, call: Callable[[], Any]) -> Hop[Any]:
    made = Hop(call)
    worker.submit(made.run)
    return made


async def awaited(made: Hop[Any]) -> Any:
    return await made


class BrokenError(Exception):
    """Raised in the thread."""


def fail() -> None:
    raise BrokenError


async def test_the_task_gets_the_result_or_the_error(worker: Worker) -> None:
    assert await hop(worker, lambda: 5) == 5
    with pytest.raises(BrokenError):
        await hop(worker, fail)
    assert await hop(worker, threading.get_ident) != threading.get_ident()


async def test_what_is_over_before_it_is_awaited_is_there(worker: Worker) -> None:
    made, failed = hop(worker, lambda: 5), hop(worker, fail)
    await hop(worker, lambda: None)
    assert await made == 5
    with pytest.raises(BrokenError):
        await failed


async def test_a_task_keeps_its_context(worker: Worker) -> None:
    name = ContextVar[str]("name")

    async def within(value: str) -> tuple[str, str]:
        name.set(value)
        await hop(worker, lambda: None)
        before = name.get()
        name.set(value + "!")
        await hop(worker, lambda: None)
        return before, name.get()

    first, second = await asyncio.gather(within("a"), within("b"))
    assert (first, second) == (("a", "a!"), ("b", "b!"))


async def test_a_cancelled_task_ends_at_once_with_its_message_and_the_call_goes_on(worker: Worker) -> None:
    gate, done = threading.Event(), threading.Event()

    def wait() -> None:
        gate.wait()
        done.set()

    task = asyncio.ensure_future(awaited(hop(worker, wait)))
    await asyncio.sleep(0)
    task.cancel("enough")
    with pytest.raises(asyncio.CancelledError, match="enough"):
        await task
    assert not done.is_set()
    gate.set()
    await hop(worker, lambda: None)
    assert done.is_set()


async def test_a_cancel_that_comes_too_late_changes_nothing(worker: Worker) -> None:
    made = hop(worker, lambda: 5)
    await hop(worker, lambda: None)
    assert not made.cancel()
    assert await made == 5


async def test_the_first_of_result_and_cancel_counts(worker: Worker) -> None:
    """In every order in which the loop can hear of them, and the task goes on once."""
    for number in range(200):
        task = asyncio.ensure_future(awaited(hop(worker, lambda: 5)))
        for _ in range(number % 4):
            await asyncio.sleep(0)
        if task.cancel():
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            assert await task == 5


async def test_a_time_out_and_a_shield_work_around_it(worker: Worker) -> None:
    gate = threading.Event()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(awaited(hop(worker, gate.wait)), 0.01)
    gate.set()
    assert await asyncio.wait_for(awaited(hop(worker, lambda: 5)), 60)
    assert await asyncio.shield(awaited(hop(worker, lambda: 5))) == 5
    assert asyncio.isfuture(hop(worker, lambda: 5))


def test_a_task_written_in_python_and_debug_mode_go_with_it(worker: Worker) -> None:
    """As ``nest_asyncio`` puts it in a notebook, and as a debugger does."""
    python_task: Any = vars(asyncio.tasks)["_PyTask"]
    loop = asyncio.new_event_loop()
    loop.set_debug(True)
    loop.set_task_factory(lambda loop, coroutine, **kept: python_task(coroutine, loop=loop, **kept))

    async def main() -> int:
        gate = threading.Event()
        task = asyncio.ensure_future(awaited(hop(worker, gate.wait)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.set()
        with pytest.raises(BrokenError):
            await hop(worker, fail)
        return int(await hop(worker, lambda: 5))

    try:
        assert loop.run_until_complete(main()) == 5
    finally:
        loop.close()


async def test_an_error_leaves_no_cycle_behind(worker: Worker) -> None:
    """It would keep what its frames hold, a connection perhaps, until the next collection."""
    made = hop(worker, fail)
    seen = weakref.ref(made)
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(BrokenError) as caught:
            await made
        del made, caught
        await hop(worker, lambda: None)  # the thread has let go of it
        assert seen() is None
    finally:
        gc.enable()


async def test_a_reader_leaves_out_what_nobody_waits_for() -> None:
    readers, gate, made = Readers(), threading.Event(), list[int]()
    for _ in range(4):
        readers.submit(Hop(gate.wait))
    waiting = Hop(lambda: made.append(1))
    readers.submit(waiting)
    assert waiting.cancel()
    gate.set()
    last = Hop(lambda: 5)
    readers.submit(last)
    assert await last == 5
    readers.close()
    assert made == []
