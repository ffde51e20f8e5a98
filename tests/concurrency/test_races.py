"""Eight threads, eight tasks, four processes race on one session and on eight; the history checker has the verdict.

P1 to P9 of the checker say what R-3, R-4, R-6 and R-14 promise: no error, no event lost, doubled or out of order, no
batch torn, no gap, no stale read, and every conflict justified.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import msgspec
import pytest

from tests.concurrency.processes import ask_all, workers
from tests.concurrency.stores import (
    EIGHT,
    MEMORY,
    ONE,
    assert_clean,
    assert_raced,
    final_logs,
    opened,
    prepared,
    prepared_async,
    sqlite_url,
    violations,
    workloads,
)
from turnlog.testing.history import HistoryRecorder, check_history, load_history
from turnlog.testing.races import RaceReport, Workload, final_log_of, race, race_in_task

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SESSIONS = pytest.mark.parametrize("sessions", [ONE, EIGHT], ids=["one session", "eight sessions"])
STORES = pytest.mark.parametrize("kind", ["memory", "sqlite"])


#: The memory store looks through the whole log for each read.
READS = {"memory": 0.02, "sqlite": 0.2}


def url_of(kind: str, folder: Path) -> str:
    return MEMORY if kind == "memory" else sqlite_url(folder)


@SESSIONS
@STORES
def test_threads(kind: str, sessions: tuple[str, ...], tmp_path: Path) -> None:
    """R-3, R-4, R-6."""
    recorder, raced = HistoryRecorder(), workloads(sessions, reads=READS[kind])
    with prepared(url_of(kind, tmp_path), sessions) as store, ThreadPoolExecutor(len(raced)) as pool:
        reports = list(pool.map(partial(race, store, recorder), raced))
        final = final_logs(store, sessions)
    assert_raced(reports, raced)
    assert_clean(violations(recorder, final))


@SESSIONS
@STORES
async def test_tasks(kind: str, sessions: tuple[str, ...], tmp_path: Path) -> None:
    """R-3, R-4, R-6."""
    recorder, raced = HistoryRecorder(), workloads(sessions, reads=READS[kind])
    async with await prepared_async(url_of(kind, tmp_path), sessions) as store:
        reports = await asyncio.gather(*(race_in_task(store, recorder, workload) for workload in raced))
        final = {session: await final_log_of(store, session) for session in sessions}
    assert_raced(reports, raced)
    assert_clean(violations(recorder, final))


@SESSIONS
def test_processes(sessions: tuple[str, ...], tmp_path: Path) -> None:
    """R-3, R-4, R-6, between processes."""
    race_processes(sessions, tmp_path, workloads(sessions, workers=4))


def race_processes(sessions: tuple[str, ...], folder: Path, raced: list[Workload]) -> None:
    url, history = sqlite_url(folder), folder / "history.jsonl"
    prepared(url, sessions).close()
    each = [{"url": url, "history": str(history), "workload": msgspec.to_builtins(workload)} for workload in raced]
    with workers("race", each) as started:
        reports = msgspec.convert(ask_all(started, "go"), list[RaceReport])
    assert_raced(reports, raced)
    with opened(url) as store:
        final = final_logs(store, sessions)
    assert_clean(check_history(load_history(history), final))


@pytest.mark.soak
@SESSIONS
@pytest.mark.parametrize("seed", range(1, 11))
def test_processes_for_long(seed: int, sessions: tuple[str, ...], tmp_path: Path) -> None:
    """Other races, ten times as long."""
    race_processes(sessions, tmp_path, workloads(sessions, workers=4, appends=10_000, seed=seed))
