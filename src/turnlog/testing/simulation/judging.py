"""Whether what a caller was told is the truth, and what the history records of it (R-14)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from turnlog.errors import (
    AppendOutcomeUnknownError,
    BrokenInvariantError,
    ConflictError,
    SessionNotFoundError,
    StoreError,
    TurnlogError,
    UnreadableDataError,
    VersionConflictError,
)
from turnlog.storage.protocol import AppendResult
from turnlog.storage.sql.driver import CommitFailedError
from turnlog.testing.history import Absent, Conflict, Done, Failed, Ok, Outcome, Seen, Unknown
from turnlog.testing.simulation.operations import Refusal, answer_of, event_key, is_change, recorded, told_alike
from turnlog.testing.simulation.oracle import Call


def lies(call: Call, told: Any) -> Iterator[str]:
    """What is wrong with the answer that the caller was given."""
    match told:
        case BrokenInvariantError() | UnreadableDataError():
            yield "the log contradicts itself"
        case AppendOutcomeUnknownError() | CommitFailedError():
            yield from _lies_of_doubt(call, told)
        case StoreError():
            if not call.met_a_fault:
                yield "it failed, and nothing had befallen it"
            if any(map(is_change, call.effects)) and call.operation.kind != "sweep":
                yield "it failed, and has taken effect"
        case TurnlogError():
            yield from _lies_of_refusal(call, told)
        case BaseException():
            yield "the error is not of our tree"
        case _ if call.operation.reads:
            if answer_of(told) != call.expected[0]:
                yield f"the model read {call.expected[0]}"
        case _:
            yield from _lies_of_success(call, told)


def _lies_of_doubt(call: Call, told: StoreError | AppendOutcomeUnknownError) -> Iterator[str]:
    if not call.answers_lost:
        yield "the outcome is called unknown, and no answer was lost"
    is_append = bool(call.operation.batch)
    if is_append != isinstance(told, AppendOutcomeUnknownError):
        yield "an append, and nothing else, is settled by its ids"
    if isinstance(told, AppendOutcomeUnknownError) and told.event_ids != tuple(e.id for e in call.operation.batch):
        yield "it names other ids"


def _lies_of_refusal(call: Call, told: TurnlogError) -> Iterator[str]:
    refusal = Refusal.of(told)
    if call.operation.reads:
        # A walk may end because its session has: that is told where it goes on, by another snapshot.
        if refusal not in call.expected and not isinstance(told, SessionNotFoundError):
            yield f"it was refused; the model read {call.expected}"
        return
    if any(map(is_change, call.effects)):
        yield "it was refused, and has taken effect"
    if refusal != call.refusal and not (call.answers_lost and isinstance(told, ConflictError)):
        yield f"it was refused; the model says {call.refusal or call.effects}"


def _lies_of_success(call: Call, told: Any) -> Iterator[str]:
    if isinstance(told, AppendResult) and call.answers_lost and call.found:
        # Settled by its ids: nobody can tell whether this call has stored them or another that offers the same.
        if sorted(map(event_key, told.events)) != sorted(call.found):
            yield f"stored are {call.found}"
    elif not call.effects:
        yield "it succeeded, and has not taken effect"
    elif call.operation.kind == "sweep":
        if told != sum(call.effects):
            yield f"the model removed {sum(call.effects)}"
    elif call.answers_lost and any(told_alike(answer_of(told), effect) for effect in call.effects):
        return
    elif answer_of(told) not in call.effects:
        yield f"the model says {call.effects}"


def history_outcome(call: Call, told: Any) -> Outcome | None:
    """How the call ended, as the history knows it; None if it tells the history nothing."""
    if call.operation.kind == "read" and call.operation.window is None:
        return None
    match told:
        case AppendOutcomeUnknownError() | CommitFailedError():
            return Unknown(type(told).__name__)
        case VersionConflictError():
            return Conflict(told.actual)
        case SessionNotFoundError() if not call.operation.reads:
            return Absent()
        case TurnlogError():
            return Failed(type(told).__name__)
        case AppendResult():
            # Settled by its ids, it cannot tell whose they are.
            replay = told.is_replay or call.answers_lost > 0
            return Ok(told.events[0].position or 0, told.events[-1].position or 0, replay)
        case _:
            return _of_value(call, told)


def _of_value(call: Call, told: Any) -> Outcome:
    match call.operation.kind:
        case "delete":
            return Done() if told else Absent()
        case "read" if call.was_absent:
            return Absent()
        case "read" if isinstance(told, int):
            return Seen(version=told)
        case "read":
            positions = tuple(event.position for event in told)
            return Seen(tuple(map(recorded, told)), positions=positions)
        case _:
            return Done()
