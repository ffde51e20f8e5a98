"""Tasks: the hop that async costs, and eight writers that share commits."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.appending import filled
from benchmarks.floor import Floor, SlowCommits, bodies
from benchmarks.lab import ROUNDS, Result, Scale, folder
from benchmarks.traffic import events, messages
from turnlog import EventFilter, SessionEvent, open_async_store, open_store
from turnlog.storage.opening import system_clock
from turnlog.storage.sql import AsyncSqlRepository
from turnlog.storage.sql.drivers.sqlite import AsyncSqliteDriver, SqliteOptions
from turnlog.storage.sql.drivers.sqlite.connecting import connect
from turnlog.testing.factories import session

_WRITERS = 8


def results(scale: Scale) -> Iterator[Result]:
    """Rows for the hop, and for eight writers on one session and on eight."""
    with folder() as place:
        with open_store(str(place / "a.db")) as store:
            filled(store, 1_000, 0)
        yield from asyncio.run(_hops(place / "a.db", scale))
    for sessions in (8, 1):
        yield from _shared_commits(sessions, scale)


async def _hops(path: Path, scale: Scale) -> list[Result]:
    """Async against sync plus one and a half empty hops, in the same run."""
    source = messages(5)
    window = EventFilter.last(50)
    loop = asyncio.get_running_loop()
    found = []
    with open_store(str(path)) as sync:
        async with open_async_store(str(path)) as store:

            def event() -> SessionEvent:
                return SessionEvent(session_id="s", message=next(source))

            pairs: list[tuple[str, Callable[[], Awaitable[Any]], Callable[[], Any]]] = [
                ("append", lambda: store.append("s", (event(),)), lambda: sync.append("s", (event(),))),
                ("last(50)", lambda: store.events("s", window), lambda: sync.events("s", window)),
            ]
            for name, tasks, threads in pairs:
                ratios = []
                for _ in range(ROUNDS):
                    own, plain, hop = [], [], []
                    for _ in range(scale.calls):
                        own.append(await _awaited(tasks))
                        plain.append(_called(threads))
                        hop.append(await _awaited(lambda: loop.run_in_executor(None, _nothing)))
                    ratios.append(median(own) / (median(plain) + 1.5 * median(hop)))
                found.append(Result(f"async {name} ÷ (sync + 1.5 empty hops)", median(ratios), 1.0))
    return found


def _nothing() -> None:
    return None


async def _awaited(call: Callable[[], Awaitable[Any]]) -> float:
    begin = time.perf_counter_ns()
    await call()
    return (time.perf_counter_ns() - begin) / 1_000


def _called(call: Callable[[], Any]) -> float:
    begin = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - begin) / 1_000


class _CountedCommits(SlowCommits):
    """Counts the commits of all connections: each flushes the log once."""

    commits = 0

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        """Execute, and count."""
        if sql == "COMMIT":
            _CountedCommits.commits += 1
        return super().execute(sql, parameters)


def _shared_commits(sessions: int, scale: Scale) -> Iterator[Result]:
    each = scale.calls * 2
    where = "on one session" if sessions == 1 else f"on {sessions} sessions"
    throughputs, flushes = [], []
    for _ in range(ROUNDS):
        with folder() as place:
            alone = _floor_throughput(place / "floor.db", each)
            together, commits = asyncio.run(_own_throughput(place / "ours.db", sessions, each))
        throughputs.append(together / alone)
        flushes.append(commits)
    yield Result(f"{_WRITERS} async writers {where}: flushes per append", median(flushes), 0.4)
    note = "commits of both sides take 2 ms more"
    yield Result(
        f"{_WRITERS} async writers {where}: throughput ÷ one by hand",
        median(throughputs),
        3.0,
        at_least=True,
        note=note,
    )


def _floor_throughput(path: Path, appends: int) -> float:
    floor = Floor(path, SlowCommits)
    key = floor.create("s")
    kept = cycle(bodies(events("s", 100)))
    begin = time.perf_counter()
    for _ in range(appends):
        floor.append(key, next(kept))
    rate = appends / (time.perf_counter() - begin)
    floor.close()
    return rate


async def _own_throughput(path: Path, sessions: int, each: int) -> tuple[float, float]:
    """Appends a second, and commits per append."""

    def connected(options: SqliteOptions) -> sqlite3.Connection:
        return connect(options, factory=_CountedCommits)

    driver = AsyncSqliteDriver(SqliteOptions(path=str(path)), connected)
    async with AsyncSqlRepository(driver, system_clock) as store:
        for number in range(sessions):
            await store.create(session(f"s{number}"))

        logs = [events(f"s{number % sessions}", each, seed=number) for number in range(_WRITERS)]

        async def write(number: int) -> None:
            for event in logs[number]:
                await store.append(event.session_id, (event,))

        _CountedCommits.commits = 0
        begin = time.perf_counter()
        await asyncio.gather(*(write(number) for number in range(_WRITERS)))
        taken = time.perf_counter() - begin
        return _WRITERS * each / taken, _CountedCommits.commits / (_WRITERS * each)
