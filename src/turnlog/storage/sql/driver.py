"""What a driver does: it runs plans. One per engine and colour, written by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from turnlog.errors import StoreError
from turnlog.storage.protocol import Durability
from turnlog.storage.sql.plans.plan import Plan, PlanFactory
from turnlog.storage.sql.statements import Rows, Statement

T = TypeVar("T")


class UniqueViolationError(Exception):
    """A unique key refused a row. The transaction is undone and the plan is made anew; never seen by callers."""


class CommitFailedError(StoreError):
    """COMMIT gave an error: whether it took effect is not known. Carries what the plan had decided."""

    def __init__(self, cause: StoreError, decided: object) -> None:
        super().__init__(f"the commit failed: {cause}")
        self.cause = cause
        self.decided = decided


class Driver(Protocol):
    """Runs plans for any thread."""

    @property
    def changes_at_once(self) -> bool:
        """Whether one statement may change a row and use what it has changed (``plans.at_once``)."""
        ...

    def write_at_once(self, make: Callable[[], Plan[T]]) -> T | None:
        """Run a plan of one statement, which is its own transaction; None when it has run into a unique key."""
        ...

    def write(self, make: PlanFactory[T]) -> T:
        """Run the plan in a transaction of its own and return once it is durable.

        The plan is made anew, with the next attempt number, after a unique violation or a serialisation failure.
        """
        ...

    def read(self, make: Callable[[], Plan[T]]) -> T:
        """Run the plan on one snapshot."""
        ...

    def settle(self, make: Callable[[], Plan[T]]) -> T:
        """Run a plan that locks and reads; what it finds is as durable as what a write of its own would be."""
        ...

    def durability(self) -> Durability:
        """What the engine's settings allow to be claimed."""
        ...

    def close(self) -> None:
        """Release all connections."""
        ...


class AsyncDriver(Protocol):
    """Runs plans for tasks; no call blocks the event loop."""

    @property
    def changes_at_once(self) -> bool:
        """As ``Driver.changes_at_once``."""
        ...

    async def write_at_once(self, make: Callable[[], Plan[T]]) -> T | None:
        """As ``Driver.write_at_once``."""
        ...

    async def write(self, make: PlanFactory[T]) -> T:
        """As ``Driver.write``; goes on when the caller is cancelled."""
        ...

    async def read(self, make: Callable[[], Plan[T]]) -> T:
        """As ``Driver.read``."""
        ...

    async def settle(self, make: Callable[[], Plan[T]]) -> T:
        """As ``Driver.settle``."""
        ...

    def durability(self) -> Durability:
        """As ``Driver.durability``."""
        ...

    async def close(self) -> None:
        """As ``Driver.close``."""
        ...


def run_plan(plan: Plan[T], execute: Callable[[Statement], Rows]) -> T:
    """Drive a plan to its end with a function that executes one statement."""
    try:
        statement = next(plan)
        while True:
            statement = plan.send(execute(statement))
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        plan.close()
