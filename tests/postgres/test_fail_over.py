"""A primary and its synchronous standby: what was acknowledged outlives the primary (R-12, R-15).

The primary is killed in the middle of its work, the standby takes its place, and the callers, who know both addresses,
go on. The history checker has the verdict: nothing acknowledged is lost, nothing stands twice, positions have no gap.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg
import pytest

from tests.concurrency.stores import assert_clean, final_logs, opened, prepared, violations, workloads
from tests.postgres.server import Installation, free_port, installation, installed_binaries
from turnlog.storage.sql.drivers.postgres import PostgresOptions
from turnlog.storage.sql.drivers.postgres.migrating import migrate
from turnlog.testing import factories
from turnlog.testing.history import HistoryRecorder
from turnlog.testing.races import race

pytestmark = [pytest.mark.store, pytest.mark.slow, pytest.mark.timeout(300)]

_SESSIONS = tuple(f"s{number}" for number in range(4))
_WORKERS = 8


class Cluster:
    """A primary and one standby that every commit waits for; the standby's settings name nobody to wait for."""

    def __init__(self, installed: Installation) -> None:
        self._installed = installed
        self._ports = {"primary": free_port(), "standby": free_port()}
        installed.make("primary")
        self.primary = installed.start("primary", self._ports["primary"])
        migrate(PostgresOptions(conninfo=self.primary))
        source = ("-h", "127.0.0.1", "-p", str(self._ports["primary"]), "-U", "postgres")
        standby = str(installed.folder / "standby")
        installed.run("pg_basebackup", *source, "-D", standby, "-R", "-X", "stream", "-c", "fast", "--no-sync")
        self.start_standby()
        with psycopg.connect(self.primary, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'")
            connection.execute("SELECT pg_reload_conf()")
        self._wait_for("SELECT FROM pg_stat_replication WHERE sync_state = 'quorum' AND state = 'streaming'")

    @property
    def url(self) -> str:
        """Both addresses, of which the one that takes writes is used."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in self._ports.values())
        return f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write"

    def start_standby(self) -> None:
        self.standby = self._installed.start("standby", self._ports["standby"])

    def stop_standby(self) -> None:
        self._installed.stop("standby")
        self._wait_for("SELECT WHERE NOT EXISTS (SELECT FROM pg_stat_replication)")

    def wait_until_somebody_waits_for_the_standby(self) -> int:
        """Return who."""
        return self._wait_for("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'")

    def _wait_for(self, query: str) -> int:
        with psycopg.connect(self.primary, autocommit=True) as connection:
            while not (found := connection.execute(query.encode()).fetchall()):
                pass
        return int(found[0][0]) if found[0] else 0

    def fail_over(self) -> None:
        self._installed.kill("primary")
        self._installed.promote("standby")

    def close(self) -> None:
        for name in self._ports:
            self._installed.stop(name)


@pytest.fixture(scope="module")
def binaries() -> Path:
    found = installed_binaries()
    if found is None:
        pytest.skip("NOT TESTED on a primary and a standby: no PostgreSQL server is installed")
    return found


@contextmanager
def cluster(binaries: Path) -> Generator[Cluster]:
    with installation(binaries) as installed:
        made = Cluster(installed)
        try:
            yield made
        finally:
            made.close()


@pytest.fixture
def running(binaries: Path) -> Iterator[Cluster]:
    with cluster(binaries) as made:
        yield made


def fail_over_under_load(running: Cluster, *, appends: int, seed: int) -> None:
    recorder = HistoryRecorder()
    raced = workloads(_SESSIONS, workers=_WORKERS, appends=appends, seed=seed)
    prepared(running.url, _SESSIONS).close()
    with opened(running.url) as store, ThreadPoolExecutor(_WORKERS) as pool:
        assert "on a synchronous standby" in store.durability.claim
        pending = [pool.submit(partial(race, store, recorder), workload) for workload in raced]
        while len(recorder.operations()) < appends * _WORKERS // 2:
            time.sleep(0.001)  # let go of the interpreter: the workers need it
        running.fail_over()
        reports = [each.result() for each in pending]
    with opened(running.standby) as store:
        final = final_logs(store, _SESSIONS)
    assert_clean(violations(recorder, final))
    stored, errors = sum(report.stored for report in reports), sum(len(report.errors) for report in reports)
    sys.stdout.write(f"\n{stored} appends acknowledged, {errors} calls without an answer\n")
    assert stored >= appends * _WORKERS * 0.8


def test_what_was_acknowledged_outlives_the_primary(running: Cluster) -> None:
    fail_over_under_load(running, appends=60, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 12))
def test_it_does_every_time(running: Cluster, seed: int) -> None:
    fail_over_under_load(running, appends=400, seed=seed)


def test_a_commit_that_no_standby_has_confirmed_is_not_acknowledged(running: Cluster) -> None:
    """Somebody ends the wait: the event is there, and would be lost by a fail-over. The look-up waits in its turn."""
    prepared(running.primary, ["s"]).close()
    with opened(running.primary) as store, ThreadPoolExecutor(1) as pool:
        store.version("s")
        for batch in ([factories.user(1)], factories.turn(2)):
            running.stop_standby()
            pending = pool.submit(store.append, "s", batch)
            first = running.wait_until_somebody_waits_for_the_standby()
            with psycopg.connect(running.primary, autocommit=True) as connection:
                connection.execute("SELECT pg_cancel_backend(%s)", (first,))
            running.wait_until_somebody_waits_for_the_standby()
            assert not pending.done()
            running.start_standby()
            assert [event.id for event in pending.result(60).events] == [event.id for event in batch]
    running.fail_over()
    with opened(running.standby) as store:
        assert store.version("s") == 5
