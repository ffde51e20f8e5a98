"""All interleavings of a few calls, statement by statement, on real connections; with a crash at each place as well.

Each call is made by a program of its own. A run follows a schedule as far as it is given and then takes the first
choice at every place; the next run differs in the last place that has a choice left. So every schedule is run exactly
once. A program that waits for the file's lock has no choice until somebody's transaction has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from turnlog.errors import TurnlogError
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.protocol import Clock
from turnlog.storage.sql import SqlRepository
from turnlog.testing.driver_faults import Fault
from turnlog.testing.simulation.process import Killed, Process
from turnlog.testing.simulation.stage import Actor, Stage

StoreCall: TypeAlias = Callable[[SqlRepository], Any]

#: What a caller was told whose program was lost.
CRASHED: Final = "crashed"


class Move(NamedTuple):
    """One choice: the program of that number takes its next step, or is lost."""

    what: Literal["step", "crash"]
    program: int


class Ending(Struct, frozen=True):
    """How a schedule ended: what each caller was told, an error of ours, its answer, or that its program was lost."""

    schedule: tuple[Move, ...]
    told: tuple[Any, ...]


class _Locks:
    """Counts the transactions that have ended."""

    def __init__(self) -> None:
        self.count = 0

    def begun(self) -> None:
        """See ``Observer``."""

    def committed(self) -> None:
        """See ``Observer``."""

    def ended(self) -> None:
        """See ``Observer``."""
        self.count += 1

    def lock_may_be_free(self) -> Callable[[], bool]:
        """See ``Observer``."""
        before = self.count
        return lambda: self.count > before

    def struck(self, sql: str, order: Fault | Killed) -> None:
        """See ``Observer``; nothing is made to fail here."""
        del sql, order


class _Run:
    """One schedule, on a file of its own."""

    def __init__(self, path: Path, calls: Sequence[StoreCall], clock: Clock, *, crashes: bool) -> None:
        self._stage = Stage()
        locks = _Locks()
        self._processes = [Process(str(number), str(path), self._stage, locks) for number in range(len(calls))]
        self.told: list[Any] = [None] * len(calls)
        self._actors: list[Actor] = []
        self._may_crash = crashes
        for number, (process, call) in enumerate(zip(self._processes, calls, strict=True)):
            store = SqlRepository(process.driver, clock, token_counter=EstimatedTokens())
            store.open()
            self._actors.append(self._stage.start(str(number), partial(self._make, number, call, store)))

    def _make(self, number: int, call: StoreCall, store: SqlRepository) -> None:
        try:
            self.told[number] = call(store)
        except TurnlogError as error:
            self.told[number] = error

    def moves(self) -> list[Move]:
        """The choices there are now; none when all have ended."""
        numbered = [(number, actor) for number, actor in enumerate(self._actors) if actor.state != "done"]
        able = [Move("step", number) for number, actor in numbered if actor.state == "ready" or actor.may_go_on()]
        begun = (number for number, actor in numbered if actor.at != "begin")
        return able + [Move("crash", number) for number in begun if self._may_crash]

    def has_ended(self) -> bool:
        """Whether every caller has been told something."""
        return all(actor.state == "done" for actor in self._actors)

    def make(self, move: Move) -> None:
        """Do as chosen; there is one crash at most."""
        if move.what == "step":
            self._stage.resume(self._actors[move.program])
            return
        self._may_crash = False
        self._stage.kill(self._actors[move.program])
        self._processes[move.program].die()
        self.told[move.program] = CRASHED

    def end(self) -> None:
        """Close everything."""
        for actor, process in zip(self._actors, self._processes, strict=True):
            self._stage.kill(actor)
            process.die()


class Schedulable(Protocol):
    """One schedule of some calls, on whatever store: :func:`explore_runs` chooses among its moves."""

    @property
    def told(self) -> Sequence[Any]:
        """What each caller was told."""
        ...

    def moves(self) -> list[Move]:
        """The choices there are now; none when all have ended."""
        ...

    def make(self, move: Move) -> None:
        """Do as chosen."""
        ...

    def has_ended(self) -> bool:
        """Whether every caller has been told something."""
        ...

    def end(self) -> None:
        """Close everything."""
        ...


def explore(
    new_file: Callable[[], Path], calls: Sequence[StoreCall], clock: Clock, *, crashes: bool = False
) -> Iterator[Ending]:
    """Run every schedule of the calls, each on a ``new_file``; ``crashes`` adds those in which one program is lost.

    Each ending is given while its file is as the schedule left it. Raises ``RuntimeError`` if nobody can go on.
    """
    return explore_runs(lambda: _Run(new_file(), calls, clock, crashes=crashes))


def explore_runs(begin: Callable[[], Schedulable]) -> Iterator[Ending]:
    """Run every schedule of what ``begin`` begins anew each time."""
    prefix: list[int] = []
    while True:
        run = begin()
        taken: list[tuple[int, list[Move]]] = []
        try:
            while moves := run.moves():
                chosen = prefix[len(taken)] if len(taken) < len(prefix) else 0
                taken.append((chosen, moves))
                run.make(moves[chosen])
            schedule = tuple(moves[chosen] for chosen, moves in taken)
            if not run.has_ended():
                raise RuntimeError(f"nobody can go on after {schedule}")
        finally:
            run.end()
        yield Ending(schedule, tuple(run.told))
        while taken and taken[-1][0] + 1 == len(taken[-1][1]):
            taken.pop()
        if not taken:
            return
        prefix = [chosen for chosen, _ in taken[:-1]] + [taken[-1][0] + 1]
