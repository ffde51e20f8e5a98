"""`python -m tests.postgres.simulating --seed 1234`: repeat a run on a server exactly; `--seeds 0-999` runs many.

Programs, plans, drivers, the server and its locks are real. As in ``turnlog.testing.simulation`` the seed decides who
goes on before each statement and what befalls it: its connection is lost before it or with its answer, a program is
lost, somebody who waits for a lock gives up, the clock moves. Whoever is blocked is blocked by the server; when it lets
him go he takes his next step before anybody else does, so that what he found is judged by what is stored then.

Where two wait for one row the server decides who is next, so that a seed may have more than one course: ``--times``
runs it again and again.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import datetime
from random import Random
from typing import Final

from tests.postgres import stepping
from tests.postgres.following import ServerOracle
from tests.postgres.server import server
from tests.postgres.states import Database
from tests.postgres.stepping import WAITING, Cancelled, Lost, Order, fresh
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.sql import SqlRepository
from turnlog.storage.sql.driver import Driver
from turnlog.storage.sql.plans.at_once import APPEND_OTHER, APPEND_OWN, APPEND_USER
from turnlog.storage.sql.statements import Rows, Statement
from turnlog.testing.simulation import Report
from turnlog.testing.simulation.__main__ import main
from turnlog.testing.simulation.calling import Caller, Shared
from turnlog.testing.simulation.oracle import Call, Decision, Untold
from turnlog.testing.simulation.process import Killed
from turnlog.testing.simulation.program import Program
from turnlog.testing.simulation.reporting import judged
from turnlog.testing.simulation.stage import Actor
from turnlog.testing.simulation.verdict import PLACES, Places, faults_of
from turnlog.testing.simulation.weather import Weather
from turnlog.testing.simulation.world import World

#: As many programs as a run has at most.
MOST_PROGRAMS: Final = 4
_MODULE: Final = "tests.postgres.simulating"
#: What an error tells of the server: its address, and the places of rows in its files.
_SERVER: Final = "postgresql://.*"
_COMMITS: Final = frozenset({"COMMIT", APPEND_USER, APPEND_OTHER, APPEND_OWN})
_CHANGES: Final = re.compile(r"\s*(INSERT|UPDATE|DELETE)\b|.*\bINSERT INTO\b", re.DOTALL)


class ServerShared(Shared):
    """What the programs on a server share."""

    def __init__(self, database: Database) -> None:
        self.server_oracle = ServerOracle(database.ids)
        super().__init__(self.server_oracle)


class ServerProgram(Program, stepping.Witness):
    """One caller on one connection. Whether its transaction has written says where its place in the order is."""

    def __init__(self, name: str, calls: int, shared: ServerShared, connected: stepping.Program) -> None:
        super().__init__(name, [Caller(name, calls)], shared)
        self._oracle = shared.server_oracle
        self._connected = connected
        self._begun: tuple[Call, datetime] | None = None
        self._decision: Decision | None = None
        self._has_written = self._has_committed = False

    def open(self) -> Driver:
        """See ``Program``."""
        if not self._connected.is_open:
            self._connected.revive()
        self._connected.stage, self._connected.witness = self._shared.stage, self
        return self._connected.driver

    def leave(self) -> None:
        """Leave the connection to the next run."""
        self._connected.stage = None

    def die(self) -> None:
        """See ``Program``."""
        self.leave()
        self._connected.lose()

    def open_transactions(self) -> int:
        """See ``Program``."""
        return self._connected.database.is_in_transaction(self._connected.pid)

    def place(self) -> int:
        """In the order in which those go on who were let go at once: statements that commit themselves come first."""
        answer = self._connected.answer
        if not self._connected.is_alone or answer is None or answer.exception() is not None:
            return sys.maxsize
        (found,) = answer.result()
        return found[0][0] if found else sys.maxsize

    def begins(self, call: Call, now: datetime) -> None:
        """See ``Watcher``."""
        super().begins(call, now)
        self._begun = (call, now)

    def decided(self, decision: Decision) -> None:
        """See ``Watcher``."""
        if self._has_written and not self._has_committed:
            self._decision = decision
        elif self._has_written or decision.outcome is not None:  # None: one statement that left it to another plan
            self._follow(decision)

    def executed(self, group: Sequence[Statement], rows: Sequence[Rows], *, commits: bool, is_heard: bool) -> None:
        """See ``Witness``."""
        if group[0].sql != "COMMIT" and (commits or group[0].sql.startswith("BEGIN")):
            self._decision, self._has_written, self._has_committed = None, False, False
        changed = (
            bool(answer and answer[0][0])
            for statement, answer in zip(group, rows, strict=True)
            if _CHANGES.match(statement.sql)
        )
        self._has_written = any(changed) or self._has_written
        if not commits or not self._has_written:
            return
        self._has_committed = True
        if self._decision is not None:
            self._follow(self._decision)
        elif not is_heard and self._begun is not None:
            call, now = self._begun
            self._follow(Decision(call, Untold(), now))

    def _follow(self, decision: Decision) -> None:
        self._oracle.follow([decision])
        self._decision, self._has_written, self._has_committed = None, False, False

    def sends(self) -> None:
        """See ``Witness``."""
        call = self.current_call()
        if call is not None:
            self._oracle.sends(call)

    def undone(self) -> None:
        """See ``Witness``."""
        self.faults += 1
        self._shared.note(self.name, "is undone")

    def struck(self, at: str, order: Lost | Killed | Cancelled, *, commits: bool) -> None:
        """See ``Witness``."""
        self.faults += 1
        self._shared.note(self.name, f"is struck at {at.strip()[:40]}: {order}")
        call = self.current_call()
        if commits and call is not None:
            call.answers_lost += 1


class ServerWorld(World):
    """A run of two to four programs."""

    waiting_for = WAITING

    def __init__(self, seed: int, database: Database, connected: Sequence[stepping.Program]) -> None:
        random = Random(seed)  # noqa: S311 - repeatable on purpose
        shared = ServerShared(database)
        count = random.randint(2, MOST_PROGRAMS)
        named = zip("ABCD", connected[:count], strict=False)
        self.on_server = [ServerProgram(name, random.randint(3, 8), shared, each) for name, each in named]
        super().__init__(random, shared, Weather.drawn(random), self.on_server)

    def order(self, sql: str) -> Order:
        """See ``World``."""
        if sql in _COMMITS and self.random.random() < self.weather.lost:
            takes_effect = self.random.random() < 0.5
            return Killed(takes_effect) if self.random.random() < 0.15 else Lost(takes_effect)
        if self.random.random() < self.weather.fault:
            return Lost(self.random.random() < 0.5)
        return None

    def giving_up(self) -> Order:
        """See ``World``."""
        return Cancelled()

    def is_able(self, actor: Actor) -> bool:
        """See ``World``: ``has_stepped`` leaves only those who wait for others."""
        return actor.state == "ready"

    def has_stepped(self) -> None:
        """See ``World``."""
        while freed := self._freed():
            for _, actor in sorted(freed, key=lambda each: each[0].place()):
                self.resume(actor)

    def _freed(self) -> list[tuple[ServerProgram, Actor]]:
        pairs = ((program, actor) for program in self.on_server for actor in program.actors)
        return [(program, actor) for program, actor in pairs if actor.state == "waiting" and actor.may_go_on()]

    def end(self) -> None:
        """Leave the connections as they are to the next run."""
        for program in self.on_server:
            for actor in program.actors:
                self.shared.stage.kill(actor)
            program.leave()


def simulate(seed: int, database: Database, connected: Sequence[stepping.Program]) -> Report:
    """Run one seed; raises ``SimulationError`` where the store is wrong."""
    database.empty()
    world = ServerWorld(seed, database, connected)

    def faults() -> list[str]:
        driver = world.on_server[0].driver
        assert driver is not None
        store = SqlRepository(driver, world.clock, token_counter=EstimatedTokens())
        return list(faults_of(world, store, places))

    def places(session: str) -> Places:
        return database.connection.execute(PLACES.replace("?", "%s").encode(), (session,)).fetchall()

    return judged(seed, world, faults, command=f"python -m {_MODULE} --times 50", passing=_SERVER)


if __name__ == "__main__":
    with server() as found:
        if found is None:
            sys.exit("no server is running, and none is installed")
        with fresh(found, MOST_PROGRAMS) as made:
            sys.exit(main(None, lambda seed: simulate(seed, *made), module=_MODULE, store="PostgreSQL"))
