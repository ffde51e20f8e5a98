"""Programs that have the file open: real drivers on real connections, stopped before each statement."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from turnlog.storage import forking
from turnlog.storage.sql.drivers.sqlite import SqliteDriver, SqliteOptions
from turnlog.storage.sql.drivers.sqlite.connecting import connect
from turnlog.testing.driver_faults import Fault
from turnlog.testing.simulation.stage import Stage, SteppedLock

T = TypeVar("T")

_TAKE_LOCK = "BEGIN IMMEDIATE"


class Killed(Struct, frozen=True):
    """The order to lose the process at this statement: before it, or when it has taken effect and nobody was told."""

    takes_effect: bool = False


Order: TypeAlias = "Fault | Killed | None"


class Observer(Protocol):
    """Is told what becomes of the write transactions of a process."""

    def begun(self) -> None:
        """It has the write lock."""
        ...

    def committed(self) -> None:
        """Its transaction has taken effect."""
        ...

    def ended(self) -> None:
        """Its transaction has ended: the lock may be free."""
        ...

    def lock_may_be_free(self) -> Callable[[], bool]:
        """Whether, from now on, a transaction of any process has ended."""
        ...

    def struck(self, sql: str, order: Fault | Killed) -> None:
        """A fault befalls it at this statement."""
        ...


class SteppedConnection(sqlite3.Connection):
    """A connection that stops on the stage before every statement but those that set it up."""

    process: ClassVar[Process]

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Execute one statement, when the stage says so and as it says."""
        return self._step(sql, partial(super().execute, sql, parameters))

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        """Execute one statement for each element of ``parameters``, when the stage says so and as it says."""
        return self._step(sql, partial(super().executemany, sql, parameters))

    def close(self) -> None:
        """Close it; its transaction is undone."""
        super().close()
        self.process.connection_closed(self)

    def _step(self, sql: str, run: Callable[[], T]) -> T:
        if sql.startswith("PRAGMA"):
            return run()
        process = self.process
        order: Order = process.stage.pause(sql)
        if order is not None:
            process.observer.struck(sql, order)
            if not order.takes_effect:
                self._suffer(order)
        answer = self._locking(run) if sql == _TAKE_LOCK else run()
        process.executed(self, sql)
        if order is not None:
            self._suffer(order)
        return answer

    def _locking(self, run: Callable[[], T]) -> T:
        """Wait for the file's write lock on the stage; an order given meanwhile is to wait no longer."""
        while True:
            try:
                return run()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or self.process.waits_in_vain():
                    raise

    def _suffer(self, order: Fault | Killed) -> None:
        if isinstance(order, Killed):
            self.process.stage.crash()
        if order.then == "undo":
            self.rollback()
            self.process.executed(self, "ROLLBACK")
        elif order.then == "die":
            self.close()
        raise order.error()


class Process:
    """One program: a driver of its own, used by as many callers as it has threads."""

    def __init__(self, name: str, path: str, stage: Stage, observer: Observer) -> None:
        self.name = name
        self.stage = stage
        self.observer = observer
        self._writing: sqlite3.Connection | None = None
        self._connections: list[sqlite3.Connection] = []
        self._kind = type("Stepped", (SteppedConnection,), {"process": self})
        self.driver = SqliteDriver(SqliteOptions(path=path, busy_timeout=0), self._connect)
        # Whoever waits for the writer of this process must wait on the stage, not in the operating system.
        database: Any = self.driver._database  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        database._writer._lock = SteppedLock(stage)  # noqa: SLF001 - nothing public lets another lock in
        # Nor must a real fork wait for it: the stage may have closed long ago.
        forking.unwatch(database)

    def _connect(self, options: SqliteOptions) -> sqlite3.Connection:
        connection = connect(options, factory=self._kind)
        self._connections.append(connection)
        return connection

    def executed(self, connection: sqlite3.Connection, sql: str) -> None:
        """A statement has taken effect on one of its connections."""
        if sql == _TAKE_LOCK:
            self._writing = connection
            self.observer.begun()
        elif sql in {"COMMIT", "ROLLBACK"} and connection is self._writing:
            self._writing = None
            if sql == "COMMIT":
                self.observer.committed()
            self.observer.ended()

    def connection_closed(self, connection: sqlite3.Connection) -> None:
        """One of its connections is closed."""
        if connection is self._writing:
            self._writing = None
            self.observer.ended()

    def waits_in_vain(self) -> bool:
        """Wait until the file's lock may be free; True if the caller is to give up."""
        if self.stage.current is None:
            return True
        order = self.stage.wait("file lock", self.observer.lock_may_be_free())
        if order is not None:
            self.observer.struck("file lock", order)
        return order is not None

    def die(self) -> None:
        """Lose the process: its connections are closed, and what they had not committed is undone."""
        for connection in self._connections:
            connection.close()

    def open_transactions(self) -> int:
        """How many of its connections are in a transaction."""
        count = 0
        for connection in self._connections:
            try:
                count += connection.in_transaction
            except sqlite3.ProgrammingError:
                continue  # closed
        return count
