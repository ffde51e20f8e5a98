"""A plan under way, and what is sent to the server together; without a colour."""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar, cast

import psycopg
from psycopg.errors import Diagnostic

from turnlog.storage.sql.plans.plan import Plan
from turnlog.storage.sql.statements import Rows, Statement

T = TypeVar("T")

#: Said aloud: a database may have been given another default.
BEGIN_WRITING: Final = Statement("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
BEGIN_READING: Final = Statement("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
COMMIT: Final = Statement("COMMIT")


class Run(Generic[T]):
    """One run of a plan: the statement that is ``due``, None at the end, when ``result`` says what it has come to."""

    def __init__(self, plan: Plan[T]) -> None:
        self._plan = plan
        self.due: Statement | None = None
        self._result: T | None = None

    def begin(self) -> None:
        """Go to the first statement."""
        self._go_on(None)

    def answer(self, rows: Rows) -> None:
        """Go on with the answer to the statement that was due."""
        self._go_on(rows)

    def _go_on(self, rows: Rows | None) -> None:
        try:
            self.due = next(self._plan) if rows is None else self._plan.send(rows)
        except StopIteration as stop:
            self.due, self._result = None, stop.value

    @property
    def result(self) -> T:
        """What it has come to."""
        return cast("T", self._result)

    def close(self) -> None:
        """Give it up."""
        self._plan.close()


def rows_of(cursor: psycopg.Cursor[Any] | psycopg.AsyncCursor[Any]) -> Rows | None:
    """The answer of a statement that gives no rows: how many it has changed; None where there are rows to fetch."""
    result = cursor.pgresult
    return None if result is not None and result.nfields else [(cursor.rowcount,)]


def says_unconfirmed(diagnostic: Diagnostic) -> bool:
    """Whether a notice says that a commit is in force here, but no standby has confirmed it: somebody ended the wait.

    The words are in the server's language; the place in its source is not.
    """
    return diagnostic.source_function == "SyncRepWaitForLSN"
