"""Writes that wait share a commit, each with an outcome of its own (R-14)."""

# Locks and drivers are reached into, to take them away or to watch them.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.concurrency.nets import NoLock, Rendezvous
from tests.concurrency.stores import MEMORY, opened, sqlite_url
from tests.concurrency.watched import Gate, watched_store
from turnlog.errors import StoreError, VersionConflictError
from turnlog.storage.protocol import AppendResult, Batch
from turnlog.storage.sql import SqlRepository
from turnlog.storage.sql.drivers.sqlite import SqliteDriver
from turnlog.storage.sql.drivers.sqlite.writer import GroupWriter, Job, Transaction
from turnlog.storage.sql.plans.plan import Plan, PlanFactory
from turnlog.storage.sql.statements import Rows, Statement
from turnlog.testing import factories

# Threads that hang would keep a signal's error from ending the test; this way ends the process and shows where.
pytestmark = pytest.mark.timeout(120, method="thread")


class Waiting:
    """A store whose writer is held up in one commit, while others queue behind it."""

    def __init__(self, folder: Path) -> None:
        self.statements: list[str] = []
        self.gate = Gate("COMMIT")
        self.fault: Callable[[str], None] = lambda _: None
        self.store = watched_store(folder, self._watch)
        self.store.create(factories.session())
        self.store.append("s", [factories.user(1)])
        self.jobs: list[Job[Any]] = []
        self._queued = threading.Semaphore(0)
        self._pool = ThreadPoolExecutor(16)
        writer = writer_of(self.store)
        submit = writer.submit

        def counted(make: PlanFactory[Any]) -> Job[Any]:
            job = submit(make)
            self.jobs.append(job)
            self._queued.release()
            return job

        writer.submit = counted  # type: ignore[method-assign]

    def _watch(self, sql: str) -> None:
        self.statements.append(sql)
        self.gate(sql)
        self.fault(sql)

    def commits(self) -> int:
        return self.statements.count("COMMIT")

    def hold_up(self) -> Future[AppendResult]:
        """Have a write wait in its commit."""
        self.gate.close()
        held_up = self.append(factories.user(2))
        self.gate.wait_until_reached()
        self.statements.clear()
        return held_up

    def append(self, *events: Any, expected_version: int | None = None) -> Future[AppendResult]:
        """Append in a thread; returns once the write is queued."""
        future = self._pool.submit(self.store.append, "s", events, expected_version=expected_version)
        self._queued.acquire()
        return future

    def close(self) -> None:
        self.gate.open()
        self._pool.shutdown()
        self.store.close()


def writer_of(store: SqlRepository) -> GroupWriter:
    driver = store._driver
    assert isinstance(driver, SqliteDriver)
    return driver._database._writer


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Waiting]:
    waiting = Waiting(tmp_path)
    yield waiting
    waiting.close()


def first_positions(futures: list[Future[AppendResult]]) -> list[int]:
    return sorted(future.result().events[0].position or 0 for future in futures)


def test_what_waits_shares_one_commit(waiting: Waiting) -> None:
    held_up = waiting.hold_up()
    appends = [waiting.append(factories.user(number)) for number in range(3, 11)]
    waiting.gate.open()
    assert held_up.result().version == 2
    assert first_positions(appends) == list(range(3, 11))
    # The rest of the first one's, and one for all others.
    assert waiting.commits() == 1


def test_each_has_an_outcome_of_its_own(waiting: Waiting) -> None:
    """A conflict, a replay and a refusal in the middle of a group leave their neighbours alone."""
    waiting.hold_up()
    before = waiting.append(factories.user(3))
    conflict = waiting.append(factories.user(4), expected_version=0)
    replay = waiting.append(factories.user(1))
    altered = waiting.append(factories.user(1, "other"))
    after = waiting.append(factories.user(5), expected_version=3)
    waiting.gate.open()
    assert (before.result().version, after.result().version) == (3, 4)
    with pytest.raises(VersionConflictError) as refused:
        conflict.result()
    assert refused.value.actual == 3
    assert replay.result().is_replay
    assert altered.exception() is not None
    assert waiting.commits() == 1
    assert [event.id for event in waiting.store.events("s")] == ["e1", "e2", "e3", "e5"]


def test_no_outcome_is_given_before_the_commit(waiting: Waiting) -> None:
    """Not even to a conflict or a replay: what they saw might never have been."""
    waiting.hold_up()
    outcomes = [
        waiting.append(factories.user(3)),
        waiting.append(factories.user(4), expected_version=0),
        waiting.append(factories.user(1)),
    ]
    second = Gate("COMMIT")
    second.close()
    waiting.fault = second
    waiting.gate.open()
    second.wait_until_reached()
    assert not any(future.done() for future in outcomes)
    assert not any(job.is_done for job in waiting.jobs[1:])
    second.open()
    assert outcomes[0].result().version == 3
    assert isinstance(outcomes[1].exception(), VersionConflictError)
    assert outcomes[2].result().is_replay


