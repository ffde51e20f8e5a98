"""The contract is worth something: wrong stores fail it, and each fails for its own reason."""

from __future__ import annotations

import inspect

import pytest

from turnlog.testing.contract import INDEXED_METADATA, PROPERTIES, AsyncStoreContract, StoreContract, broken_properties
from turnlog.testing.dict_store import DictStore
from turnlog.testing.wrong_stores import WRONG_STORES, WrongStore

# What every kind of fault that stores are known for should be among.
FAULTS = (
    "no lock",
    "a version read outside the transaction",
    "replays by id alone",
    "replays in part",
    "half a batch kept on conflict",
    "acknowledged before it is stored",
    "fresh ids on retry",
    "a replica that lags",
    "expiry by the sweeper alone",
    "ids without case",
    "a boundary without its summary",
    "windows that cut turns",
    "a page at a time",
    "keywords by pattern",
    "the caller's events",
    "events of everybody",
    "listings in the order of storing",
    "turns that are not checked",
)


def test_the_right_store_breaks_nothing() -> None:
    assert not broken_properties(lambda clock: DictStore(clock, INDEXED_METADATA))


@pytest.mark.parametrize("store", [pytest.param(store, id=name) for name, store in WRONG_STORES.items()])
def test_a_wrong_store_breaks_the_properties_that_it_names_and_no_others(store: WrongStore) -> None:
    broken = broken_properties(store.open)
    unexpected = {name: repr(error)[:300] for name, error in broken.items() if name not in store.breaks}
    assert not unexpected, f"{store.name} also breaks {unexpected}"
    assert not store.breaks - broken.keys(), f"{store.name} passes what it should fail"


def test_every_property_is_broken_by_some_wrong_store() -> None:
    broken = {name for store in WRONG_STORES.values() for name in store.breaks}
    assert PROPERTIES.keys() - broken == set()
    assert broken - PROPERTIES.keys() == set()


def test_the_known_kinds_of_fault_are_among_them() -> None:
    assert set(FAULTS) <= WRONG_STORES.keys()


def test_no_two_wrong_stores_are_the_same() -> None:
    assert len({store.source for store in WRONG_STORES.values()}) == len(WRONG_STORES)


def test_every_property_is_a_sentence() -> None:
    for name, sentence in PROPERTIES.items():
        assert sentence.split("(")[0].strip()[0].isalnum() or sentence.startswith("``"), name
        assert sentence.endswith("."), name


def test_both_colours_prove_the_same_properties() -> None:
    tests = {name for name in dir(StoreContract) if name.startswith("test_")}
    assert len(tests) == len(PROPERTIES)
    assert tests == {name for name in dir(AsyncStoreContract) if name.startswith("test_")}
    assert all(inspect.iscoroutinefunction(getattr(AsyncStoreContract, name)) for name in tests)
