"""JSON values in metadata, payloads and native data: kept exactly, or refused with their path (R-9)."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given

from turnlog.errors import InvalidValueError, UnstorableError
from turnlog.log.json_values import DEEPEST, MOST_DIGITS, storable, storable_dict
from turnlog.testing.strategies import json_values


class Colour(IntEnum):
    RED = 1


class Word(StrEnum):
    ONE = "one"


class Plain(Enum):
    A = "a"


class Text(str):
    __slots__ = ()


class Number(int):
    pass


class Real(float):
    pass


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -1,
        2**64,
        1.5,
        -0.0,
        5e-324,
        1.7976931348623157e308,
        "",
        "\0",
        "\ud800",
        [],
        {},
        [[]],
        {"": {}},
    ],
    ids=ascii,
)
def test_json_values_are_kept(value: Any) -> None:
    kept = storable(value, "payload")
    assert repr(kept) == repr(value)
    assert type(kept) is type(value)


def test_one_one_point_nought_and_true_stay_what_they_are() -> None:
    kept = storable([1, 1.0, True], "payload")
    assert [type(item) for item in kept] == [int, float, bool]


NO_JSON: tuple[object, ...] = (
    b"bytes",
    bytearray(b"a"),
    datetime(2026, 1, 1, tzinfo=UTC),
    date(2026, 1, 1),
    {1},
    frozenset[int](),
    (1, 2),
    (),
    Decimal(1),
    UUID(int=0),
    1j,
    object(),
    Plain.A,
    Colour.RED,
    Word.ONE,
    Text("a"),
    Number(1),
    Real(1.0),
    OrderedDict[str, int](a=1),
    defaultdict[str, int](int),
    range(3),
    len,
    int,
)


@pytest.mark.parametrize("value", NO_JSON, ids=type)
def test_anything_else_is_refused_with_its_path(value: object) -> None:
    """B124, B125: nothing is written as something else in silence."""
    with pytest.raises(UnstorableError) as caught:
        storable({"a": [0, {"b": value}]}, "metadata")
    assert caught.value.path == "metadata['a'][1]['b']"
    assert type(value).__name__ in caught.value.reason


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_has_not_are_refused(value: float) -> None:
    with pytest.raises(UnstorableError) as caught:
        storable([value], "payload")
    assert caught.value.path == "payload[0]"
    assert "is not a JSON number" in caught.value.reason


@pytest.mark.parametrize("key", [1, None, True, 1.5, (1,), b"a", Text("a"), Word.ONE], ids=repr)
def test_keys_are_strings(key: Any) -> None:
    with pytest.raises(UnstorableError) as caught:
        storable({"a": {"good": 1, key: 2}}, "metadata")
    assert caught.value.path == f"metadata['a'][{key!a}]"
    assert caught.value.reason == f"the key is {type(key).__name__}, not str"


def nested(depth: int, *, lists: bool) -> Any:
    value: Any = [] if lists else {}
    for _ in range(depth - 1):
        value = [value] if lists else {"k": value}
    return value


@pytest.mark.parametrize("lists", [True, False])
def test_nesting_200_is_kept_and_201_refused(*, lists: bool) -> None:
    assert DEEPEST == 200
    assert storable(nested(200, lists=lists), "payload") == nested(200, lists=lists)
    step = "[0]" if lists else "['k']"
    with pytest.raises(UnstorableError) as caught:
        storable(nested(201, lists=lists), "payload")
    assert caught.value.path == "payload" + step * 200
    assert caught.value.reason == "nested deeper than 200"


def test_a_scalar_at_the_greatest_depth_is_kept() -> None:
    value: Any = 1
    for _ in range(200):
        value = [value]
    assert storable(value, "payload") == value


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(UnstorableError):
        storable(value, "payload")


@pytest.mark.parametrize("sign", [1, -1])
def test_4300_digits_are_kept_and_4301_refused(sign: int) -> None:
    assert MOST_DIGITS == 4300
    longest = sign * (10**4300 - 1)
    assert storable(longest, "payload") == longest
    with pytest.raises(UnstorableError) as caught:
        storable({"n": sign * 10**4300}, "payload")
    assert caught.value.path == "payload['n']"
    assert caught.value.reason == "an integer of more than 4300 digits"


@pytest.mark.parametrize("size", [13_999, 14_000, 14_001, 14_283])
def test_integers_near_the_cheap_look_are_kept(size: int) -> None:
    assert storable(1 << size, "payload") == 1 << size


def test_containers_are_copied_at_every_level() -> None:
    inner: list[Any] = [1]
    value: dict[str, Any] = {"a": inner, "b": {"c": inner}}
    kept = storable_dict(value, "metadata")
    inner.append(2)
    value["b"]["d"] = 3
    assert kept == {"a": [1], "b": {"c": [1]}}


def test_an_empty_dict_is_copied_too() -> None:
    value: dict[str, Any] = {}
    assert storable_dict(value, "metadata") is not value


NO_DICTS: tuple[object, ...] = (None, [], "a", 1, OrderedDict[str, int](), (("a", 1),))


@pytest.mark.parametrize("value", NO_DICTS, ids=repr)
def test_a_dict_is_asked_for(value: object) -> None:
    with pytest.raises(UnstorableError) as caught:
        storable_dict(value, "metadata")
    assert (caught.value.path, caught.value.reason) == ("metadata", f"must be a dict, not {type(value).__name__}")


def test_the_error_is_a_value_error_that_reads_well() -> None:
    with pytest.raises(InvalidValueError, match=r"^metadata\['at'\]: datetime is not a JSON value") as caught:
        storable_dict({"at": datetime.now(UTC)}, "metadata")
    assert isinstance(caught.value, ValueError)


def test_the_path_of_a_strange_key_can_be_printed() -> None:
    with pytest.raises(UnstorableError) as caught:
        storable_dict({"\ud800'": {1}}, "metadata")
    assert caught.value.path.encode() == rb"""metadata["\ud800'"]"""


@given(json_values())
def test_every_json_value_is_kept_as_it_is(value: Any) -> None:
    kept = storable([value], "payload")
    assert repr(kept) == repr([value])
