"""A driver that tells the oracle what plans come to, and when; the plans and the driver below are the real ones."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol, TypeVar

from turnlog.errors import StoreError, TurnlogError
from turnlog.storage.protocol import Durability
from turnlog.storage.sql.driver import Driver
from turnlog.storage.sql.plans.plan import Plan, PlanFactory
from turnlog.testing.clocks import FixedClock
from turnlog.testing.simulation.oracle import Call, Decision

T = TypeVar("T")


class SharedClock(FixedClock):
    """The clock of all processes; it remembers what it showed last."""

    def __init__(self) -> None:
        super().__init__()
        self.shown = self.now

    def __call__(self) -> datetime:
        """The moment it shows."""
        self.shown = self.now
        return self.now


class Watcher(Protocol):
    """Is told of the plans of a process."""

    def current_call(self) -> Call | None:
        """The call that is being made, None outside of the simulation."""
        ...

    def begins(self, call: Call, now: datetime) -> None:
        """A plan that writes has its first statement ready; it goes by the time ``now``."""
        ...

    def decided(self, decision: Decision) -> None:
        """A plan has come to its end, in the transaction of its process that is open.

        If its last statement was sent with the commit, or is a transaction by itself, that has ended already.
        """
        ...

    def has_read(self, call: Call, now: datetime) -> None:
        """A plan that reads has just got its first rows: its snapshot is taken."""
        ...


class ObservedDriver:
    """A ``Driver`` over another."""

    def __init__(self, driver: Driver, clock: SharedClock, watcher: Watcher) -> None:
        self._driver = driver
        self._clock = clock
        self._watcher = watcher

    @property
    def changes_at_once(self) -> bool:
        """See ``turnlog.storage.sql.driver.Driver``."""
        return self._driver.changes_at_once

    def write_at_once(self, make: Callable[[], Plan[T]]) -> T | None:
        """See ``turnlog.storage.sql.driver.Driver``."""
        call = self._watcher.current_call()
        return self._driver.write_at_once(make if call is None else lambda: self._deciding(make(), call))

    def write(self, make: PlanFactory[T]) -> T:
        """See ``turnlog.storage.sql.driver.Driver``."""
        call = self._watcher.current_call()
        return self._driver.write(make if call is None else lambda attempt: self._deciding(make(attempt), call))

    def read(self, make: Callable[[], Plan[T]]) -> T:
        """See ``turnlog.storage.sql.driver.Driver``."""
        call = self._watcher.current_call()
        if call is None:
            return self._driver.read(make)
        known = len(call.expected)

        def made() -> Plan[T]:
            # Made anew when its connection was lost, it reads another snapshot.
            del call.expected[known:]
            return self._reading(make(), call)

        return self._driver.read(made)

    def settle(self, make: Callable[[], Plan[T]]) -> T:
        """See ``turnlog.storage.sql.driver.Driver``."""
        call = self._watcher.current_call()
        return self._driver.settle(make if call is None else lambda: self._reading(make(), call))

    def durability(self) -> Durability:
        """See ``turnlog.storage.sql.driver.Driver``."""
        return self._driver.durability()

    def close(self) -> None:
        """See ``turnlog.storage.sql.driver.Driver``."""
        self._driver.close()

    def _deciding(self, plan: Plan[T], call: Call) -> Plan[T]:
        now = self._clock.shown
        try:
            statement = next(plan)
            now = self._clock.shown  # the plan reads the clock before its first statement, which has yet to be executed
            self._watcher.begins(call, now)
            while True:
                statement = plan.send((yield statement))
        except StopIteration as stop:
            self._watcher.decided(Decision(call, stop.value, now))
            result: T = stop.value
            return result
        except StoreError:
            raise
        except TurnlogError as refusal:
            self._watcher.decided(Decision(call, refusal, now))
            raise
        finally:
            plan.close()

    def _reading(self, plan: Plan[T], call: Call) -> Plan[T]:
        try:
            statement = next(plan)
            now = self._clock.shown
            rows = yield statement
            self._watcher.has_read(call, now)
            while True:
                rows = yield plan.send(rows)
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            plan.close()
