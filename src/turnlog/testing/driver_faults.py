"""SQLite connections that fail when they are told to: what is left of a call whose n-th statement comes to grief?

``SqliteDriver`` and ``AsyncSqliteDriver`` take a ``connect=``; give them :func:`watched` and a watch, which is asked
before every statement of every connection, those that set a connection up among them::

    fault = NthCall(3, FAULTS["full"])
    driver = SqliteDriver(SqliteOptions(path="chat.db"), watched(fault))

Each :class:`Fault` does to the transaction what the engine does to it with that error, so that what the driver finds
afterwards is real.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final, Literal, TypeAlias, TypeVar

from msgspec import Struct

from turnlog.storage.sql.drivers.sqlite.connecting import Connection, SqliteOptions, connect

T = TypeVar("T")

Watch: TypeAlias = "Callable[[WatchedConnection, str], Fault | None]"


class Fault(Struct, frozen=True):
    """One way in which a statement fails.

    ``takes_effect``: the statement runs and its answer is lost. ``then`` is what becomes of the connection: its
    transaction stays open (``keep``), is undone by the engine (``undo``), or it is of no more use (``die``).
    ``only_commits`` leaves every other statement alone.
    """

    code: int
    takes_effect: bool = False
    then: Literal["keep", "undo", "die"] = "keep"
    only_commits: bool = False

    def applies_to(self, sql: str) -> bool:
        """Whether a statement can fail in this way."""
        return not self.only_commits or sql == "COMMIT"

    def error(self) -> sqlite3.Error:
        """The error as SQLite raises it, with its code."""
        error = sqlite3.OperationalError(f"injected: error {self.code}")
        error.sqlite_errorcode = self.code
        return error


#: Every way to fail, by a name that a test can show.
FAULTS: Final = {
    "busy": Fault(sqlite3.SQLITE_BUSY),
    "full": Fault(sqlite3.SQLITE_FULL, then="undo"),
    "io": Fault(sqlite3.SQLITE_IOERR_WRITE, then="undo"),
    "io, transaction left open": Fault(sqlite3.SQLITE_IOERR_READ),
    "interrupted": Fault(sqlite3.SQLITE_INTERRUPT, then="undo"),
    "dead connection": Fault(sqlite3.SQLITE_IOERR_CLOSE, then="die"),
    "commit refused": Fault(sqlite3.SQLITE_BUSY, only_commits=True),
    "commit undone": Fault(sqlite3.SQLITE_IOERR_FSYNC, then="undo", only_commits=True),
    "commit answer lost": Fault(sqlite3.SQLITE_IOERR_FSYNC, takes_effect=True, only_commits=True),
    "commit answer and connection lost": Fault(
        sqlite3.SQLITE_IOERR_CLOSE, takes_effect=True, then="die", only_commits=True
    ),
}


class WatchedConnection(sqlite3.Connection):
    """A connection that asks its watch before every statement."""

    watch: ClassVar[Watch]

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Execute one statement, unless the watch has it fail."""
        return self._watched(sql, lambda: super(WatchedConnection, self).execute(sql, parameters))

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        """Execute one statement for each element of ``parameters``, unless the watch has it fail."""
        return self._watched(sql, lambda: super(WatchedConnection, self).executemany(sql, parameters))

    def _watched(self, sql: str, run: Callable[[], T]) -> T:
        fault = type(self).watch(self, sql)
        if fault is None:
            return run()
        if fault.takes_effect:
            run()
        self.suffer(fault)
        raise fault.error()

    def suffer(self, fault: Fault) -> None:
        """Let the transaction or the connection end as it does with this fault; ``execute`` raises afterwards."""
        if fault.then == "undo":
            self.rollback()
        elif fault.then == "die":
            self.close()


def watched(watch: Watch) -> Callable[[SqliteOptions], Connection]:
    """A ``connect`` for the SQLite drivers whose connections ask ``watch`` before every statement."""
    kind = type("Watched", (WatchedConnection,), {"watch": staticmethod(watch)})
    return lambda options: connect(options, factory=kind)


class NthCall:
    """A watch that has the ``number``-th statement fail, from 1; with ``lasting`` every one from then on.

    It counts the statements that can fail in this way, over all ``connections``; ``struck`` are those that did.
    ``heal`` ends the fault, ``arm`` begins the count anew.
    """

    def __init__(self, number: int, fault: Fault, *, lasting: bool = False) -> None:
        self.fault = fault
        self.number = number
        self.lasting = lasting
        self.calls = 0
        self.struck: list[str] = []
        self.connections: set[WatchedConnection] = set()
        self._is_armed = True
        self._lock = threading.Lock()

    def __call__(self, connection: WatchedConnection, sql: str) -> Fault | None:
        """Count the statement; return the fault if it is its turn to fail."""
        with self._lock:
            self.connections.add(connection)
            if not self._is_armed or not self.fault.applies_to(sql):
                return None
            self.calls += 1
            if self.calls != self.number and not (self.lasting and self.calls > self.number):
                return None
            self.struck.append(sql)
            return self.fault

    def heal(self) -> None:
        """Let every statement work from now on."""
        self._is_armed = False

    def arm(self) -> None:
        """Count from the beginning."""
        self._is_armed, self.calls = True, 0
        self.struck.clear()
