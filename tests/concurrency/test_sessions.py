"""Creators of one id, updaters of one session, a sweep beside appends: all decide on what is there (R-2, R-7)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Barrier
from unittest.mock import patch

import pytest

from tests.concurrency.nets import Rendezvous, without_nets
from tests.concurrency.processes import ask_all, workers
from tests.concurrency.stores import MEMORY, opened, opened_async, sqlite_url
from turnlog.errors import SessionAlreadyExistsError, StoreBusyError
from turnlog.log.session import Session
from turnlog.service import AsyncSessionService, SessionService
from turnlog.storage.changes import SessionChange
from turnlog.storage.protocol import SessionRepository
from turnlog.storage.sql import rows, statements
from turnlog.storage.sql.plans import sessions as session_plans
from turnlog.storage.sql.plans.plan import Plan
from turnlog.storage.sql.statements import Statement
from turnlog.testing import factories
from turnlog.testing.clocks import START, FixedClock

CALLERS = 8
ROUNDS = 100
UPDATES = 50

STORES = pytest.mark.parametrize("kind", ["memory", "sqlite", "sqlite in memory"])


def url_of(kind: str, folder: Path) -> str:
    return {"memory": MEMORY, "sqlite": sqlite_url(folder), "sqlite in memory": "sqlite::memory:"}[kind]


def in_threads(calls: Sequence[Callable[[], object]]) -> None:
    """Make all calls at once."""
    start = Barrier(len(calls))

    def run(call: Callable[[], object]) -> None:
        start.wait()
        call()

    with ThreadPoolExecutor(len(calls)) as pool:
        list(pool.map(run, calls))


# Two creators of one id


def create(store: SessionRepository, session_id: str, name: str, winners: list[str]) -> None:
    try:
        store.create(factories.session(session_id, metadata={"creator": name}))
    except SessionAlreadyExistsError:
        return
    winners.append(name)


@STORES
def test_one_of_eight_threads_creates(kind: str, tmp_path: Path) -> None:
    with opened(url_of(kind, tmp_path)) as store:
        for number in range(ROUNDS):
            session_id, winners = f"session-{number}", list[str]()
            in_threads([partial(create, store, session_id, str(name), winners) for name in range(CALLERS)])
            assert [creator(store, session_id)] == winners


def creator(store: SessionRepository, session_id: str) -> str:
    session = store.find(session_id)
    assert session is not None
    name: str = session.metadata["creator"]
    return name


@STORES
async def test_one_of_eight_tasks_creates(kind: str, tmp_path: Path) -> None:
    async with opened_async(url_of(kind, tmp_path)) as store:

        async def create(session_id: str, name: str) -> Session | None:
            try:
                return await store.create(factories.session(session_id, metadata={"creator": name}))
            except SessionAlreadyExistsError:
                return None

        for number in range(ROUNDS):
            got = await asyncio.gather(*(create(f"session-{number}", str(name)) for name in range(CALLERS)))
            assert [session for session in got if session] == [await store.find(f"session-{number}")]


def test_one_of_four_processes_creates(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path)
    with workers("create", [{"url": url, "name": str(number)} for number in range(4)]) as started, opened(url) as store:
        for number in range(ROUNDS):
            answers = ask_all(started, f"session-{number}")
            assert sorted(answers) == ["lost", "lost", "lost", "won"]
            assert creator(store, f"session-{number}") == str(answers.index("won"))


def test_without_the_nets_two_creators_win(tmp_path: Path) -> None:
    url, meeting, winners = sqlite_url(tmp_path), Rendezvous(2), list[str]()
    with without_nets():
        opened(url).close()
    with without_nets(meeting.meet), opened(url) as first, opened(url) as second:
        in_threads([lambda: create(first, "s", "first", winners), lambda: create(second, "s", "second", winners)])
    assert sorted(winners) == ["first", "second"]


def find_or_create(service: SessionService, session_id: str, name: str, got: list[Session]) -> None:
    got.append(service.find_or_create(session_id, metadata={"creator": name}))


@STORES
def test_threads_find_or_create_one_session(kind: str, tmp_path: Path) -> None:
    """All get the same session; whoever was first made it."""
    with SessionService(opened(url_of(kind, tmp_path))) as service:
        for number in range(ROUNDS):
            session_id, got = f"session-{number}", list[Session]()
            in_threads([partial(find_or_create, service, session_id, str(name), got) for name in range(CALLERS)])
            assert got == [service.find(session_id)] * CALLERS


@STORES
async def test_tasks_find_or_create_one_session(kind: str, tmp_path: Path) -> None:
    async with AsyncSessionService(opened_async(url_of(kind, tmp_path))) as service:
        for number in range(ROUNDS):
            wanted = (service.find_or_create(f"session-{number}", metadata={"creator": str(n)}) for n in range(CALLERS))
            assert await asyncio.gather(*wanted) == [await service.find(f"session-{number}")] * CALLERS


# Two updaters of metadata


def update(store: SessionRepository, name: str) -> None:
    for number in range(UPDATES):
        store.update("s", SessionChange(set={f"{name}-{number}": number}))
        if number % 2:
            store.update("s", SessionChange(unset=[f"{name}-{number}"]))


def all_updates(names: Sequence[str]) -> dict[str, int]:
    return {f"{name}-{number}": number for name in names for number in range(0, UPDATES, 2)}


@STORES
def test_threads_update_one_session(kind: str, tmp_path: Path) -> None:
    names = [str(number) for number in range(CALLERS)]
    with opened(url_of(kind, tmp_path)) as store:
        store.create(factories.session())
        in_threads([partial(update, store, name) for name in names])
        session = store.find("s")
    assert session is not None
    assert session.metadata == all_updates(names)


@STORES
async def test_tasks_update_one_session(kind: str, tmp_path: Path) -> None:
    names = [str(number) for number in range(CALLERS)]
    async with opened_async(url_of(kind, tmp_path)) as store:

        async def update(name: str) -> None:
            for number in range(UPDATES):
                await store.update("s", SessionChange(set={f"{name}-{number}": number}))
                if number % 2:
                    await store.update("s", SessionChange(unset=[f"{name}-{number}"]))

        await store.create(factories.session())
        await asyncio.gather(*map(update, names))
        session = await store.find("s")
    assert session is not None
    assert session.metadata == all_updates(names)


def test_processes_update_one_session(tmp_path: Path) -> None:
    url, names = sqlite_url(tmp_path), [str(number) for number in range(4)]
    with opened(url) as store:
        store.create(factories.session())
        each = [{"url": url, "session_id": "s", "name": name, "updates": UPDATES} for name in names]
        with workers("update", each) as started:
            assert ask_all(started, "go") == ["done"] * 4
        session = store.find("s")
    assert session is not None
    assert session.metadata == all_updates(names)


def test_without_the_lock_an_update_is_lost(tmp_path: Path) -> None:
    url, meeting = sqlite_url(tmp_path), Rendezvous(2)
    with opened(url) as store:
        store.create(factories.session())
    with without_nets(meeting.meet), opened(url) as first, opened(url) as second:
        in_threads(
            [
                lambda: first.update("s", SessionChange(set={"first": 1})),
                lambda: second.update("s", SessionChange(set={"second": 2})),
            ]
        )
        session = first.find("s")
    assert session is not None
    assert len(session.metadata) == 1


# The sweep beside an append that slides the expiry

LIFE = timedelta(minutes=1)


@STORES
def test_a_sweep_never_takes_a_session_that_is_kept_alive(kind: str, tmp_path: Path) -> None:
    """Each append comes just in time, and others sweep without a pause; beside it is one that nobody keeps alive."""
    clock, sweeps, done = FixedClock(), list[int](), list[bool]()
    with opened(url_of(kind, tmp_path), clock=clock) as store:
        for session_id in ("s", "dead"):
            store.create(factories.session(session_id, expires_at=START + LIFE, time_to_live=LIFE))

        def keep_alive() -> None:
            for number in range(ROUNDS):
                clock.advance(LIFE - timedelta(microseconds=1))
                store.append("s", [factories.user(number)])
            done.append(True)

        def sweep() -> None:
            while not done:
                sweeps.append(store.delete_expired(clock()))

        in_threads([keep_alive, sweep, sweep])
        sweeps.append(store.delete_expired(clock()))
        assert store.version("s") == ROUNDS
    assert sum(sweeps) == 1


class Beside:
    """A sweep that finds a session expired, and an append whose own clock says that it is not."""

    def __init__(self, path: Path) -> None:
        self.acknowledged = False
        self._has_tried = False
        self._clock = FixedClock()
        self._url = f"sqlite:{path}?busy_timeout=0"
        self._appender = opened(self._url, clock=self._clock)
        self._appender.create(factories.session(expires_at=START + LIFE, time_to_live=LIFE))
        self._clock.set(START + LIFE - timedelta(microseconds=1))

    def append(self) -> None:
        if self._has_tried:
            return
        self._has_tried = True
        with suppress(StoreBusyError):
            self._appender.append("s", [factories.user(1)])
            self.acknowledged = True

    def sweep(self, *, append_when_asked_for_the_time: bool) -> None:
        def clock() -> datetime:
            if append_when_asked_for_the_time:
                self.append()
            return START + LIFE

        with opened(self._url, clock=clock) as sweeper:
            sweeper.delete_expired(START + LIFE)

    def is_there(self) -> bool:
        with self._appender:
            return self._appender.version("s") == 1


def test_an_append_beside_a_sweep_is_kept_or_refused(tmp_path: Path) -> None:
    beside = Beside(tmp_path / "raced.db")
    beside.sweep(append_when_asked_for_the_time=True)
    assert beside.acknowledged == beside.is_there()


def test_without_the_lock_a_sweep_takes_an_acknowledged_append(tmp_path: Path) -> None:
    """By a sweep that looks in one statement and removes in another."""

    def in_two_steps(before: datetime, _: datetime, limit: int) -> Plan[int]:
        found = yield Statement("SELECT key FROM session WHERE expires_at <= ? LIMIT ?", (rows.micros(before), limit))
        beside.append()
        for (key,) in found:
            yield Statement(statements.REMOVE_SESSION, (key,))
        return len(found)

    with without_nets(), patch.object(session_plans, "delete_expired", in_two_steps):
        beside = Beside(tmp_path / "raced.db")
        beside.sweep(append_when_asked_for_the_time=False)
        assert (beside.acknowledged, beside.is_there()) == (True, False)
