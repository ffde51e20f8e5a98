"""Four processes of eight, threads and tasks, on one session and on many, while connections are cut (R-3 to R-6, R-14).

The history checker has the verdict: nothing acknowledged is lost, nothing is stored twice, no batch is torn, no gap, no
stale read, every conflict justified (P1 to P9).
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from tests.concurrency.processes import ask_all, workers
from tests.concurrency.stores import assert_clean, final_logs, opened, prepared, workloads
from tests.postgres.proxy import Fate, Link, Proxy, at_random, proxied
from turnlog.testing.history import check_history, load_history
from turnlog.testing.races import RaceReport

pytestmark = [pytest.mark.store, pytest.mark.slow, pytest.mark.timeout(600)]

_PROCESSES, _WORKERS = 4, 8
ONE = ("s",)
MANY = tuple(f"s{number}" for number in range(64))
SESSIONS = pytest.mark.parametrize("sessions", [ONE, MANY], ids=["one session", "64 sessions"])


class Grime:
    """Loses answers and commits at random; and kills, from a connection of its own, whoever it picks."""

    def __init__(self, killer: psycopg.Connection, proxy: Proxy, seed: int, rate: float) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable
        self._lose = at_random(seed, rate)
        self._rate = rate
        self._proxy = proxy
        self._killer = killer
        self.killed = 0

    def __call__(self, link: Link, what: str) -> Fate | None:
        if self._random.random() < self._rate:
            victims = [other.pid for other in list(self._proxy.links) if other.pid]
            self._killer.execute("SELECT pg_terminate_backend(%s)", (self._random.choice(victims),))
            self.killed += 1
        return self._lose(link, what)


def crowd(url: str, sessions: tuple[str, ...], folder: Path, *, appends: int, seed: int, rate: float) -> None:
    """Run a crowd that appends so much in all, and judge it."""
    prepared(url, sessions).close()
    history = folder / "history.jsonl"
    each_appends = max(1, appends // (_PROCESSES * _WORKERS))
    raced = workloads(sessions, workers=_PROCESSES * _WORKERS, appends=each_appends, seed=seed)
    with proxied(url) as proxy, psycopg.connect(url, autocommit=True) as killer:
        grime = Grime(killer, proxy, seed, rate)
        each: list[dict[str, Any]] = [
            {
                "url": f"{proxy.url}&pool_max=4",
                "history": str(history),
                "workloads": msgspec.to_builtins(raced[number::_PROCESSES]),
            }
            for number in range(_PROCESSES)
        ]
        with workers("crowd", each, "tests.postgres.worker") as started:
            proxy.judge = grime if rate else proxy.judge
            began = time.monotonic()
            answers = ask_all(started, "go")
            seconds = time.monotonic() - began
    reports = [msgspec.convert(report, RaceReport) for answer in answers for report in answer]
    with opened(url) as store:
        final = final_logs(store, sessions)
    operations = load_history(history)
    assert_clean(check_history(operations, final))
    stored = sum(report.stored for report in reports)
    errors = [error for report in reports for error in report.errors]
    sys.stdout.write(
        f"\n{len(sessions)} sessions: {stored} appends of {len(reports)} workers in {seconds:.1f} s,"
        f" {stored / seconds:.0f} a second; {proxy.struck} answers lost, {grime.killed} killed,"
        f" {len(errors)} calls without an answer\n"
    )
    assert stored >= each_appends * len(reports) * 0.8
    if rate:
        assert proxy.struck
        assert grime.killed
    else:
        assert not errors


@SESSIONS
def test_a_crowd_on_a_sound_network(url: str, sessions: tuple[str, ...], tmp_path: Path) -> None:
    crowd(url, sessions, tmp_path, appends=480, seed=1, rate=0)


@SESSIONS
def test_a_crowd_whose_connections_are_cut(url: str, sessions: tuple[str, ...], tmp_path: Path) -> None:
    crowd(url, sessions, tmp_path, appends=480, seed=2, rate=0.01)


@pytest.mark.soak
@SESSIONS
@pytest.mark.parametrize("seed", range(3, 6))
def test_a_crowd_for_long(url: str, sessions: tuple[str, ...], tmp_path: Path, seed: int) -> None:
    crowd(url, sessions, tmp_path, appends=20_000, seed=seed, rate=0.005)
