"""What the store should answer: a model of it that follows every commit.

The model is the store in memory. A write takes effect on it at the moment in which its commit does on the store, in the
order of the plans in it; a read is asked of it at the moment in which the snapshot is taken. So the model and the store
go through the same states, and each answer is known before the caller gets it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from turnlog.errors import TurnlogError
from turnlog.log.event_filter import EventFilter
from turnlog.log.session import Session
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.memory import MemoryRepository
from turnlog.testing.clocks import FixedClock
from turnlog.testing.simulation.operations import Operation, Refusal, answer_of, is_change, told_alike


class Call:
    """One call of a caller: what it asks, and what is known of the answer so far.

    ``effects`` are the model's answers to what has been committed of it, ``refusal`` the last one that the model agreed
    with, ``expected`` what its reads must give, ``answers_lost`` how often a commit of it gave no answer, ``found``
    what was stored of its batch when that was looked up, ``was_absent`` whether it read where there was no session.
    """

    def __init__(self, operation: Operation, count_faults: Callable[[], int]) -> None:
        self.operation = operation
        self.effects: list[Any] = []
        self.refusal: Refusal | None = None
        self.expected: list[Any] = []
        self.answers_lost = 0
        self.found: list[Any] = []
        self.was_absent = False
        self._count_faults = count_faults
        self._faults_before = count_faults()

    @property
    def met_a_fault(self) -> bool:
        """Whether something has befallen its process since it began."""
        return self._count_faults() > self._faults_before


class Untold(Struct, frozen=True):
    """Stands for what a plan came to that took effect with its last statement, whose answer was lost."""


class Decision(Struct, frozen=True):
    """What a plan came to in a transaction: its result, or the error that refuses it. It went by the time ``now``."""

    call: Call
    outcome: Any
    now: datetime

    @property
    def is_refusal(self) -> bool:
        """Whether the plan was refused."""
        return isinstance(self.outcome, TurnlogError)


class Oracle:
    """The model, and every complaint about the store."""

    def __init__(self) -> None:
        self._clock = FixedClock()
        self._model = MemoryRepository(self._clock, token_counter=EstimatedTokens())
        self.complaints: list[str] = []

    def begins(self, call: Call, now: datetime) -> None:
        """A plan of the call, which writes, goes by the time ``now``; its transaction is about to begin."""
        del call, now

    def at(self, now: datetime) -> MemoryRepository:
        """The model, at this time."""
        self._clock.set(now)
        return self._model

    def version(self, session: str) -> int:
        """The log's version in the model, at the time of its last answer."""
        return self._model.version(session)

    def expiries(self, now: datetime) -> list[datetime]:
        """When the sessions that are there at this time end: the moments at which a clock is off by one."""
        listed = self.at(now).list().sessions
        return sorted({session.expires_at for session in listed if session.expires_at is not None})

    def view(self, session: str) -> list[int]:
        """The positions in the log's view in the model."""
        return [event.position or 0 for event in self._model.events(session, EventFilter(active_view=True))]

    def knows(self, session: str, now: datetime) -> bool:
        """Whether there is such a session at this time."""
        return self.at(now).find(session) is not None

    def complain(self, text: str) -> None:
        """The store is wrong."""
        self.complaints.append(text)

    def expect(self, call: Call, now: datetime) -> None:
        """A read has taken its snapshot: note what it must give."""
        if not call.operation.reads:  # an append whose answer was lost looks its ids up
            ids = [event.id for event in call.operation.batch]
            call.found = answer_of(self.at(now).find_events(call.operation.session, event_ids=ids))
            return
        call.expected.append(self._answer(call.operation, now))
        call.was_absent = bool(call.operation.session) and self._model.find(call.operation.session) is None

    def follow(self, decisions: Sequence[Decision]) -> None:
        """The plans of a transaction have taken effect, in this order, or are refused: so it must be on the model."""
        for decision in decisions:
            if not decision.call.operation.reads:  # what a tally keeps is derived
                self.take_effect(decision)

    def take_effect(self, decision: Decision) -> None:
        """A plan that writes has taken effect, or is refused."""
        call = decision.call
        expected = self._answer(call.operation, decision.now)
        actual = Refusal.of(decision.outcome) if decision.is_refusal else answer_of(decision.outcome)
        if isinstance(expected, Session) and isinstance(actual, int):
            actual = expected  # the plan of a create gives the row's key
        if isinstance(actual, Untold) and is_change(expected):
            actual = expected
        if actual != expected and not (call.answers_lost and told_alike(actual, expected)):
            self.complain(f"{call.operation}: the store decides {actual}, the model {expected}")
        if isinstance(expected, Refusal):
            call.refusal = expected
        else:
            call.effects.append(expected)

    def _answer(self, operation: Operation, now: datetime) -> Any:
        try:
            return answer_of(operation.call(self.at(now)))
        except TurnlogError as refusal:
            return Refusal.of(refusal)
