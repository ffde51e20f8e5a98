"""The callers of a run: what they ask, what they are told, what of that is a lie, and what they ask again."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from turnlog.errors import AppendOutcomeUnknownError, StoreError
from turnlog.storage.sql import SqlRepository
from turnlog.testing.clocks import FixedClock
from turnlog.testing.history import Operation as Recorded
from turnlog.testing.history import Outcome, Unknown
from turnlog.testing.simulation.drawing import LASTING, Drawing
from turnlog.testing.simulation.judging import history_outcome, lies
from turnlog.testing.simulation.operations import Operation, recorded
from turnlog.testing.simulation.oracle import Call, Oracle
from turnlog.testing.simulation.stage import Stage


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
    """What all programs of a run share: the stage, the oracle, and the trace of all that happens."""

    def __init__(self, oracle: Oracle) -> None:
        self.stage = Stage()
        self.oracle = oracle
        self.trace: list[tuple[str, str]] = []

    def note(self, who: str, what: str) -> None:
        """Add a line to the trace."""
        self.trace.append((who, what))


class Calling:
    """The calls of a run: how many there were, and what the history records of them.

    When ``is_quiet``, callers ask again what is unsettled, and every call must succeed.
    """

    def __init__(self, random: Random, shared: Shared, clock: FixedClock) -> None:
        self.drawing = Drawing(random, shared.oracle, clock)
        self.history: list[Recorded] = []
        self.calls = 0
        self.is_quiet = False
        self._random = random
        self._shared = shared
        self._ticks = 0

    def live(self, caller: Caller, store: SqlRepository, count_faults: Callable[[], int]) -> None:
        """Make one call after the other; ``count_faults`` says how often something has befallen the program."""
        while (operation := self._next(caller)) is not None:
            self._call(caller, Call(operation, count_faults), store)

    def lose(self, caller: Caller) -> None:
        """The caller's program is gone."""
        if caller.call is not None:
            self._end(caller, caller.call, Unknown("crashed"), is_open=True)

    def _next(self, caller: Caller) -> Operation | None:
        if caller.again:
            return caller.again.pop()
        if self.is_quiet:
            return caller.unsettled.pop() if caller.unsettled else None
        if not caller.calls_left:
            return None
        caller.calls_left -= 1
        return self.drawing.operation(caller.name)

    def _call(self, caller: Caller, call: Call, store: SqlRepository) -> None:
        caller.call, operation = call, call.operation
        caller.invoked = self._tick()
        self.calls += 1
        self._shared.note(caller.name, f"CALL {operation}")
        told: Any
        try:
            told = operation.call(store)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is judged
            told = error
        self._shared.note(caller.name, f"TOLD {told!r:.200}")
        complaints = [f"{caller.name}: {operation} -> {told!r:.200}: {lie}" for lie in lies(call, told)]
        failed = isinstance(told, (StoreError, AppendOutcomeUnknownError))
        if failed and self.is_quiet and not call.met_a_fault:
            complaints.append(f"{caller.name}: {operation} -> {told!r}, and all is quiet")
        for complaint in complaints:
            self._shared.oracle.complain(complaint)
        if not self._shared.oracle.complaints:
            self._end(caller, call, history_outcome(call, told), is_open=failed)

    def _end(self, caller: Caller, call: Call, outcome: Outcome | None, *, is_open: bool) -> None:
        """The call has come to its end, or is known to have none; what is open may be asked again, sooner or later."""
        operation, caller.call = call.operation, None
        if operation.session in LASTING and outcome is not None:
            self._record(caller, operation, outcome)
        if is_open and not operation.reads:
            if self._random.random() < 0.5 and not self.is_quiet:
                caller.again.append(operation)
            elif operation.batch:
                caller.unsettled.append(operation)

    def _record(self, caller: Caller, operation: Operation, outcome: Outcome) -> None:
        if operation.kind not in ("append", "create", "delete", "read"):
            return
        recording: dict[str, Any] = {} if operation.window is None else {"window": operation.window}
        self.history.append(
            Recorded(
                process=caller.name,
                kind=operation.kind,
                session=operation.session,
                invoked_ns=caller.invoked,
                returned_ns=None if isinstance(outcome, Unknown) else self._tick(),
                outcome=outcome,
                events=tuple(map(recorded, operation.batch)),
                expected_version=operation.expected_version,
                **recording,
            )
        )

    def _tick(self) -> int:
        self._ticks += 1
        return self._ticks
