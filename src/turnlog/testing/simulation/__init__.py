"""Deterministic simulation of the SQLite store: from a seed, a run in which everything may go wrong, judged throughout.

The repository, its plans, the driver with its group writer, and the file are the real ones. Simulated is what surrounds
them: two to seven callers in one to three programs stop before each statement, and the seed decides who goes on and
what happens: another caller runs, a statement fails, the answer to a commit is lost with its effect or without, a
program is lost and comes back, the clock jumps ahead, stands still, or runs back. At the end all is quiet, and
everything must have come right.

`simulate(seed)` returns a `Report` or raises `SimulationError`, whose message holds the command that repeats the run.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.sql import SqlRepository
from turnlog.storage.sql.drivers.sqlite import SqliteDriver, SqliteOptions
from turnlog.testing.clocks import FixedClock
from turnlog.testing.simulation.verdict import faults_of
from turnlog.testing.simulation.weather import Weather
from turnlog.testing.simulation.world import World

__all__ = ["Report", "SimulationError", "simulate"]

_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - each run makes a folder of its own in it
_LINES_SHOWN = 60


class Report(Struct, frozen=True):
    """What a run was like. ``digest`` stands for the ``trace``: everything that happened in it, in order."""

    seed: int
    steps: int
    calls: int
    faults: int
    digest: str
    weather: Weather
    trace: tuple[str, ...]


class SimulationError(AssertionError):
    """The store was wrong in a run; ``trace`` is all that happened."""

    def __init__(self, seed: int, complaints: list[str], trace: list[str]) -> None:
        shown = "\n".join([*trace[-_LINES_SHOWN:], *complaints])
        super().__init__(f"{shown}\nto repeat it: python -m turnlog.testing.simulation --seed {seed}")
        self.seed = seed
        self.complaints = complaints
        self.trace = trace


def simulate(seed: int) -> Report:
    """Run one seed; raises `SimulationError` where the store is wrong."""
    with _file() as path:
        world = World(seed, path)
        try:
            world.run()
            complaints = world.shared.oracle.complaints or list(faults_of(world))
        finally:
            world.end()
    # Where the file lies differs from run to run, and nothing else does.
    trace = [f"{who} {what}".replace(world.path, "store.db") for who, what in world.shared.trace]
    if complaints:
        raise SimulationError(seed, complaints, trace)
    digest = hashlib.blake2b("\n".join(trace).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    faults = sum(program.faults for program in world.programs)
    return Report(seed, world.steps, world.calls, faults, digest, world.weather, tuple(trace))


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
