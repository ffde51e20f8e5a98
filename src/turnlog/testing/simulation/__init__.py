"""Deterministic simulation of the SQLite store: from a seed, a run in which everything may go wrong, judged throughout.

The repository, its plans, the driver with its group writer, and the file are the real ones. Simulated is what surrounds
them: two to seven callers in one to three programs stop before each statement, and the seed decides who goes on and
what happens: another caller runs, a statement fails, the answer to a commit is lost with its effect or without, a
program is lost and comes back, the clock jumps ahead, stands still, or runs back. At the end all is quiet, and
everything must have come right.

`simulate(seed)` returns a `Report` or raises `SimulationError`, whose message holds the command that repeats the run.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.sql import SqlRepository
from turnlog.storage.sql.drivers.sqlite import SqliteDriver, SqliteOptions
from turnlog.testing.clocks import FixedClock
from turnlog.testing.simulation.files import FileWorld
from turnlog.testing.simulation.reporting import Report, SimulationError, judged
from turnlog.testing.simulation.verdict import faults_of_file

__all__ = ["Report", "SimulationError", "simulate"]

_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - each run makes a folder of its own in it


def simulate(seed: int) -> Report:
    """Run one seed; raises `SimulationError` where the store is wrong."""
    with _file() as path:
        world = FileWorld(seed, path)
        return judged(
            seed, world, lambda: faults_of_file(world), command=f"python -m {__name__}", passing=re.escape(path)
        )


@contextmanager
def _file() -> Generator[str]:
    """An empty store in memory where the machine allows it: no disk is part of what is simulated."""
    with tempfile.TemporaryDirectory(prefix="turnlog-", dir=_folder()) as name:
        path = Path(name, "store.db")
        path.write_bytes(_template())
        yield str(path)


def _folder() -> str | None:
    return _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else None


@lru_cache(maxsize=1)
def _template() -> bytes:
    """A store without sessions: making it takes longer than a run."""
    folder = tempfile.mkdtemp(prefix="turnlog-", dir=_folder())
    try:
        path = Path(folder, "store.db")
        driver = SqliteDriver(SqliteOptions(path=str(path)))
        SqlRepository(driver, FixedClock(), token_counter=EstimatedTokens()).open()
        driver.close()
        return path.read_bytes()
    finally:
        shutil.rmtree(folder)
