"""A program in a simulation: its callers, and what its transactions come to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from turnlog.testing.driver_faults import Fault
from turnlog.testing.simulation.operations import Operation
from turnlog.testing.simulation.oracle import Call, Decision, Oracle
from turnlog.testing.simulation.process import Killed, Process
from turnlog.testing.simulation.stage import Actor, Stage


class Caller:
    """One thread of a program: what it is calling, how many calls it has left, and what it has to ask again.

    ``again`` comes next; ``unsettled`` are appends that failed or gave no answer, asked again when all is quiet.
    """

    def __init__(self, name: str, calls_left: int) -> None:
        self.name = name
        self.calls_left = calls_left
        self.call: Call | None = None
        self.invoked = 0
        self.again: list[Operation] = []
        self.unsettled: list[Operation] = []


class Shared:
    """What all programs share: the stage, the oracle, who holds the file's write lock, and how many have held it."""

    def __init__(self) -> None:
        self.stage = Stage()
        self.oracle = Oracle()
        self.holder: Program | None = None
        self.ended = 0
        self.trace: list[tuple[str, str]] = []

    def note(self, who: str, what: str) -> None:
        """Add a line to the trace."""
        self.trace.append((who, what))


class Program:
    """A program with its callers; ``process`` is None while it is down.

    It sees what its plans and transactions come to.
    """

    def __init__(self, name: str, callers: list[Caller], shared: Shared) -> None:
        self.name = name
        self.callers = callers
        self.process: Process | None = None
        self.actors: dict[Actor, Caller] = {}
        self.faults = 0
        self._shared = shared
        self._decisions: list[Decision] = []

    def current_call(self) -> Call | None:
        """See ``Watcher``."""
        actor = self._shared.stage.current
        return None if actor is None else self.actors[actor].call

    def decided(self, decision: Decision) -> None:
        """See ``Watcher``."""
        if decision.is_refusal and not self._decisions:
            # Nothing uncommitted speaks for it: it must follow from what is committed, whatever becomes of the group.
            self._shared.oracle.follow([decision])
        else:
            self._decisions.append(decision)

    def has_read(self, call: Call, now: datetime) -> None:
        """See ``Watcher``."""
        self._shared.oracle.expect(call, now)

    def begun(self) -> None:
        """See ``Observer``."""
        if self._shared.holder is not None:
            self._shared.oracle.complain(f"{self.name} has the write lock of {self._shared.holder.name}")
        self._shared.holder = self

    def committed(self) -> None:
        """See ``Observer``."""
        self._shared.oracle.follow(self._decisions)

    def ended(self) -> None:
        """See ``Observer``."""
        self._decisions.clear()
        self._shared.holder = None
        self._shared.ended += 1

    def lock_may_be_free(self) -> Callable[[], bool]:
        """See ``Observer``."""
        before = self._shared.ended
        return lambda: self._shared.ended > before

    def struck(self, sql: str, order: Fault | Killed) -> None:
        """See ``Observer``."""
        self.faults += 1
        self._shared.note(self.name, f"is struck at {sql[:40]}: {order}")
        if sql == "COMMIT":
            for decision in self._decisions:
                decision.call.answers_lost += 1
