"""Running the contract outside pytest: which properties does a store break?"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import pytest

from turnlog.storage.protocol import Clock, SessionRepository
from turnlog.testing.clocks import FixedClock
from turnlog.testing.contract.classes import StoreContract

_TEST_NAME = re.compile(r"test_([a-z]+)_(\d+)_\w+")


def _tests() -> Iterator[tuple[str, Callable[..., None]]]:
    """Each property's id and its test, in the order of the nouns and numbers."""
    for base in StoreContract.__mro__:
        for name, test in vars(base).items():
            if name.startswith("test"):
                named = _TEST_NAME.fullmatch(name)
                if named is None:
                    raise AssertionError(f"{name} names no property")
                yield f"{named[1].upper()}-{named[2]}", test


def _properties() -> dict[str, str]:
    properties: dict[str, str] = {}
    for name, test in _tests():
        if name in properties:
            raise AssertionError(f"two tests are called {name}")
        properties[name] = inspect.cleandoc(test.__doc__ or "")
    return properties


#: What each property says, by its id.
PROPERTIES: Final = _properties()


def broken_properties(open_store: Callable[[Clock], SessionRepository]) -> dict[str, BaseException]:
    """Run every test on a new store of its own; the ids of those that failed, each with what it raised.

    ``open_store`` is called with the clock to go by, and indexes ``INDEXED_METADATA``.
    """
    broken: dict[str, BaseException] = {}
    for name, test in _tests():
        clock = FixedClock()
        repository = open_store(clock)
        wanted = inspect.signature(test).parameters.keys()
        given: dict[str, Any] = {"clock": clock, "repository": repository}
        try:
            test(StoreContract(), **{argument: value for argument, value in given.items() if argument in wanted})
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - a wrong store may raise anything
            broken[name] = error
        finally:
            with suppress(Exception):
                repository.close()
    return broken
