"""The n-th driver call fails, for every n, every operation and every way to fail (R-14)."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from tests.faults.operations import READS, WRITES, Operation, outcome
from tests.faults.stores import (
    Dump,
    Opening,
    async_store,
    close,
    copied,
    dump,
    is_locked,
    opened,
    sync_store,
)
from turnlog.errors import AppendOutcomeUnknownError, StoreError, TurnlogError
from turnlog.storage.protocol import AppendResult
from turnlog.storage.sql.driver import CommitFailedError
from turnlog.testing.driver_faults import FAULTS, NthCall, WatchedConnection

COLOURS: Final = pytest.mark.parametrize("opening", [sync_store, async_store], ids=["sync", "async"])

#: No operation executes so many statements.
_NEVER: Final = 10**9


class Expected:
    """What the operation does on a sound store: the states of the file, before to after, and what it answers twice."""

    def __init__(self, states: list[Dump], first: Any, second: Any) -> None:
        self.states, self.first, self.second = states, first, second


@COLOURS
@pytest.mark.parametrize("operation", [*WRITES, *READS], ids=str)
async def test_the_nth_call_of_an_operation_fails(
    opening: Opening, operation: Operation, template: Path, folder: Path
) -> None:
    path = folder / f"{opening.__name__} {operation}.db"
    sound = await expected(opening, operation, template, path)
    for kind, lasting in circumstances_of(opening, operation):
        for number in count(1):
            fault = NthCall(number, FAULTS[kind], lasting=lasting)
            fault.heal()
            store = await opened(opening(copied(template, path), fault))
            fault.arm()
            came_of_it = await outcome(store, operation)
            fault.heal()
            with noting(f"{kind}, call {number}, lasting: {lasting}, {fault.struck} -> {came_of_it!r}"):
                assert not is_locked(path), "the failed call has left its transaction open"
                state = dump(path)
                judge(operation, sound, fault, came_of_it, state)
                again = await outcome(store, operation)
                check_repeated(operation, sound, state, again)
                assert dump(path) == sound.states[-1], "the repeated call has made it whole"
                await close(store)
                assert not any(map(is_open, fault.connections)), "the failed call has left a connection open"
            if not fault.struck:
                assert number > 1 or FAULTS[kind].only_commits
                break


def circumstances_of(opening: Opening, operation: Operation) -> Iterator[tuple[str, bool]]:
    """The ways to fail, once and from then on: all of them where they differ, for reads and lasting ones some."""
    kinds = FAULTS if operation in WRITES else ("busy", "io, transaction left open", "dead connection")
    for kind in kinds:
        yield kind, False
        if operation in WRITES and opening is sync_store:
            yield kind, True


@contextmanager
def noting(text: str) -> Generator[None]:
    """Name what was being done in whatever goes wrong inside."""
    try:
        yield
    except Exception as error:
        error.add_note(text)
        raise


async def expected(opening: Opening, operation: Operation, template: Path, path: Path) -> Expected:
    store = await opened(opening(copied(template, path), NthCall(_NEVER, FAULTS["io"])))
    states = [dump(path)]
    first = await outcome(store, operation)
    states.append(dump(path))
    second = await outcome(store, operation)
    assert dump(path) == states[-1], "a call repeated after it has taken effect changes nothing more"
    await close(store)
    if operation.takes_steps:
        states = await _states_between(opening, operation, template, path)
    return Expected(states, first, second)


async def _states_between(opening: Opening, operation: Operation, template: Path, path: Path) -> list[Dump]:
    """The states that the file is in when the operation is stopped before each of its transactions, and at the end."""
    between: list[Dump] = []
    for number in count(1):
        fault = NthCall(number, FAULTS["busy"], lasting=True)
        fault.heal()
        store = await opened(opening(copied(template, path), fault))
        fault.arm()
        await outcome(store, operation)
        fault.heal()
        await close(store)
        if not fault.struck:
            return between
        if fault.struck[0].startswith("BEGIN"):
            state = dump(path)
            if state not in between:
                between.append(state)
    raise AssertionError


def judge(operation: Operation, sound: Expected, fault: NthCall, came_of_it: Any, state: Dump) -> None:
    """The outcome is the truth about the state, and an error is one that the circumstances allow."""
    before, after = sound.states[0], sound.states[-1]
    assert state in sound.states, "half of the operation is there"
    match came_of_it:
        case AppendOutcomeUnknownError():
            assert operation.is_append
            assert len(fault.struck) > 1, "a look-up would have settled it"
            assert came_of_it.event_ids
        case CommitFailedError():
            assert not operation.is_append
            assert "COMMIT" in fault.struck
        case StoreError():
            assert fault.struck
            assert state == before or operation.takes_steps
            assert isinstance(came_of_it.__cause__, sqlite3.Error)
        case _:
            check_same(came_of_it, sound.first)
            assert state == after


def check_repeated(operation: Operation, sound: Expected, state: Dump, again: Any) -> None:
    """Repeating the call has the outcome that it has in this state, as if nothing had happened."""
    if operation.takes_steps:
        assert again == sound.first - sound.states.index(state)
    else:
        check_same(again, sound.second if state == sound.states[-1] else sound.first)


def check_same(actual: Any, wanted: Any) -> None:
    if isinstance(wanted, TurnlogError):
        assert (type(actual), str(actual)) == (type(wanted), str(wanted))
        return
    assert actual == wanted
    if isinstance(wanted, AppendResult):
        assert [event.metadata for event in actual.events] == [event.metadata for event in wanted.events]


def is_open(connection: WatchedConnection) -> bool:
    try:
        return connection.in_transaction in {True, False}
    except sqlite3.ProgrammingError:
        return False


@COLOURS
@pytest.mark.parametrize("is_new", [False, True], ids=["a store", "an empty file"])
async def test_the_nth_call_of_opening_fails(opening: Opening, *, is_new: bool, template: Path, folder: Path) -> None:
    path = folder / f"{opening.__name__} {is_new}.db"
    sound = dump(template)
    for kind, lasting in (*((kind, False) for kind in FAULTS), ("busy", True), ("dead connection", True)):
        for number in count(1):
            copied(template, path)
            if is_new:
                path.unlink()
            fault = NthCall(number, FAULTS[kind], lasting=lasting)
            with noting(f"{kind}, call {number}, lasting: {lasting}"):
                error = await fail_to_open(opening, path, fault)
                # A checkpoint that fails loses nothing, and close() has done its work all the same.
                assert (error is None) == all("wal_checkpoint" in sql for sql in fault.struck)
                assert not is_locked(path)
                fault.heal()
                store = await opened(opening(path, fault))
                assert len(await outcome(store, Operation("events", lambda store: store.events("s")))) == (
                    0 if is_new else 11
                )
                await close(store)
                assert is_new or dump(path) == sound
                assert not any(map(is_open, fault.connections))
            if not fault.struck:
                break


async def fail_to_open(opening: Opening, path: Path, fault: NthCall) -> StoreError | None:
    store = None
    try:
        store = opening(path, fault)
        await opened(store)
    except StoreError as error:
        return error
    finally:
        if store is not None:
            await close(store)
    return None
