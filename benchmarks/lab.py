"""Timing things side by side: short blocks that take turns, and the median of the rounds' ratios."""

from __future__ import annotations

import gc
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

ROUNDS = 5
FOLDER_VARIABLE = "TURNLOG_BENCH_FOLDER"

Call: TypeAlias = Callable[[], object]


class Scale(Struct, frozen=True):
    """How much is measured: ``full`` is what the bounds are stated for, ``small`` is a look, ``tiny`` a test.

    ``visits`` is how often a round comes to each subject; each visit times a block of calls on either side.
    """

    name: str
    sizes: tuple[int, ...]
    visits: int
    others: int
    sessions: int
    imported: int
    megabytes: tuple[int, int]
    appends: int


FULL = Scale("full", (100, 10_000, 100_000), 20, 1_000, 1_000, 100_000, (10, 200), 1_000)
SMALL = Scale("small", (100, 1_000, 5_000), 6, 100, 200, 2_000, (1, 3), 400)
TINY = Scale("tiny", (20, 100), 1, 3, 50, 100, (1, 2), 100)


class Result(Struct, frozen=True):
    """One row of the table. ``measured`` is to be at most (or with ``at_least``, at least) ``bound``."""

    name: str
    measured: float | None
    bound: float
    at_least: bool = False
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether the bound is met. What could not be measured here is not met: nobody knows."""
        if self.measured is None:
            return False
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound


class Subject(Struct, frozen=True):
    """One operation, by turnlog and by hand. ``renew`` is called before each round: what has grown is made anew."""

    ours: Call
    by_hand: Call
    renew: Callable[[], None] = lambda: None


class Compared(Struct, frozen=True):
    """What came of a subject: the ratio, the microseconds of either side, and turnlog's beside the other subjects'."""

    ratio: float
    own: float
    by_hand: float
    relative: float

    @property
    def note(self) -> str:
        """The times, for the table."""
        return f"{self.own:,.0f} µs; by hand {self.by_hand:,.0f} µs"


def compared(subjects: Sequence[Subject], visits: int, *, block: int = 5) -> list[Compared]:
    """Compare the two sides of each subject; all of them meet the same weather.

    The two blocks of a visit follow each other at once, in random order, and so do the subjects: what the machine does
    beside this falls on all. A round's ratio is the median of its visits'; the figure is the median of five rounds.
    """
    order = random.Random(1)  # noqa: S311 - repeatable
    rounds = [_round(subjects, visits, block, order) for _ in range(ROUNDS)]
    found: list[Compared] = []
    for number in range(len(subjects)):
        seen = [[visit[number] for visit in visits_] for visits_ in rounds]
        ratios = [statistics.median(own / by_hand for own, by_hand, _ in visits_) for visits_ in seen]
        own, by_hand, relative = (
            statistics.median(visit[part] for visits_ in seen for visit in visits_) for part in range(3)
        )
        found.append(Compared(statistics.median(ratios), own, by_hand, relative))
    return found


def compare(ours: Call, by_hand: Call, visits: int, *, block: int = 5) -> Compared:
    """One subject alone."""
    return compared([Subject(ours, by_hand)], visits, block=block)[0]


def spread(found: Sequence[Compared]) -> float:
    """Turnlog's largest time divided by its smallest among subjects that were compared together."""
    return max(each.relative for each in found) / min(each.relative for each in found)


_Visit: TypeAlias = list[tuple[float, float, float]]


def _round(subjects: Sequence[Subject], visits: int, block: int, order: random.Random) -> list[_Visit]:
    for subject in subjects:
        subject.renew()
        _block(subject.ours, 2)
        _block(subject.by_hand, 2)
    gc.collect()
    gc.freeze()  # what the benchmark itself holds is not to be looked through in the middle of a call
    try:
        return [_visit(subjects, block, order) for _ in range(visits)]
    finally:
        gc.unfreeze()


def _visit(subjects: Sequence[Subject], block: int, order: random.Random) -> _Visit:
    times = [(0.0, 0.0)] * len(subjects)
    for number in order.sample(range(len(subjects)), len(subjects)):
        subject = subjects[number]
        if order.random() < 0.5:  # noqa: PLR2004 - heads or tails
            own = _block(subject.ours, block)
            times[number] = (own, _block(subject.by_hand, block))
        else:
            by_hand = _block(subject.by_hand, block)
            times[number] = (_block(subject.ours, block), by_hand)
    mean = statistics.mean(own for own, _ in times)
    return [(own, by_hand, own / mean) for own, by_hand in times]


def _block(call: Call, calls: int) -> float:
    """The median of some calls, in microseconds."""
    times: list[float] = []
    for _ in range(calls):
        begin = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - begin) / 1_000)
    return statistics.median(times)


@contextmanager
def folder() -> Generator[Path]:
    """A place on the disk, not in memory: a flush has to cost what it costs here. The variable names another place."""
    with tempfile.TemporaryDirectory(prefix="turnlog-bench-", dir=os.environ.get(FOLDER_VARIABLE, Path.cwd())) as name:
        yield Path(name)


@contextmanager
def one_core() -> Generator[None]:
    """Keep this thread, and those that it starts meanwhile, on one core, where the system allows it.

    A hop to a thread on another core also pays for that core's cold caches, which an empty hop does not show.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
