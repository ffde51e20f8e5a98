"""Calls at the same time: real threads for a sync store, tasks for an async one."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

#: How many callers every race has.
RACERS: Final = 4
#: What the threads of a race are called, so that a store under test can tell them from its own.
RACER: Final = "racer"


async def in_tasks(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T | BaseException]:
    """What each call returned or raised, in their order; each runs in a task of its own."""

    async def run(call: Callable[[], Awaitable[T]]) -> T:
        return await call()

    return await asyncio.gather(*map(run, calls), return_exceptions=True)


def in_threads(calls: Sequence[Callable[[], T]]) -> list[T | BaseException]:
    """What each call returned or raised, in their order; each runs in a thread of its own, and all begin together."""
    outcomes: dict[int, T | BaseException] = {}
    start = threading.Barrier(len(calls))

    def run(index: int, call: Callable[[], T]) -> None:
        try:
            start.wait()
            outcomes[index] = call()
        except BaseException as error:  # noqa: BLE001 - handed to the caller, who asks for it
            outcomes[index] = error

    threads = [
        threading.Thread(target=run, args=(index, call), name=f"{RACER}-{index}", daemon=True)
        for index, call in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [outcomes[index] for index in range(len(calls))]


async def task_pause() -> None:
    """Let other tasks run: a store that never waits would run alone."""
    await asyncio.sleep(0)


def thread_pause() -> None:
    """Let other threads run."""
    time.sleep(0)


def returned(outcomes: Sequence[T | BaseException]) -> list[T]:
    """The values of the calls that returned."""
    return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]


def raised(outcomes: Sequence[T | BaseException]) -> list[type[BaseException]]:
    """The kinds of what the others raised."""
    return [type(outcome) for outcome in outcomes if isinstance(outcome, BaseException)]
