"""Opening the stores that are raced, and reading what a race has left."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.opening import open_async_store, open_store
from turnlog.storage.protocol import AsyncSessionRepository, SessionRepository
from turnlog.testing import factories
from turnlog.testing.history import FinalLog, HistoryRecorder, Violation, check_history
from turnlog.testing.races import RaceReport, Workload, final_log

MEMORY = "memory:"

ONE = ("s",)
EIGHT = tuple(f"s{number}" for number in range(8))


def sqlite_url(folder: Path) -> str:
    """A file of its own in the folder."""
    return f"sqlite:{folder / 'raced.db'}"


def opened(url: str, **options: Any) -> SessionRepository:
    """The store at the URL. Exact token counts are of no interest here, and loading a vocabulary takes a second."""
    return open_store(url, token_counter=EstimatedTokens(), **options)


def opened_async(url: str, **options: Any) -> AsyncSessionRepository:
    """The same for tasks."""
    return open_async_store(url, token_counter=EstimatedTokens(), **options)


def prepared(url: str, sessions: Iterable[str]) -> SessionRepository:
    """The store at the URL, with these sessions."""
    store = opened(url)
    for session in sessions:
        store.create(factories.session(session))
    return store


async def prepared_async(url: str, sessions: Iterable[str]) -> AsyncSessionRepository:
    """The same for tasks."""
    store = opened_async(url)
    for session in sessions:
        await store.create(factories.session(session))
    return store


def workloads(
    sessions: tuple[str, ...], *, workers: int = 8, appends: int = 1_000, reads: float = 0.2, seed: int = 0
) -> list[Workload]:
    """One workload for each worker of a race."""
    return [
        Workload(worker=number, workers=workers, sessions=sessions, appends=appends, reads=reads, seed=seed)
        for number in range(workers)
    ]


def final_logs(store: SessionRepository, sessions: Iterable[str]) -> dict[str, FinalLog]:
    """What the race has left."""
    return {session: final_log(store, session) for session in sessions}


def violations(recorder: HistoryRecorder, final: dict[str, FinalLog]) -> list[Violation]:
    """What the checker has against the race."""
    return check_history(recorder.operations(), final)


def assert_raced(reports: Iterable[RaceReport], workloads: Iterable[Workload]) -> None:
    """Every worker did all it was to do, met every kind of answer, and no error."""
    for report, workload in zip(reports, workloads, strict=True):
        assert report.errors == ()
        assert report.stored == workload.appends
        assert report.replayed
        assert report.refused


def assert_clean(found: list[Violation]) -> None:
    """The checker has nothing against it."""
    assert not found, "\n".join(map(str, found[:5]))
