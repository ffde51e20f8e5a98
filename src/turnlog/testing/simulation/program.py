"""A program in a simulation: its callers, and what its plans come to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime

from turnlog.storage.sql.driver import Driver
from turnlog.testing.simulation.calling import Caller, Shared
from turnlog.testing.simulation.oracle import Call, Decision
from turnlog.testing.simulation.stage import Actor


class Program(ABC):
    """A program with its callers; ``driver`` is what it has the store open by, None while it is down.

    It is the ``Watcher`` of its plans.
    """

    def __init__(self, name: str, callers: list[Caller], shared: Shared) -> None:
        self.name = name
        self.callers = callers
        self.actors: dict[Actor, Caller] = {}
        self.faults = 0
        self.driver: Driver | None = None
        self._shared = shared

    @abstractmethod
    def open(self) -> Driver:
        """Open the store anew."""

    @abstractmethod
    def die(self) -> None:
        """Lose what the program has open; nobody acts in it any more."""

    @abstractmethod
    def open_transactions(self) -> int:
        """How many transactions it has open."""

    @abstractmethod
    def decided(self, decision: Decision) -> None:
        """See ``Watcher``."""

    def begins(self, call: Call, now: datetime) -> None:
        """See ``Watcher``."""
        self._shared.oracle.begins(call, now)

    def has_read(self, call: Call, now: datetime) -> None:
        """See ``Watcher``."""
        self._shared.oracle.expect(call, now)

    def current_call(self) -> Call | None:
        """See ``Watcher``."""
        actor = self._shared.stage.current
        return None if actor is None else self.actors[actor].call
