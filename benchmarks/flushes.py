"""What writes while its flushes are counted: ``python -m benchmarks.flushes one_by_one PATH APPENDS SESSIONS``."""

from __future__ import annotations

import asyncio
import os
import sys
import time

from benchmarks.traffic import events
from turnlog import AsyncSessionRepository, open_async_store, open_store
from turnlog.testing.factories import session

ONE, EIGHT = 1, 8
_WRITERS = 8


def one_by_one(path: str, appends: int) -> None:
    """Append one event after another."""
    store = open_store(path)
    store.create(session("s"))
    for event in events("s", appends):
        store.append("s", (event,))
    # Closing would checkpoint, which is no append's doing.
    os._exit(0)


async def append_as_tasks(store: AsyncSessionRepository, appends: int, sessions: int) -> float:
    """Append from eight tasks, on as many sessions or on one; returns the seconds it took."""
    for number in range(sessions):
        await store.create(session(f"s{number}"))
    logs = [events(f"s{number % sessions}", appends // _WRITERS, seed=number) for number in range(_WRITERS)]

    async def write(number: int) -> None:
        for event in logs[number]:
            await store.append(event.session_id, (event,))

    begin = time.perf_counter()
    await asyncio.gather(*(write(number) for number in range(_WRITERS)))
    return time.perf_counter() - begin


async def _tasks(path: str, appends: int, sessions: int) -> None:
    await append_as_tasks(open_async_store(path), appends, sessions)
    os._exit(0)


if __name__ == "__main__":
    writing, place, count, kept_in = sys.argv[1:]
    if writing == one_by_one.__name__:
        one_by_one(place, int(count))
    asyncio.run(_tasks(place, int(count), int(kept_in)))
