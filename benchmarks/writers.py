"""Tasks: the hop that async costs, how often appends flush, and eight writers that share commits."""

from __future__ import annotations

import asyncio
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import cycle
from pathlib import Path
from statistics import median

from benchmarks.floor import Floor, SlowCommits, bodies
from benchmarks.flushes import EIGHT, ONE, append_as_tasks, one_by_one
from benchmarks.lab import ROUNDS, Result, Scale, folder, one_core
from benchmarks.logs import fill
from benchmarks.traffic import events, repeated
from turnlog import EventFilter, SessionEvent, open_async_store, open_store
from turnlog.storage.opening import system_clock
from turnlog.storage.sql import AsyncSqlRepository
from turnlog.storage.sql.drivers.sqlite import AsyncSqliteDriver, SqliteOptions
from turnlog.storage.sql.drivers.sqlite.connecting import connect

_WINDOW = EventFilter.last(50)


def results(scale: Scale) -> Iterator[Result]:
    """Rows for the hop, for the flushes, and for the throughput of eight writers on one session and on eight."""
    with folder() as place:
        path = str(place / "hops.db")
        with open_store(path) as store:
            fill(store, 1_000, 0)
        with one_core():
            hops = asyncio.run(_hops(path, scale))
        yield from hops
    few = scale.appends // 10
    yield Result("flushes of an append, checkpoints aside", _flushes(one_by_one.__name__, few), 1.0)
    yield Result(f"flushes per append over {scale.appends:,}", _flushes(one_by_one.__name__, scale.appends), 1.05)
    for sessions in (EIGHT, ONE):
        name = f"8 async writers on {_sessions(sessions)}"
        flushes = _flushes(append_as_tasks.__name__, scale.appends, sessions)
        yield Result(f"{name}: flushes per append", flushes, 0.4)
        note = "commits of both sides take 2 ms more"
        yield Result(f"{name}: throughput ÷ one by hand", _throughput(sessions, scale), 3.0, at_least=True, note=note)


def _sessions(sessions: int) -> str:
    return "one session" if sessions == ONE else f"{sessions} sessions"


async def _hops(path: str, scale: Scale) -> list[Result]:
    """Async beside sync and one and a half empty hops to a thread of the same run."""
    source = repeated(5)

    def event() -> SessionEvent:
        return SessionEvent(session_id="s", message=next(source))

    with open_store(path) as sync:
        async with open_async_store(path) as store:
            appends = await _hop(lambda: store.append("s", (event(),)), lambda: sync.append("s", (event(),)), scale)
            windows = await _hop(lambda: store.events("s", _WINDOW), lambda: sync.events("s", _WINDOW), scale)
    beside = "÷ (the same in sync + 1.5 empty hops to a thread)"
    return [Result(f"async append {beside}", appends, 1.0), Result(f"async last(50) {beside}", windows, 1.0)]


async def _hop(tasks: Callable[[], Awaitable[object]], threads: Callable[[], object], scale: Scale) -> float:
    loop = asyncio.get_running_loop()
    order = random.Random(2)  # noqa: S311 - repeatable

    async def in_sync() -> None:
        threads()

    async def empty() -> None:
        await loop.run_in_executor(None, _nothing)

    async def in_task() -> None:
        await tasks()

    rounds: list[float] = []
    for _ in range(ROUNDS):
        ratios: list[float] = []
        for _ in range(scale.visits * 2):
            calls = (in_task, in_sync, empty)
            times = {call: await _block(call) for call in order.sample(calls, len(calls))}
            ratios.append(times[in_task] / (times[in_sync] + 1.5 * times[empty]))
        rounds.append(median(ratios))
    return median(rounds)


async def _block(call: Callable[[], Awaitable[None]]) -> float:
    times: list[int] = []
    for _ in range(5):
        begin = time.perf_counter_ns()
        await call()
        times.append(time.perf_counter_ns() - begin)
    return median(times)


def _nothing() -> None:
    return None


def _flushes(writing: str, appends: int, sessions: int = ONE) -> float | None:
    """``fsync`` and ``fdatasync`` calls per append, those of opening subtracted; None where there is no strace."""
    if shutil.which("strace") is None:
        return None
    with folder() as place:
        return (_traced(place, writing, appends, sessions) - _traced(place, writing, 0, sessions)) / appends


def _traced(place: Path, writing: str, appends: int, sessions: int) -> int:
    log = place / f"{appends}.trace"
    arguments = [writing, str(place / f"{appends}.db"), str(appends), str(sessions)]
    tracer = ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(log)]
    command = [*tracer, sys.executable, "-m", "benchmarks.flushes", *arguments]
    subprocess.run(command, check=True)  # noqa: S603 - our own interpreter, on our own module
    return len(re.findall(r"\bf(?:data)?sync\(", log.read_text()))


def _throughput(sessions: int, scale: Scale) -> float:
    ratios: list[float] = []
    for _ in range(ROUNDS):
        with folder() as place:
            ratios.append(_together(place / "ours.db", sessions, scale) / _alone(place / "floor.db", scale))
    return median(ratios)


def _alone(path: Path, scale: Scale) -> float:
    """Appends a second of one writer by hand."""
    floor = Floor(path, SlowCommits)
    key = floor.create("s")
    kept = cycle(bodies(events("s", 400)))
    count = scale.appends // 4
    begin = time.perf_counter()
    for _ in range(count):
        floor.append(key, next(kept))
    rate = count / (time.perf_counter() - begin)
    floor.close()
    return rate


def _together(path: Path, sessions: int, scale: Scale) -> float:
    """Appends a second of eight tasks."""

    def connected(options: SqliteOptions) -> sqlite3.Connection:
        return connect(options, factory=SlowCommits)

    async def write() -> float:
        async with AsyncSqlRepository(
            AsyncSqliteDriver(SqliteOptions(path=str(path)), connected), system_clock
        ) as store:
            return await append_as_tasks(store, scale.appends, sessions)

    return scale.appends / asyncio.run(write())
