"""One seeded run: programs and their callers, what befalls them, and the judgement of all that they are told."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any, ClassVar, Final

from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.sql import SqlRepository
from turnlog.testing.simulation.calling import Calling, Shared
from turnlog.testing.simulation.observing import ObservedDriver, SharedClock
from turnlog.testing.simulation.process import Killed
from turnlog.testing.simulation.program import Program
from turnlog.testing.simulation.stage import Actor
from turnlog.testing.simulation.weather import Weather

#: More steps than any run takes that gets on.
_MOST_STEPS: Final = 20_000
#: So much of a statement is told in the trace.
_WIDTH: Final = 100


class World(ABC):
    """A run that is under way. ``run`` goes through it once; afterwards ``shared.oracle`` has the complaints.

    ``waiting_for`` is where somebody stands who waits for a lock of the store.
    """

    waiting_for: ClassVar[str]

    def __init__(self, random: Random, shared: Shared, weather: Weather, programs: Sequence[Program]) -> None:
        self.random = random
        self.shared = shared
        self.programs = programs
        self.clock = SharedClock()
        self.weather = weather
        self.calling = Calling(random, shared, self.clock)
        self.steps = 0
        self._last: Actor | None = None

    @abstractmethod
    def order(self, sql: str) -> Any:
        """What befalls the statement that is due, or None."""

    @abstractmethod
    def giving_up(self) -> Any:
        """The order to wait no longer for a lock."""

    def may_open(self) -> bool:
        """Whether a program can open the store now."""
        return True

    def is_able(self, actor: Actor) -> bool:
        """Whether it can take a step."""
        return actor.state == "ready" or actor.may_go_on()

    def has_stepped(self) -> None:
        """Somebody has taken a step, or has been lost; who is free by it goes on."""
        return

    def run(self) -> None:
        """Until all callers have made their calls; then in calm weather, until all that was lost is settled."""
        for number, caller in enumerate(caller for program in self.programs for caller in program.callers):
            caller.again.append(self.calling.drawing.first(number))
        for program in self.programs:
            self._open(program)
        self._go_on()
        if self.shared.oracle.complaints:
            return
        self.calling.is_quiet, self.weather = True, Weather()
        self.shared.note("world", "is quiet")
        for program in self.programs:
            if program.driver is not None:
                self._start(program)
        self._go_on()

    def end(self) -> None:
        """Close what is open; whoever is still on the stage is taken off."""
        for program in self.programs:
            for actor in program.actors:
                self.shared.stage.kill(actor)
            if program.driver is not None:
                program.die()

    def _go_on(self) -> None:
        while not self.shared.oracle.complaints and self._step():
            self.steps += 1
            if self.steps > _MOST_STEPS:
                self.shared.oracle.complain(f"no end after {_MOST_STEPS} steps")

    def _step(self) -> bool:
        """Let one actor take one step; False when all are done."""
        self._befall()
        actor, order = self._choose()
        if actor is None:
            return self._open_one()
        self._last = actor
        self.resume(actor, order)
        if isinstance(order, Killed):
            self._lose(next(program for program in self.programs if actor in program.actors))
        self.has_stepped()
        return True

    def resume(self, actor: Actor, order: Any = None) -> None:
        """Let it take its step."""
        self.shared.note(actor.name, " ".join(actor.at.split())[:_WIDTH])
        self.shared.stage.resume(actor, order)

    def _befall(self) -> None:
        """The clock may move, a program may be lost, one that is down may come back."""
        now = self.weather.time_after(self.random, self.clock.now, self.shared.oracle.expiries(self.clock.now))
        if now != self.clock.now:
            self.clock.set(now)
            self.shared.note("clock", f"{now:%H:%M:%S.%f}")
        running = [program for program in self.programs if program.driver is not None]
        if running and self.random.random() < self.weather.crash:
            self._lose(self.random.choice(running))
            self.has_stepped()
        if len(running) < len(self.programs) and self.random.random() < 0.1:
            self._open_one()

    def _choose(self) -> tuple[Actor | None, Any]:
        """Who goes on, and what befalls the statement that is due."""
        actors = self.actors()
        waiting = [actor for actor in actors if actor.at == self.waiting_for]
        if waiting and self.random.random() < self.weather.timeout:
            return self.random.choice(waiting), self.giving_up()
        able = [actor for actor in actors if self.is_able(actor)]
        if not able:
            return self._unable(actors)
        again = self._last in able and self.random.random() < self.weather.sticky
        actor = self._last if again and self._last is not None else self.random.choice(able)
        is_due = actor.state == "ready" and actor.at != "begin"
        return actor, self.order(actor.at) if is_due else None

    def actors(self) -> list[Actor]:
        """Everybody who has not come to his end."""
        return [actor for program in self.programs for actor in program.actors if actor.state != "done"]

    def _unable(self, actors: list[Actor]) -> tuple[None, None]:
        if actors and all(program.driver is not None for program in self.programs):
            self.shared.oracle.complain(f"nobody can go on: {actors}")
        return None, None

    def _open_one(self) -> bool:
        """Bring back a program that is down; False if there is none."""
        down = [program for program in self.programs if program.driver is None]
        if not down:
            return False
        if self.may_open():
            self._open(self.random.choice(down))
        return True

    def _open(self, program: Program) -> None:
        program.driver = program.open()
        self.shared.note(program.name, "opens the store")
        self._start(program)

    def _start(self, program: Program) -> None:
        """Put its callers on the stage, each in a thread of its own."""
        assert program.driver is not None
        driver = ObservedDriver(program.driver, self.clock, program)
        store = SqlRepository(driver, self.clock, token_counter=EstimatedTokens())
        store.open()
        program.actors.clear()
        for caller in program.callers:
            live = partial(self.calling.live, caller, store, lambda: program.faults)
            program.actors[self.shared.stage.start(caller.name, live)] = caller

    def _lose(self, program: Program) -> None:
        """The process is gone, in the middle of whatever it does."""
        self.shared.note(program.name, "is lost")
        program.faults += 1
        for actor in program.actors:
            self.shared.stage.kill(actor)
        program.die()
        program.driver = None
        for caller in program.actors.values():
            self.calling.lose(caller)
        program.actors.clear()
