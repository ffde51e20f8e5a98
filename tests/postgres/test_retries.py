"""What the server undoes, or cuts off, is tried again: where that is safe, a bounded number of times (R-6)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from tests.postgres.test_outcomes import BATCH, ONE, ids, opened, pool_of, store
from turnlog.errors import StoreBusyError, StoreUnavailableError
from turnlog.storage.protocol import SessionRepository
from turnlog.storage.sql import statements as sql
from turnlog.storage.sql.drivers.postgres import PostgresDriver, options_of
from turnlog.storage.sql.plans.plan import Plan
from turnlog.storage.sql.statements import Statement
from turnlog.testing import factories

__all__ = ["store"]

pytestmark = pytest.mark.store


@pytest.fixture
def driver(url: str) -> Iterator[PostgresDriver]:
    made = PostgresDriver(options_of(url))
    yield made
    made.close()


class Pauses:
    """Sleeping, noted and not done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken: list[float] = []
        monkeypatch.setattr("turnlog.storage.sql.drivers.postgres._sync.time.sleep", self.taken.append)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    return Pauses(monkeypatch)


def test_of_two_that_lock_each_other_out_both_come_through(url: str, driver: PostgresDriver) -> None:
    """A real deadlock: each has locked one session and asks for the other's."""
    with opened(url) as store:
        for name in "ab":
            store.create(factories.session(name))
    meeting = threading.Barrier(2)
    attempts: list[int] = []

    def locking(first: str, second: str) -> Any:
        is_first = [True]

        def make(_: int) -> Plan[str]:
            attempts.append(1)
            yield Statement(sql.HEAD_LOCKED, (first,))
            if is_first:
                is_first.clear()
                meeting.wait(20)
            yield Statement(sql.HEAD_LOCKED, (second,))
            return first

        return make

    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(driver.write, locking(*pair)) for pair in ("ab", "ba")]
        assert [one.result(30) for one in both] == ["a", "b"]
    assert len(attempts) == 3


@pytest.mark.parametrize("code", ["40001", "40P01"])
@pytest.mark.parametrize("reads", [True, False])
def test_what_the_server_undoes_is_tried_again_and_never_endlessly(
    driver: PostgresDriver, pauses: Pauses, code: str, *, reads: bool
) -> None:
    undoing = f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{code}'; END $$"
    attempts: list[int] = []

    def make(times: int) -> Plan[int]:
        attempts.append(1)
        if len(attempts) <= times:
            yield Statement(undoing)
        yield Statement("SELECT 1")
        return len(attempts)

    run: Any = driver.read if reads else lambda plan: driver.write(lambda _: plan())
    assert run(lambda: make(5)) == 6
    attempts.clear()
    first = list(pauses.taken)
    with pytest.raises(StoreBusyError, match="6 times"):
        run(lambda: make(99))
    assert len(attempts) == 6
    assert all(0 <= pause <= 0.01 * 2**number for number, pause in enumerate(first))
    assert first != pauses.taken[5:], "no two that collided pause alike"


def test_a_lock_that_is_not_free_in_time_is_told_and_nothing_is_written(store: SessionRepository, url: str) -> None:
    with psycopg.connect(url) as other, opened(url, lock_timeout=0.05) as through:
        other.execute("SELECT FROM session WHERE id = 's' FOR UPDATE")
        for batch in (ONE, BATCH):
            with pytest.raises(StoreBusyError, match="nothing was written"):
                through.append("s", batch)
    assert store.events("s") == []


def test_without_a_free_connection_nothing_was_sent_and_that_is_certain(store: SessionRepository, url: str) -> None:
    """No outcome is unknown, and nobody waits six times as long."""
    with opened(url, pool_timeout=0.05) as through:
        pool = pool_of(through)
        with pool.connection():
            for batch in (ONE, BATCH):
                with pytest.raises(StoreUnavailableError, match="no connection"):
                    through.append("s", batch)
        assert pool.get_stats()["requests_errors"] == 2
        assert ids(through.append("s", ONE).events) == ["e1"]
    del store
