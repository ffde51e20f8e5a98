"""The races of ``test_races.py`` without the locks: the same workloads and the same checker must find fault.

A test that cannot fail proves nothing. Where chance would decide whether writers meet, they are made to: see ``nets``.
"""

# Locks and drivers are reached into, to take them away or to watch them.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import msgspec
import pytest

from tests.concurrency.nets import Rendezvous, kept_in_memory, without_memory_lock, without_nets
from tests.concurrency.processes import in_lockstep, workers
from tests.concurrency.stores import (
    EIGHT,
    MEMORY,
    ONE,
    final_logs,
    opened,
    opened_async,
    prepared,
    prepared_async,
    sqlite_url,
    violations,
    workloads,
)
from turnlog.log.events import SessionEvent
from turnlog.storage.memory import AsyncMemoryRepository, MemoryRepository
from turnlog.storage.protocol import AppendResult, AsyncSessionRepository, SessionRepository, Turn
from turnlog.testing.history import HistoryRecorder, Violation, check_history, load_history
from turnlog.testing.races import RaceReport, Workload, final_log_of, race, race_in_task

APPENDS = 40
SESSIONS = pytest.mark.parametrize("sessions", [ONE, EIGHT], ids=["one session", "eight sessions"])


def in_threads(
    stores: list[SessionRepository], recorder: HistoryRecorder, raced: list[Workload], meeting: Rendezvous
) -> list[RaceReport]:
    def run(store: SessionRepository, workload: Workload) -> RaceReport:
        try:
            return race(store, recorder, workload)
        finally:
            meeting.leave()

    with ThreadPoolExecutor(len(raced)) as pool:
        return list(pool.map(run, stores, raced))


def properties(found: list[Violation]) -> set[str]:
    return {violation.property_id for violation in found}


@SESSIONS
def test_threads_on_a_file(sessions: tuple[str, ...], tmp_path: Path) -> None:
    """Without lock, version check and unique keys: two events at one position."""
    url, recorder, raced = sqlite_url(tmp_path), HistoryRecorder(), workloads(sessions, workers=4, appends=APPENDS)
    meeting = Rendezvous(len(raced))
    with without_nets():
        prepared(url, sessions).close()
    with without_nets(meeting.meet):
        stores = [opened(url) for _ in raced]
        in_threads(stores, recorder, raced, meeting)
        final = final_logs(stores[0], sessions)
        for store in stores:
            store.close()
    assert "P1" in properties(violations(recorder, final))


@SESSIONS
def test_threads_in_memory(sessions: tuple[str, ...]) -> None:
    recorder, raced = HistoryRecorder(), workloads(sessions, workers=4, appends=APPENDS)
    meeting = Rendezvous(len(raced))
    store = prepared(MEMORY, sessions)
    assert isinstance(store, MemoryRepository)
    with without_memory_lock(store._logs, meeting.meet):
        in_threads([store] * len(raced), recorder, raced, meeting)
    final = {session: kept_in_memory(store._logs, session) for session in sessions}
    assert "P1" in properties(violations(recorder, final))


@SESSIONS
async def test_tasks_on_a_file(sessions: tuple[str, ...], tmp_path: Path) -> None:
    url, recorder, raced = sqlite_url(tmp_path), HistoryRecorder(), workloads(sessions, workers=4, appends=APPENDS)
    meeting = Rendezvous(len(raced))
    with without_nets():
        await (await prepared_async(url, sessions)).close()
    with without_nets(meeting.meet):
        stores = [opened_async(url) for _ in raced]
        await asyncio.gather(*(in_task(*each, recorder, meeting) for each in zip(stores, raced, strict=True)))
        final = {session: await final_log_of(stores[0], session) for session in sessions}
        for store in stores:
            await store.close()
    assert "P1" in properties(violations(recorder, final))


@contextmanager
def off_the_loop(store: AsyncMemoryRepository) -> Generator[None, None, None]:
    """Each append in a thread."""

    async def append(
        session_id: str,
        events: Sequence[SessionEvent],
        *,
        expected_version: int | None = None,
        turn: Turn | None = None,
    ) -> AppendResult:
        return await asyncio.to_thread(store._logs.append, session_id, events, expected_version, turn)

    with patch.object(store, "append", append):
        yield


async def in_task(
    store: AsyncSessionRepository, workload: Workload, recorder: HistoryRecorder, meeting: Rendezvous
) -> RaceReport:
    try:
        return await race_in_task(store, recorder, workload)
    finally:
        meeting.leave()


@SESSIONS
async def test_tasks_in_memory(sessions: tuple[str, ...]) -> None:
    """What keeps tasks apart there is that an append never leaves the loop, and the lock."""
    recorder, raced = HistoryRecorder(), workloads(sessions, workers=4, appends=APPENDS)
    meeting = Rendezvous(len(raced))
    store = await prepared_async(MEMORY, sessions)
    assert isinstance(store, AsyncMemoryRepository)
    with without_memory_lock(store._logs, meeting.meet), off_the_loop(store):
        await asyncio.gather(*(in_task(store, workload, recorder, meeting) for workload in raced))
    final = {session: kept_in_memory(store._logs, session) for session in sessions}
    assert "P1" in properties(violations(recorder, final))


@SESSIONS
def test_processes(sessions: tuple[str, ...], tmp_path: Path) -> None:
    url, history = sqlite_url(tmp_path), tmp_path / "history.jsonl"
    with without_nets():
        prepared(url, sessions).close()
    raced = workloads(sessions, workers=4, appends=APPENDS)
    each = [{"url": url, "history": str(history), "workload": msgspec.to_builtins(workload)} for workload in raced]
    with workers("race-without-nets", each) as started:
        in_lockstep(started)
    with without_nets(), opened(url) as store:
        final = final_logs(store, sessions)
    assert "P1" in properties(check_history(load_history(history), final))
