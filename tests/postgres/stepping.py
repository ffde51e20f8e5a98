"""Programs on a server that stop before each statement; where one waits for a lock, it is the server's own.

The stage decides who goes on. A statement that is let go runs in a thread beside. Either it ends, or the server says
that it is blocked: then its program waits on the stage until somebody has ended a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, Final

import psycopg
from psycopg import Connection

from tests.faults.operations import clock
from tests.postgres.states import Database
from turnlog.errors import StoreUnavailableError, TurnlogError
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.sql import SqlRepository
from turnlog.storage.sql.drivers.postgres import PostgresDriver, PostgresOptions
from turnlog.storage.sql.drivers.postgres.errors import LostError
from turnlog.storage.sql.statements import Rows, Statement
from turnlog.testing.simulation.exploring import CRASHED, Move, StoreCall
from turnlog.testing.simulation.stage import Actor, Stage

_GLANCE: Final = 0.000_2


class Program:
    """A store of its own with one connection, whose statements stop on the stage while there is one.

    An order given there loses the connection: before the statement, or with the answer to it.
    """

    def __init__(self, database: Database) -> None:
        self.stage: Stage | None = None
        self._database = database
        self._beside = ThreadPoolExecutor(1)
        self.pid = 0
        self.revive()

    def revive(self) -> None:
        """Open the store: it takes a while, so that programs which were not lost are used again."""
        driver = PostgresDriver(PostgresOptions(conninfo=self._database.url, pool_max=1))
        send = driver._send

        def stepped(connection: Connection, statements: Sequence[Statement]) -> list[Rows]:
            self.pid = connection.info.backend_pid
            return [
                rows for group in groups(statements) for rows in self._step(group, partial(send, connection, group))
            ]

        driver._send = stepped  # type: ignore[method-assign]
        self.store = SqlRepository(driver, clock(), token_counter=EstimatedTokens())
        self.store.open()
        self.store.version("s")

    def _step(self, group: Sequence[Statement], run: Callable[[], list[Rows]]) -> list[Rows]:
        if self.stage is None:
            return run()
        fate = self.stage.pause(group[-1].sql)
        if fate == "lost before":
            raise self._lost()
        going = self._beside.submit(run)
        while not self._ends(going):
            self.stage.wait("row lock", partial(self._ends, going))
        if fate == "answer lost":
            going.result()
            raise self._lost()
        return going.result()

    def _lost(self) -> LostError:
        """The connection is gone, and the server knows."""
        self.die()
        cause = StoreUnavailableError("injected: the connection is gone")
        cause.__cause__ = psycopg.OperationalError("injected")
        return LostError(cause)

    def _ends(self, going: Future[list[Rows]]) -> bool:
        """Whether the statement comes to its end; False when it is blocked."""
        while True:
            if wait([going], timeout=_GLANCE).done:
                return True
            if self._database.is_blocked(self.pid):
                return False

    def die(self) -> None:
        """Lose the program: the server notices that its connection is gone."""
        self._database.terminate(self.pid)

    def close(self) -> None:
        self.store.close()
        self._beside.shutdown()


def groups(statements: Sequence[Statement]) -> list[list[Statement]]:
    """What runs together: nobody can come between the beginning of a transaction and its first statement."""
    together: list[list[Statement]] = []
    for statement in statements:
        if together and together[-1][-1].sql.startswith("BEGIN"):
            together[-1].append(statement)
        else:
            together.append([statement])
    return together


class Run:
    """One schedule of some calls, each made by a program of its own."""

    def __init__(self, programs: Sequence[Program], calls: Sequence[StoreCall], *, crashes: bool) -> None:
        self._stage = Stage()
        self._programs = programs
        self.told: list[Any] = [None] * len(calls)
        self._actors: list[Actor] = []
        self._may_crash = crashes
        self._lost: Program | None = None
        for number, (program, call) in enumerate(zip(programs, calls, strict=True)):
            program.stage = self._stage
            self._actors.append(self._stage.start(str(number), partial(self._make, number, call, program)))

    def _make(self, number: int, call: StoreCall, program: Program) -> None:
        try:
            self.told[number] = call(program.store)
        except TurnlogError as error:
            self.told[number] = error

    def moves(self) -> list[Move]:
        numbered = [(number, actor) for number, actor in enumerate(self._actors) if actor.state != "done"]
        able = [Move("step", number) for number, actor in numbered if actor.state == "ready" or actor.may_go_on()]
        begun = (number for number, actor in numbered if actor.at != "begin")
        return able + [Move("crash", number) for number in begun if self._may_crash]

    def has_ended(self) -> bool:
        return all(actor.state == "done" for actor in self._actors)

    def make(self, move: Move) -> None:
        if move.what == "step":
            self._stage.resume(self._actors[move.program])
            return
        self._may_crash = False
        self._lost = self._programs[move.program]
        self._lost.die()
        self._stage.kill(self._actors[move.program])
        self.told[move.program] = CRASHED

    def end(self) -> None:
        for actor, program in zip(self._actors, self._programs, strict=True):
            if actor.state != "done":
                program.die()
                self._stage.kill(actor)
            program.stage = None
        if self._lost is not None:
            self._lost.store.close()
            self._lost.revive()
