"""Whether a tiny history is linearizable, by trying every order: slow, simple, and sharing nothing with the checker.

The search of Wing and Gong, with the states already tried remembered: an order of the calls is looked for that agrees
with time and in which each answer is the one a plain list would give. It exists to check the fast checker, and as the
shortest statement of what a store of sessions does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from turnlog.testing.history.records import (
    FOREVER,
    Absent,
    Conflict,
    Done,
    Failed,
    FinalLog,
    Ok,
    Operation,
    RecordedEvent,
    Seen,
    Unknown,
)

MOST_OPERATIONS: Final = 8

State: TypeAlias = tuple[RecordedEvent, ...] | None
"""The events of a session; None while it does not exist."""


def is_linearizable(operations: Iterable[Operation], final: FinalLog) -> bool:
    """Whether some order of the calls on one session explains every answer, and the log after the last.

    Raises:
        ValueError: more than `MOST_OPERATIONS` calls, or calls on several sessions.
    """
    calls = list(operations)
    if len(calls) > MOST_OPERATIONS or len({call.session for call in calls}) > 1:
        raise ValueError(f"at most {MOST_OPERATIONS} calls on one session, not {len(calls)}")
    positions = [entry.position for entry in final.entries]
    if final.version != len(positions) or positions != list(range(1, len(positions) + 1)):
        return False
    last = tuple(RecordedEvent(entry.id, entry.digest) for entry in final.entries)
    starts: list[State] = [None]
    if any(call.kind == "delete" for call in calls):
        starts.append(())
    elif not any(call.kind == "create" and call.outcome == Done() for call in calls):
        # Somebody who did not record it made the session, before all calls or at any moment between them.
        calls.append(Operation(process="somebody", kind="create", session="", invoked_ns=-FOREVER))
    search = _Search(calls, last)
    return any(search.succeeds(frozenset(range(len(calls))), start) for start in starts)


class _Search:
    def __init__(self, calls: Sequence[Operation], last: tuple[RecordedEvent, ...]) -> None:
        self._calls = calls
        self._last = last
        self._hopeless: set[tuple[frozenset[int], State]] = set()

    def succeeds(self, waiting: frozenset[int], state: State) -> bool:
        """Whether the calls still waiting can follow on this state, in some order, and end in the last log."""
        # A call of unknown outcome need never happen.
        if (state or ()) == self._last and all(self._calls[each].ended_ns == FOREVER for each in waiting):
            return True
        if (waiting, state) in self._hopeless:
            return False
        first_return = min((self._calls[each].ended_ns for each in waiting), default=0)
        for each in waiting:
            # One that was called after another returned cannot come before it.
            if self._calls[each].invoked_ns <= first_return and any(
                self.succeeds(waiting - {each}, after) for after in effects(state, self._calls[each])
            ):
                return True
        self._hopeless.add((waiting, state))
        return False


def effects(state: State, call: Operation) -> Iterator[State]:
    """The states that the call may leave, if it happens now and answers as it did; none if it cannot."""
    match call.kind, call.outcome:
        case _, Failed():
            yield state
        case _, Absent() if state is None:
            yield state
        case "read", Seen() as seen if _shows(state or (), call, seen):
            yield state
        case "create", Done() | Unknown() if state is None:
            yield ()
        case "delete", Done() | Unknown() if state is not None:
            yield None
        case "append", _ if state is not None:
            yield from _appended(state, call)
        case _:
            pass


def _appended(state: tuple[RecordedEvent, ...], call: Operation) -> Iterator[State]:
    ids = [event.id for event in call.events]
    stored = [event.id for event in state]
    is_batch = bool(ids) and len(set(ids)) == len(ids)
    is_replay = is_batch and all(event in state for event in call.events)
    fits = call.expected_version in {None, len(state)}
    match call.outcome:
        case Conflict(actual) if not is_replay and not fits and actual == len(state):
            yield state
        case Ok(first, last, True) if is_replay and (first, last) == (
            stored.index(ids[0]) + 1,
            stored.index(ids[-1]) + 1,
        ):
            yield state
        # A replay may be of the call's own first attempt, made inside it.
        case Ok(first, last) if (
            is_batch
            and fits
            and not set(ids) & set(stored)
            and (first, last) == (len(state) + 1, len(state) + len(ids))
        ):
            yield state + call.events
        case Unknown() if is_batch and fits and not set(ids) & set(stored):
            yield state + call.events
        case _:
            pass


def _shows(state: tuple[RecordedEvent, ...], call: Operation, seen: Seen) -> bool:
    if seen.version not in {None, len(state)}:
        return False
    if call.window == "filtered":
        numbered = list(enumerate(state, 1))
        shown = list(zip(seen.positions or (), seen.events, strict=True))
        return shown == sorted(set(shown), key=lambda pair: pair[0]) and all(pair in numbered for pair in shown)
    least = len(state) if call.window == "whole" else min(call.window, len(state))
    first = len(state) - len(seen.events) + 1
    return (
        len(seen.events) >= least
        and state[first - 1 :] == seen.events
        and seen.positions in {None, tuple(range(first, len(state) + 1))}
    )
