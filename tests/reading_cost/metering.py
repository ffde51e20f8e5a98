"""What a call costs, counted and not timed: steps of SQLite's virtual machine, rows handed over, statements (R-11)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.sql import SqlRepository
from turnlog.storage.sql.drivers.sqlite import SqliteDriver, SqliteOptions
from turnlog.storage.sql.drivers.sqlite.connecting import connect
from turnlog.testing.clocks import FixedClock

#: Sessions of the same content, but for the length of what lies before their tail.
SHORT, LONG = "short", "long"
#: Equal within a tenth, and a few steps more where the counts are tiny.
_SHARE: Final = 0.10
_SLACK: Final = 12


class Cost(Struct, frozen=True):
    """Steps of the virtual machine, and the statements executed."""

    steps: int
    statements: tuple[str, ...]


class Meter:
    """Counts while it is on; every connection of its store reports to it."""

    def __init__(self) -> None:
        self.steps = 0
        self.statements: list[str] = []
        self.bound: list[Any] = []

    def connection(self, options: SqliteOptions) -> sqlite3.Connection:
        meter = self

        class Metered(sqlite3.Connection):
            def execute(self, statement: str, parameters: Any = (), /) -> sqlite3.Cursor:
                meter.statements.append(statement)
                meter.bound.append(parameters)
                return super().execute(statement, parameters)

        made = connect(options, factory=Metered)
        made.set_progress_handler(self._step, 1)
        return made

    def _step(self) -> int:
        self.steps += 1
        return 0

    def cost_of(self, call: Callable[[], Any]) -> Cost:
        self.steps = 0
        self.statements.clear()
        self.bound.clear()
        call()
        return Cost(self.steps, tuple(self.statements))


def open_metered(path: Path, meter: Meter) -> SqlRepository:
    driver = SqliteDriver(SqliteOptions(path=str(path), synchronous="OFF", unsafe=True), meter.connection)
    return SqlRepository(driver, FixedClock(), token_counter=EstimatedTokens())


def alike(one: Cost, other: Cost) -> bool:
    """Whether two costs are equal within a tenth."""
    return abs(one.steps - other.steps) <= _SHARE * min(one.steps, other.steps) + _SLACK