class Failing:
    """A watch under which the next commit fails before it has any effect."""

    def __init__(self, error: BaseException) -> None:
        self.error: BaseException | None = error

    def __call__(self, sql: str) -> None:
        if sql == "COMMIT" and self.error is not None:
            error, self.error = self.error, None
            raise error


def full_disk() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    return error


def test_after_a_failed_commit_each_is_decided_anew_alone(waiting: Waiting) -> None:
    held_up = waiting.hold_up()
    appends = [waiting.append(factories.user(number)) for number in range(3, 7)]
    conflict = waiting.append(factories.user(9), expected_version=0)
    failing = Failing(full_disk())

    def after_the_first(sql: str) -> None:
        if held_up_is_through():
            failing(sql)

    def held_up_is_through() -> bool:
        return "BEGIN IMMEDIATE" in waiting.statements

    waiting.fault = after_the_first
    waiting.gate.open()
    assert held_up.result().version == 2
    assert first_positions(appends) == [3, 4, 5, 6]
    assert isinstance(conflict.exception(), VersionConflictError)
    # One that failed for all together, and one for each that was stored; a conflict alone has nothing to commit.
    assert waiting.commits() == 1 + len(appends)


def test_an_interrupted_leader_leaves_nobody_waiting(waiting: Waiting) -> None:
    """A KeyboardInterrupt in the commit of a group: its neighbours are told, and the store can be used."""
    waiting.hold_up()
    appends = [waiting.append(factories.user(number)) for number in range(3, 7)]
    failing = Failing(KeyboardInterrupt())
    waiting.fault = lambda sql: failing(sql) if "BEGIN IMMEDIATE" in waiting.statements else None
    waiting.gate.open()
    errors = [future.exception() for future in appends]
    assert sum(isinstance(error, KeyboardInterrupt) for error in errors) == 1
    assert sum(isinstance(error, StoreError) for error in errors) == 3
    again = [waiting.append(factories.user(number)) for number in range(3, 7)]
    assert first_positions(again) == [3, 4, 5, 6]


@pytest.mark.parametrize("kind", ["memory", "sqlite", "sqlite in memory"])
def test_a_write_from_the_batches_of_a_restore_is_refused(kind: str, tmp_path: Path) -> None:
    """Waiting for itself would never end; the restore goes on, and nothing of the refused write is there."""
    url = {"memory": MEMORY, "sqlite": sqlite_url(tmp_path), "sqlite in memory": "sqlite::memory:"}[kind]
    with opened(url) as store:
        store.create(factories.session("other"))

        def batches() -> Iterator[Batch]:
            yield factories.turn(1)
            for session in ("other", "s"):
                with pytest.raises(StoreError):
                    store.append(session, [factories.user(9, session_id=session)])
            with pytest.raises(StoreError):
                store.create(factories.session("third"))
            yield factories.turn(5)

        assert store.restore(factories.session(), batches()).version == 8
        assert store.version("other") == 0
        assert store.find("third") is None
        assert [event.id for event in store.events("s")] == [f"e{number}" for number in range(1, 9)]


# The writer by itself


class Recorded(Transaction):
    """Executes nothing, and notes how many transactions are open at once."""

    def __init__(self, begun: Callable[[], None] = lambda: None) -> None:
        super().__init__(lambda _: [], lambda: None)
        self.most_open = 0
        self.open = 0
        self._begun = begun

    def begin(self) -> None:
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        self._begun()

    def commit(self) -> None:
        self.open -= 1


def look(attempt: int) -> Plan[int]:
    yield Statement("SELECT 1")
    return attempt


def test_one_transaction_at_a_time() -> None:
    transaction = Recorded()
    writer = GroupWriter(transaction, lambda: None)

    def run(_: int) -> None:
        for _ in range(50):
            assert writer.complete(writer.submit(look)) == 0

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(4)))
    assert transaction.most_open == 1


def test_without_the_lock_transactions_overlap() -> None:
    """The fault switch of the test above: the second begins while the first has not ended."""
    meeting, has_begun = Rendezvous(2), threading.Event()

    def begun() -> None:
        has_begun.set()
        meeting.meet()

    transaction = Recorded(begun)
    writer = GroupWriter(transaction, lambda: None)
    with patch.object(writer, "_lock", NoLock()), ThreadPoolExecutor(2) as pool:
        first = pool.submit(writer.complete, writer.submit(look))
        has_begun.wait()
        second = pool.submit(writer.complete, writer.submit(look))
        assert (first.result(), second.result()) == (0, 0)
    assert transaction.most_open == 2


def test_a_job_behind_more_than_one_group_is_waited_for() -> None:
    """A group has a bound; whoever leads goes on until its own job is done."""
    done: list[int] = []

    def plan_of(number: int) -> PlanFactory[int]:
        def make(_: int) -> Generator[Statement, Rows, int]:
            done.append(number)
            yield Statement("SELECT 1")
            return number

        return make

    writer = GroupWriter(Recorded(), lambda: None)
    jobs = [writer.submit(plan_of(number)) for number in range(1_000)]
    assert writer.complete(jobs[-1]) == 999
    assert done == list(range(1_000))
    assert [writer.complete(job) for job in jobs] == list(range(1_000))
