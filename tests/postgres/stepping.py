"""Programs on a server that stop before each statement; where one waits for a lock, it is the server's own.

The stage decides who goes on. A statement that is let go runs in a thread beside. Either it ends, or the server says
that it is blocked: then its program waits on the stage until somebody has ended a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, Final, TypeAlias

import psycopg
from msgspec import Struct
from psycopg import Connection
from psycopg.pq import TransactionStatus

from tests.faults.operations import clock
from tests.postgres.conftest import new_database
from tests.postgres.states import Database
from turnlog.errors import StoreUnavailableError, TurnlogError
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.sql import SqlRepository
from turnlog.storage.sql.drivers.postgres import PostgresDriver, PostgresOptions
from turnlog.storage.sql.drivers.postgres.errors import LostError, UndoneError
from turnlog.storage.sql.drivers.postgres.migrating import migrate
from turnlog.storage.sql.drivers.postgres.running import COMMIT
from turnlog.storage.sql.statements import Rows, Statement
from turnlog.testing.simulation.exploring import CRASHED, Move, StoreCall
from turnlog.testing.simulation.process import Killed
from turnlog.testing.simulation.stage import Actor, Crash, Stage

#: Where somebody stands who waits for a lock.
WAITING: Final = "row lock"
#: Seconds. Most statements have ended after the first; and who is blocked then has looked for a deadlock, so that the
#: one who closes a circle of waiting is the one who finds it.
_FIRST_GLANCE: Final = 0.003
_GLANCE: Final = 0.000_5


class Lost(Struct, frozen=True):
    """The order to lose the connection at this statement: before it, or with the answer to it."""

    takes_effect: bool


class Cancelled(Struct, frozen=True):
    """The order to wait no longer for a lock: somebody has cancelled the statement."""

    takes_effect: ClassVar[bool] = False


Order: TypeAlias = "Lost | Killed | Cancelled | None"


class Witness:
    """Is told what becomes of the statements of a program."""

    def sends(self) -> None:
        """A statement goes to the server."""

    def executed(self, group: Sequence[Statement], rows: Sequence[Rows], *, commits: bool, is_heard: bool) -> None:
        """They have been executed, and the last ends its transaction if it ``commits``.

        If it is not ``is_heard``, the program will never know.
        """
        del group, rows, commits, is_heard

    def undone(self) -> None:
        """The server has undone the transaction for another's sake."""

    def struck(self, at: str, order: Lost | Killed | Cancelled, *, commits: bool) -> None:
        """It suffers this order; ``commits`` if a commit was, or would have been, sent with the statement."""
        del at, order, commits


class Program:
    """A store of its own with one connection, whose statements stop on the stage while there is one.

    They suffer the orders that are given there.
    """

    def __init__(self, database: Database) -> None:
        self.stage: Stage | None = None
        self.witness = Witness()
        self.database = database
        self._beside = ThreadPoolExecutor(1)
        self.connection: Connection
        self.pid = 0
        self.answer: Future[list[Rows]] | None = None
        self.is_alone = False
        self.is_open = False
        self.revive()

    def revive(self) -> None:
        """Open the store: it takes a while, so that programs which were not lost are used again."""
        self.driver = PostgresDriver(PostgresOptions(conninfo=self.database.url, pool_max=1, lock_timeout=0))
        send = self.driver._send

        def stepped(connection: Connection, statements: Sequence[Statement]) -> list[Rows]:
            self.connection, self.pid = connection, connection.info.backend_pid
            self.is_alone = len(statements) == 1 and connection.info.transaction_status == TransactionStatus.IDLE
            commits = self.is_alone or statements[-1] is COMMIT
            return [
                rows
                for group in groups(statements)
                for rows in self._step(group, partial(send, connection, group), commits=commits)
            ]

        self.driver._send = stepped  # type: ignore[method-assign]
        self.store = SqlRepository(self.driver, clock(), token_counter=EstimatedTokens())
        self.store.open()
        self.store.version("s")
        self.is_open = True

    def _step(self, group: Sequence[Statement], run: Callable[[], list[Rows]], *, commits: bool) -> list[Rows]:
        if self.stage is None:
            return run()
        order: Order = self.stage.pause(group[-1].sql)
        if order is not None:
            self.witness.struck(group[-1].sql, order, commits=commits)
            if not order.takes_effect:
                self._suffer(self.stage, order)
        self.witness.sends()
        self.answer = self._beside.submit(run)
        wait([self.answer], timeout=_FIRST_GLANCE)
        while not self._ends():
            self._wait(self.stage, self.answer)
        try:
            rows = self.answer.result()
        except UndoneError:
            self.witness.undone()
            raise
        is_last = self.is_alone or group[-1] is COMMIT
        self.witness.executed(group, rows, commits=is_last, is_heard=order is None)
        if order is not None:
            self._suffer(self.stage, order)
        return rows

    def _wait(self, stage: Stage, going: Future[list[Rows]]) -> None:
        try:
            order: Order = stage.wait(WAITING, self._ends)
        except Crash:
            self.die()  # or what cleans up behind it would wait as well
            raise
        if order is not None:
            self.witness.struck(WAITING, order, commits=False)
            self.database.cancel(self.pid)
            wait([going])

    def _suffer(self, stage: Stage, order: Lost | Killed | Cancelled) -> None:
        if isinstance(order, Killed):
            stage.crash()
        raise self._lost()

    def _lost(self) -> LostError:
        """The connection is gone, and both ends know."""
        self.die()
        self.connection.close()
        cause = StoreUnavailableError("injected: the connection is gone")
        cause.__cause__ = psycopg.OperationalError("injected")
        return LostError(cause)

    def _ends(self) -> bool:
        """Whether the statement comes to its end; False when it is blocked."""
        assert self.answer is not None
        while not self.answer.done():
            if self.database.is_blocked(self.pid):
                return False
            wait([self.answer], timeout=_GLANCE)
        return True

    def die(self) -> None:
        """Lose the program: the server notices that its connection is gone."""
        self.database.terminate(self.pid)

    def lose(self) -> None:
        """Let it die, and close what it has open."""
        self.die()
        self.store.close()
        self.is_open = False

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


@contextmanager
def fresh(admin_url: str, programs: int = 2) -> Generator[tuple[Database, list[Program]]]:
    """A database and programs on it."""
    with new_database(admin_url) as url:
        migrate(PostgresOptions(conninfo=url))
        database = Database(url)
        made = [Program(database) for _ in range(programs)]
        yield database, made
        for program in made:
            program.close()
        database.close()
