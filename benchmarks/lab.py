"""Timing two things side by side: short blocks that take turns, and the median of the rounds' ratios."""

from __future__ import annotations

import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

ROUNDS = 5


class Scale(Struct, frozen=True):
    """How much is measured: ``full`` is what the bounds are stated for, ``small`` is a look."""

    name: str
    sizes: tuple[int, ...]
    calls: int
    others: int
    sessions: int
    imported: int


FULL = Scale("full", (100, 10_000, 100_000), 150, 1_000, 1_000, 100_000)
SMALL = Scale("small", (100, 5_000), 60, 100, 200, 8_000)


class Result(Struct, frozen=True):
    """One row of the table. ``measured`` is to be at most (or with ``at_least``, at least) ``bound``."""

    name: str
    measured: float | None
    bound: float
    at_least: bool = False
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether the bound is met; what could not be measured is not held against it, but said."""
        if self.measured is None:
            return True
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound


def ratio(ours: Callable[[], object], floor: Callable[[], object], calls: int) -> float:
    """Median of the rounds' ratios; in each round both take turns in blocks of a few calls."""
    return timed(ours, floor, calls)[0]


def timed(ours: Callable[[], object], floor: Callable[[], object], calls: int) -> tuple[float, float, float]:
    """The ratio, and the median microseconds of one call of each."""
    ours()
    floor()
    ratios, own_times, floor_times = [], [], []
    for _ in range(ROUNDS):
        own, by_hand = [], []
        gc.collect()
        gc.disable()
        for _ in range(max(1, calls // 10)):
            own += _block(ours)
            by_hand += _block(floor)
        gc.enable()
        ratios.append(statistics.median(own) / statistics.median(by_hand))
        own_times += own
        floor_times += by_hand
    return statistics.median(ratios), statistics.median(own_times), statistics.median(floor_times)


def _block(call: Callable[[], object]) -> list[float]:
    times = []
    for _ in range(10):
        begin = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - begin) / 1_000)
    return times


@contextmanager
def folder() -> Generator[Path]:
    """A place on the disk, not in memory: a flush has to cost what it costs here."""
    with tempfile.TemporaryDirectory(prefix="turnlog-bench-", dir=Path.cwd()) as name:
        yield Path(name)
