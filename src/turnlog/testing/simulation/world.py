"""One seeded run: programs and their callers, what befalls them, and the judgement of all that they are told."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any, Final

from turnlog.errors import AppendOutcomeUnknownError, StoreError
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.sql import SqlRepository
from turnlog.testing.driver_faults import FAULTS
from turnlog.testing.history import Operation as Recorded
from turnlog.testing.history import Outcome, Unknown
from turnlog.testing.simulation.drawing import LASTING, Drawing
from turnlog.testing.simulation.judging import history_outcome, lies
from turnlog.testing.simulation.observing import ObservedDriver, SharedClock
from turnlog.testing.simulation.operations import Operation, recorded
from turnlog.testing.simulation.oracle import Call
from turnlog.testing.simulation.process import Killed, Order, Process
from turnlog.testing.simulation.program import Caller, Program, Shared
from turnlog.testing.simulation.stage import Actor
from turnlog.testing.simulation.weather import Weather

#: Whoever waits for the file is told by this order to wait no longer.
_GIVE_UP: Final = FAULTS["busy"]
#: More steps than any run takes that gets on.
_MOST_STEPS: Final = 20_000


class World:
    """A run that is under way. ``run`` goes through it once; afterwards ``shared.oracle`` has the complaints."""

    def __init__(self, seed: int, path: str) -> None:
        self.random = Random(seed)  # noqa: S311 - repeatable on purpose
        self.path = path
        self.shared = Shared()
        self.clock = SharedClock()
        self.weather = Weather.drawn(self.random)
        self.drawing = Drawing(self.random, self.shared.oracle, self.clock)
        self.history: list[Recorded] = []
        self.programs = self._programs()
        self.steps = 0
        self.calls = 0
        self._is_quiet = False
        self._ticks = 0
        self._last: Actor | None = None

    def _programs(self) -> list[Program]:
        """Two to six callers, in one to three programs."""
        programs: list[Program] = []
        for number in range(self.random.randint(1, 3)):
            threads = self.random.randint(1 if number else 2, 2 if number else 3)
            names = [f"{'ABC'[number]}{index}" for index in range(1, threads + 1)]
            callers = [Caller(name, self.random.randint(3, 8)) for name in names]
            programs.append(Program("ABC"[number], callers, self.shared))
        return programs

    def run(self) -> None:
        """Until all callers have made their calls; then in calm weather, until all that was lost is settled."""
        for number, caller in enumerate(caller for program in self.programs for caller in program.callers):
            caller.again.append(self.drawing.first(number))
        for program in self.programs:
            self._open(program)
        self._go_on()
        self._is_quiet, self.weather = True, Weather()
        self.shared.note("world", "is quiet")
        for program in self.programs:
            if program.process is not None:
                self._start(program)
        self._go_on()

    def end(self) -> None:
        """Close what is open; whoever is still on the stage is taken off."""
        for program in self.programs:
            for actor in program.actors:
                self.shared.stage.kill(actor)
            if program.process is not None:
                program.process.die()

    def _go_on(self) -> None:
        while self._step() and not self.shared.oracle.complaints:
            self.steps += 1
            if self.steps > _MOST_STEPS:
                self.shared.oracle.complain(f"no end after {_MOST_STEPS} steps")

    def _step(self) -> bool:
        """Let one actor take one step; False when all are done."""
        self._befall()
        actor, order = self._choose()
        if actor is None:
            return self._open_one()
        program = next(program for program in self.programs if actor in program.actors)
        self._last = actor
        self.shared.note(actor.name, actor.at)
        self.shared.stage.resume(actor, order)
        if isinstance(order, Killed):
            self._lose(program)
        return True

    def _befall(self) -> None:
        """The clock may move, a program may be lost, one that is down may come back."""
        now = self.weather.time_after(self.random, self.clock.now, self.shared.oracle.expiries(self.clock.now))
        if now != self.clock.now:
            self.clock.set(now)
            self.shared.note("clock", f"{now:%H:%M:%S.%f}")
        running = [program for program in self.programs if program.process is not None]
        if running and self.random.random() < self.weather.crash:
            self._lose(self.random.choice(running))
        if len(running) < len(self.programs) and self.random.random() < 0.1:
            self._open_one()

    def _choose(self) -> tuple[Actor | None, Order]:
        """Who goes on, and what befalls the statement that is due."""
        actors = [actor for program in self.programs for actor in program.actors if actor.state != "done"]
        waiting = [actor for actor in actors if actor.at == "file lock"]
        if waiting and self.random.random() < self.weather.timeout:
            return self.random.choice(waiting), _GIVE_UP
        able = [actor for actor in actors if actor.state == "ready" or actor.may_go_on()]
        if not able:
            return self._unable(actors)
        again = self._last in able and self.random.random() < self.weather.sticky
        actor = self._last if again and self._last is not None else self.random.choice(able)
        is_due = actor.state == "ready" and actor.at != "begin"
        return actor, self.weather.order(self.random, actor.at) if is_due else None

    def _unable(self, actors: list[Actor]) -> tuple[Actor | None, Order]:
        if actors and all(program.process is not None for program in self.programs):
            self.shared.oracle.complain(f"nobody can go on: {actors}")
        return None, None

    def _open_one(self) -> bool:
        """Bring back a program that is down; False if there is none."""
        down = [program for program in self.programs if program.process is None]
        if not down:
            return False
        if self.shared.holder is None:
            self._open(self.random.choice(down))
        return True

    def _open(self, program: Program) -> None:
        program.process = Process(program.name, self.path, self.shared.stage, program)
        self.shared.note(program.name, "opens the store")
        self._start(program)

    def _start(self, program: Program) -> None:
        """Put its callers on the stage, each in a thread of its own."""
        assert program.process is not None
        driver = ObservedDriver(program.process.driver, self.clock, program)
        store = SqlRepository(driver, self.clock, token_counter=EstimatedTokens())
        store.open()
        program.actors.clear()
        for caller in program.callers:
            actor = self.shared.stage.start(caller.name, partial(self._live, program, caller, store))
            program.actors[actor] = caller

    def _lose(self, program: Program) -> None:
        """The process is gone, in the middle of whatever it does."""
        self.shared.note(program.name, "is lost")
        program.faults += 1
        for actor in program.actors:
            self.shared.stage.kill(actor)
        assert program.process is not None
        program.process.die()
        program.process = None
        for caller in program.actors.values():
            if caller.call is not None:
                self._end_call(caller, caller.call, Unknown("crashed"), is_open=True)
        program.actors.clear()

    def _live(self, program: Program, caller: Caller, store: SqlRepository) -> None:
        while (operation := self._next(caller)) is not None:
            self._call(program, caller, operation, store)

    def _next(self, caller: Caller) -> Operation | None:
        if caller.again:
            return caller.again.pop()
        if self._is_quiet:
            return caller.unsettled.pop() if caller.unsettled else None
        if not caller.calls_left:
            return None
        caller.calls_left -= 1
        return self.drawing.operation(caller.name)

    def _call(self, program: Program, caller: Caller, operation: Operation, store: SqlRepository) -> None:
        call = caller.call = Call(operation, lambda: program.faults)
        caller.invoked = self._tick()
        self.calls += 1
        self.shared.note(caller.name, f"CALL {operation}")
        told: Any
        try:
            told = operation.call(store)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is judged
            told = error
        self.shared.note(caller.name, f"TOLD {told!r:.200}")
        for lie in lies(call, told):
            self.shared.oracle.complain(f"{caller.name}: {operation} -> {told!r:.200}: {lie}")
        failed = isinstance(told, (StoreError, AppendOutcomeUnknownError))
        if failed and self._is_quiet:
            self.shared.oracle.complain(f"{caller.name}: {operation} -> {told!r}, and all is quiet")
        if not self.shared.oracle.complaints:
            self._end_call(caller, call, history_outcome(call, told), is_open=failed)

    def _end_call(self, caller: Caller, call: Call, outcome: Outcome | None, *, is_open: bool) -> None:
        """The call has come to its end, or is known to have none; what is open may be asked again, sooner or later."""
        operation, caller.call = call.operation, None
        if operation.session in LASTING and outcome is not None:
            self._record(caller, operation, outcome)
        if is_open and not operation.reads:
            if self.random.random() < 0.5 and not self._is_quiet:
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
