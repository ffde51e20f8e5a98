"""PostgreSQL: appends and windows beside what one would write by hand with psycopg, in either colour.

Both sides are databases of one server: the same tables, keys and indexes, the same JSON, byte for byte. As on SQLite,
the floor knows its keys and positions, looks at no version, no expiry and no turn, and keeps no head of the log.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import Final, TypeAlias
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import AsyncConnection, Connection

from benchmarks.floor import Body, Row, bodies
from benchmarks.lab import ROUNDS, Compared, Result, Scale, Subject, compare, compared, spread
from benchmarks.logs import restore
from benchmarks.traffic import events, repeated
from tests.postgres.server import server
from turnlog import EventFilter, SessionEvent, SessionRepository, open_async_store, open_store
from turnlog.storage.sql.drivers.postgres import PostgresOptions
from turnlog.storage.sql.drivers.postgres.migrating import migrate
from turnlog.testing.factories import session

INSERT: Final = (
    "INSERT INTO event (session_key, position, event_id, timestamp, kind, batch, turn, format, body)"
    " VALUES (%s, %s, %s, %s, %s, 0, %s, 0, %s)"
)
READ: Final = (
    "SELECT position, event_id, timestamp, kind, type, branch, body FROM event"
    " WHERE session_key = (SELECT key FROM session WHERE id = %s) ORDER BY position DESC LIMIT %s"
)
_KINDS: Final = {"user": 8, "assistant": 4, "tool": 6}
_WINDOW: Final = EventFilter.last(50)
_BATCH: Final = 5
_APPEND, _READ, _FLATTEST = 2.0, 1.2, 1.25

AsyncCall: TypeAlias = Callable[[], Awaitable[object]]


def results(scale: Scale) -> Iterator[Result]:
    """Rows for either colour and each length; one that says so where there is no server."""
    with server() as admin:
        if admin is None:
            yield Result("append, on a PostgreSQL server", None, _APPEND)
            return
        with databases(admin, scale) as (ours, by_hand):
            yield from _threads(ours, by_hand, scale)
            yield from asyncio.run(_tasks(ours, by_hand, scale))


class Floor:
    """The next rows of each session."""

    def __init__(self, connection: Connection) -> None:
        found = connection.execute(
            "SELECT id, key, (SELECT coalesce(max(position), 0) FROM event WHERE session_key = key) FROM session"
        ).fetchall()
        self._places: dict[str, list[int]] = {name: [key, version] for name, key, version in found}

    def row(self, name: str, body: Body) -> Row:
        """The row of the session's next event."""
        place = self._places[name]
        place[1] += 1
        key, position = place
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        kind = _KINDS[body["message"]["role"]]
        return (key, position, os.urandom(16), time.time_ns() // 1_000, kind, position, data)


def decoded(rows: Sequence[Row]) -> list[Row]:
    """Oldest first, and the JSON read."""
    return [(*row[:-1], json.loads(row[-1])) for row in reversed(rows)]


def _threads(ours: str, by_hand: str, scale: Scale) -> Iterator[Result]:
    with open_store(ours) as store, psycopg.connect(by_hand, autocommit=True) as connection:
        floor = Floor(connection)
        names = [f"s{size}" for size in scale.sizes]
        appending = compared([_appending(name, store, connection, floor) for name in names], scale.visits)
        reading = compared([_reading(name, store, connection) for name in names], scale.visits)
        for operation, found, bound in (("append", appending, _APPEND), ("last(50)", reading, _READ)):
            for size, each in zip(scale.sizes, found, strict=True):
                yield _result(f"{operation}, {size:,} events", each, bound)
            yield Result(f"PostgreSQL: {operation}, largest time ÷ smallest of these", spread(found), _FLATTEST)
        yield _result(f"append a batch of {_BATCH}", _batches(store, connection, floor, scale), _APPEND)


def _result(name: str, found: Compared, bound: float) -> Result:
    return Result(f"PostgreSQL: {name}", found.ratio, bound, note=found.note)


def _appending(name: str, store: SessionRepository, connection: Connection, floor: Floor) -> Subject:
    source, kept = repeated(7), cycle(bodies(events(name, 400, seed=7)))

    def ours() -> None:
        store.append(name, (SessionEvent(session_id=name, message=next(source)),))

    return Subject(ours, lambda: connection.execute(INSERT, floor.row(name, next(kept)), prepare=True))


def _reading(name: str, store: SessionRepository, connection: Connection) -> Subject:
    rows = len(store.events(name, _WINDOW))
    return Subject(
        lambda: store.events(name, _WINDOW),
        lambda: decoded(connection.execute(READ, (name, rows), prepare=True).fetchall()),
    )


def _batches(store: SessionRepository, connection: Connection, floor: Floor, scale: Scale) -> Compared:
    source, kept = repeated(9), cycle(bodies(events("batches", 400, seed=9)))

    def ours() -> None:
        store.append("batches", [SessionEvent(session_id="batches", message=next(source)) for _ in range(_BATCH)])

    def by_hand() -> None:
        with connection.transaction(), connection.cursor() as cursor:
            cursor.executemany(INSERT, [floor.row("batches", next(kept)) for _ in range(_BATCH)])

    return compare(ours, by_hand, scale.visits)


async def _tasks(ours: str, by_hand: str, scale: Scale) -> list[Result]:
    name = f"s{scale.sizes[-1]}"
    source, kept = repeated(8), cycle(bodies(events(name, 400, seed=8)))
    with psycopg.connect(by_hand) as plain:
        floor = Floor(plain)
    async with open_async_store(ours) as store, await AsyncConnection.connect(by_hand, autocommit=True) as connection:
        rows = len(await store.events(name, _WINDOW))

        async def append() -> None:
            await store.append(name, (SessionEvent(session_id=name, message=next(source)),))

        async def insert() -> None:
            await connection.execute(INSERT, floor.row(name, next(kept)), prepare=True)

        async def read() -> None:
            await store.events(name, _WINDOW)

        async def select() -> None:
            cursor = await connection.execute(READ, (name, rows), prepare=True)
            decoded(await cursor.fetchall())

        found = [
            ("append in a task", await _compared(append, insert, scale.visits), _APPEND),
            ("last(50) in a task", await _compared(read, select, scale.visits), _READ),
        ]
    return [Result(f"PostgreSQL: {what}", ratio, bound, note=note) for what, (ratio, note), bound in found]


async def _compared(own: AsyncCall, by_hand: AsyncCall, visits: int) -> tuple[float, str]:
    """As ``lab.compared`` does it, for tasks: the median of the rounds' ratios, each that of its visits."""
    order = random.Random(1)  # noqa: S311 - repeatable
    rounds: list[float] = []
    times: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        seen: list[tuple[float, float]] = []
        for _ in range(visits):
            if order.random() < 0.5:  # noqa: PLR2004 - heads or tails
                first = await _block(own)
                seen.append((first, await _block(by_hand)))
            else:
                first = await _block(by_hand)
                seen.append((await _block(own), first))
        rounds.append(statistics.median(mine / floor for mine, floor in seen))
        times += seen
    mine, floor = (statistics.median(each[side] for each in times) for side in (0, 1))
    return statistics.median(rounds), f"{mine:,.0f} µs; by hand {floor:,.0f} µs"


async def _block(call: AsyncCall, calls: int = 5) -> float:
    """The median of some calls, in microseconds."""
    times: list[float] = []
    for _ in range(calls):
        begin = time.perf_counter_ns()
        await call()
        times.append((time.perf_counter_ns() - begin) / 1_000)
    return statistics.median(times)


@contextmanager
def databases(admin: str, scale: Scale) -> Generator[tuple[str, str]]:
    """Two databases with the same logs, one of each length; dropped at the end."""
    names = [f"turnlog_bench_{os.getpid()}_{side}" for side in ("ours", "floor")]
    urls = [urlunsplit(urlsplit(admin)._replace(path=f"/{name}")) for name in names]
    try:
        _execute(admin, f"CREATE DATABASE {names[0]}")
        migrate(PostgresOptions(conninfo=urls[0]))
        with open_store(urls[0]) as store:
            for size in scale.sizes:
                restore(store, session(f"s{size}"), events(f"s{size}", size))
            restore(store, session("batches"), events("batches", 20))
            for number in range(scale.others):
                name = f"other-{number}"
                restore(store, session(name), events(name, 20, seed=number % 10))
        _execute(urls[0], "VACUUM ANALYZE")
        _execute(admin, f"CREATE DATABASE {names[1]} TEMPLATE {names[0]}")
        _execute(urls[1], "VACUUM ANALYZE")
        yield urls[0], urls[1]
    finally:
        for name in names:
            _execute(admin, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())
