"""Runs on an SQLite file: its programs, and who of them holds its write lock.

One transaction at a time holds that lock, so the model follows the commits in their order, and the plans of a group in
theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from turnlog.storage.sql.driver import Driver
from turnlog.testing.driver_faults import FAULTS, Fault
from turnlog.testing.simulation.calling import Caller, Shared
from turnlog.testing.simulation.oracle import Decision, Oracle
from turnlog.testing.simulation.process import Killed, Order, Process
from turnlog.testing.simulation.program import Program
from turnlog.testing.simulation.weather import Weather
from turnlog.testing.simulation.world import World

#: Whoever waits for the file is told by this order to wait no longer.
_GIVE_UP: Final = FAULTS["busy"]


class SharedFile(Shared):
    """Adds who holds the file's write lock, and how many have held it."""

    def __init__(self, path: str) -> None:
        super().__init__(Oracle())
        self.path = path
        self.holder: FileProgram | None = None
        self.ended = 0


class FileProgram(Program):
    """A program that has the file open; the ``Observer`` of its process."""

    def __init__(self, name: str, callers: list[Caller], file: SharedFile) -> None:
        super().__init__(name, callers, file)
        self._file = file
        self._process: Process | None = None
        self._decisions: list[Decision] = []

    def open(self) -> Driver:
        """See ``Program``."""
        self._process = Process(self.name, self._file.path, self._file.stage, self)
        return self._process.driver

    def die(self) -> None:
        """See ``Program``."""
        if self._process is not None:
            self._process.die()

    def open_transactions(self) -> int:
        """See ``Program``."""
        return 0 if self._process is None else self._process.open_transactions()

    def decided(self, decision: Decision) -> None:
        """See ``Watcher``."""
        if decision.is_refusal and not self._decisions:
            # Nothing uncommitted speaks for it: it must follow from what is committed, whatever becomes of the group.
            self._file.oracle.follow([decision])
        else:
            self._decisions.append(decision)

    def begun(self) -> None:
        """See ``Observer``."""
        if self._file.holder is not None:
            self._file.oracle.complain(f"{self.name} has the write lock of {self._file.holder.name}")
        self._file.holder = self

    def committed(self) -> None:
        """See ``Observer``."""
        self._file.oracle.follow(self._decisions)

    def ended(self) -> None:
        """See ``Observer``."""
        self._decisions.clear()
        self._file.holder = None
        self._file.ended += 1

    def lock_may_be_free(self) -> Callable[[], bool]:
        """See ``Observer``."""
        before = self._file.ended
        return lambda: self._file.ended > before

    def struck(self, sql: str, order: Fault | Killed) -> None:
        """See ``Observer``."""
        self.faults += 1
        self._file.note(self.name, f"is struck at {sql[:40]}: {order}")
        if sql == "COMMIT":
            for decision in self._decisions:
                decision.call.answers_lost += 1


class FileWorld(World):
    """A run of two to six callers, in one to three programs, on a file."""

    waiting_for = "file lock"

    def __init__(self, seed: int, path: str) -> None:
        random = Random(seed)  # noqa: S311 - repeatable on purpose
        self.file = SharedFile(path)
        super().__init__(random, self.file, Weather.drawn(random), _programs(random, self.file))

    def order(self, sql: str) -> Order:
        """See ``World``."""
        return self.weather.order(self.random, sql)

    def giving_up(self) -> Order:
        """See ``World``."""
        return _GIVE_UP

    def may_open(self) -> bool:
        """See ``World``."""
        return self.file.holder is None


def _programs(random: Random, file: SharedFile) -> list[FileProgram]:
    programs: list[FileProgram] = []
    for number in range(random.randint(1, 3)):
        threads = random.randint(1 if number else 2, 2 if number else 3)
        names = [f"{'ABC'[number]}{index}" for index in range(1, threads + 1)]
        callers = [Caller(name, random.randint(3, 8)) for name in names]
        programs.append(FileProgram("ABC"[number], callers, file))
    return programs
