"""Injected faults strike where they are told to, in both colours, and nowhere else."""

from __future__ import annotations

from contextlib import suppress

import pytest

from turnlog.errors import StoreBusyError, StoreUnavailableError
from turnlog.storage.opening import open_async_store, open_store
from turnlog.storage.protocol import SessionRepository
from turnlog.testing.contract import INDEXED_METADATA, broken_properties
from turnlog.testing.factories import assistant, conversation, session, user
from turnlog.testing.faults import OPERATIONS, CallFault, FaultyCalls, each_call, with_faults


def test_without_a_fault_the_store_is_as_it_was() -> None:
    broken = broken_properties(
        lambda clock: with_faults(open_store("memory:", clock=clock, indexed_metadata=INDEXED_METADATA), FaultyCalls())
    )
    assert not broken


def test_every_operation_can_fail() -> None:
    assert {"create", "append", "iter_batches", "tally", "release_turn"} <= OPERATIONS
    assert not OPERATIONS & {"close", "clock", "durability"}


def test_the_nth_call_of_an_operation_fails_and_changes_nothing() -> None:
    calls = FaultyCalls(CallFault(operation="append", number=2))
    with with_faults(open_store("memory:"), calls) as store:
        store.create(session())
        store.append("s", [user(1)])
        with pytest.raises(StoreUnavailableError):
            store.append("s", [assistant(2)])
        assert store.version("s") == 1
        assert store.append("s", [assistant(2)]).version == 2
    assert calls.made == ["create", "append", "append", "version", "append"]
    assert calls.struck == ["append"]


def test_a_lost_answer_leaves_the_effect() -> None:
    """R-14: the caller does not know, and appends again."""
    calls = FaultyCalls(CallFault(operation="append", takes_effect=True))
    store = with_faults(open_store("memory:"), calls)
    store.create(session())
    with pytest.raises(StoreUnavailableError):
        store.append("s", [user(1)])
    assert store.append("s", [user(1)]).is_replay


def test_a_lasting_fault_ends_when_it_is_healed() -> None:
    calls = FaultyCalls(CallFault(lasting=True, error=lambda: StoreBusyError("injected")))
    store = with_faults(open_store("memory:"), calls)
    for _ in range(3):
        with pytest.raises(StoreBusyError):
            store.find("s")
    calls.heal()
    assert store.find("s") is None


def test_an_iteration_breaks_off() -> None:
    store = open_store("memory:")
    store.create(session())
    store.append("s", conversation(2))
    broken = with_faults(store, FaultyCalls(CallFault(operation="iter_events", takes_effect=True)))
    read: list[int] = []
    with pytest.raises(StoreUnavailableError):
        read.extend(len(events) for events in broken.iter_events("s", batch_size=3))
    assert read == [3]


async def test_async_calls_fail_where_they_are_awaited() -> None:
    calls = FaultyCalls(CallFault(operation="append", takes_effect=True), CallFault(operation="iter_batches"))
    async with with_faults(open_async_store("memory:"), calls) as store:
        await store.create(session())
        lost = store.append("s", [user(1)])
        with pytest.raises(StoreUnavailableError):
            await lost
        assert await store.version("s") == 1
        with pytest.raises(StoreUnavailableError):
            _ = [batch async for batch in store.iter_batches("s")]
        assert [len(batch) async for batch in store.iter_batches("s")] == [1]


async def test_an_async_iteration_breaks_off() -> None:
    store = open_async_store("memory:")
    await store.create(session())
    await store.append("s", conversation(2))
    iteration = with_faults(store, FaultyCalls(CallFault(takes_effect=True))).iter_events("s", batch_size=3)
    assert len(await anext(iteration)) == 3
    with pytest.raises(StoreUnavailableError):
        await anext(iteration)


@pytest.mark.parametrize("takes_effect", [False, True])
def test_each_call_fails_once_and_then_none(*, takes_effect: bool) -> None:
    """A scenario that is run again after a failure ends in the same log, whichever call failed (R-4)."""
    struck: list[list[str]] = []
    for calls in each_call(CallFault(takes_effect=takes_effect)):
        store = with_faults(open_store("memory:"), calls)
        with suppress(StoreUnavailableError):
            _scenario(store)
        calls.heal()
        _scenario(store)
        assert [event.id for event in store.events("s")] == ["e1", "e2", "e3"]
        struck.append(calls.struck)
    assert struck == [["find"], ["create"], ["append"], ["append"], []]


def _scenario(store: SessionRepository) -> None:
    if store.find("s") is None:
        store.create(session())
    store.append("s", [user(1)])
    store.append("s", [assistant(2), user(3)])


def test_an_operation_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="no operation"):
        CallFault(operation="write")
