"""H-9: what a function's type hints make of its schema, and how a call's JSON is read."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.chat import ToolContext, ToolError, tool
from turnlog.chat.tools import arguments_for, error_result, result_of
from turnlog.errors import InvalidValueError, ToolDefinitionError
from turnlog.log.messages import ToolCall
from turnlog.testing.strategies import any_texts, json_values


class Unit(Enum):
    CELSIUS = "c"
    KELVIN = "k"


@dataclass
class Place:
    name: str
    floor: int | None = None


class Filter(TypedDict, total=False):
    since: date


def everything(
    key: str,
    count: Annotated[int, msgspec.Meta(description="How many.", ge=1)],
    unit: Unit,
    kind: Literal["a", "b"],
    places: list[Place],
    options: Filter,
    share: float = 0.5,
    note: Annotated[str | None, msgspec.Meta(description="A note.")] = None,
) -> str:
    """Everything.

    In two paragraphs.
    """
    return repr((key, count, unit, kind, places, options, share, note))


def context(call: ToolCall) -> ToolContext:
    return ToolContext(call=call, idempotency_key="k", context={})


def read(function: Any, arguments: str) -> dict[str, Any]:
    call = ToolCall("c", "f", arguments)
    return arguments_for(tool(function), call, context(call))


def test_type_hints_become_a_schema() -> None:
    made = tool(everything)
    assert (made.spec.name, made.spec.description) == ("everything", "Everything.\n\nIn two paragraphs.")
    schema = made.spec.parameters
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert schema["required"] == ["key", "count", "unit", "kind", "places", "options"]
    properties = schema["properties"]
    assert properties["key"] == {"type": "string"}
    assert properties["count"] == {"type": "integer", "minimum": 1, "description": "How many."}
    assert properties["kind"] == {"enum": ["a", "b"]}
    assert properties["note"]["description"] == "A note."
    assert "default" not in properties["share"]
    assert {"Unit", "Place", "Filter"} == set(schema["$defs"])
    json.dumps(schema)


def test_a_call_is_read_as_the_hints_say() -> None:
    said = '{"key": "k", "count": 2, "unit": "k", "kind": "a", "places": [{"name": "x"}], '
    assert read(everything, said + '"options": {"since": "2026-01-02"}}') == {
        "key": "k",
        "count": 2,
        "unit": Unit.KELVIN,
        "kind": "a",
        "places": [Place("x")],
        "options": {"since": date(2026, 1, 2)},
    }


@pytest.mark.parametrize("change", [{"count": 0}, {"unit": "x"}, {"kind": "c"}, {"places": [{}]}, {"options": 1}])
def test_what_the_hints_do_not_allow_is_refused(change: dict[str, Any]) -> None:
    fine = {"key": "k", "count": 2, "unit": "k", "kind": "a", "places": [], "options": {}}
    assert read(everything, json.dumps(fine))
    with pytest.raises(InvalidValueError, match="arguments of 'f'"):
        read(everything, json.dumps(fine | change))


def no_hint(key) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001  # pyright: ignore[reportUnknownParameterType, reportMissingParameterType]
    return str(key)


def positional(key: str, /) -> str:
    return key


def several(*keys: str) -> str:
    return " ".join(keys)


def named(**keys: str) -> str:
    return " ".join(keys)


def unreadable(key: Unknown) -> str:  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore[reportUndefinedVariable, reportUnknownParameterType]
    return str(key)


def without_schema(key: type[int]) -> str:
    return str(key)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (no_hint, "parameter 'key' has no type hint"),
        (positional, "parameter key: 'str' cannot be given by name"),
        (several, r"parameter \*keys: 'str' cannot be given by name"),
        (named, r"parameter \*\*keys: 'str' cannot be given by name"),
        (unreadable, "its signature cannot be read: name 'Unknown' is not defined"),
        (without_schema, "a type hint has no JSON schema"),
        (lambda: "", "a name is 1 to 64"),
        ("look_up", "it is no function"),
        (None, "it is no function"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_when_it_is_made(function: Any, says: str) -> None:
    with pytest.raises(ToolDefinitionError, match=says):
        tool(function)


@pytest.mark.parametrize("name", ["", " ", "a b", "a.b", "ä", "x" * 65, "a\n"])
def test_a_name_is_one_that_every_provider_takes(name: str) -> None:
    if name:
        with pytest.raises(ToolDefinitionError, match="a name is 1 to 64"):
            tool(everything, name=name)
    assert tool(everything, name="x" * 64).spec.name == "x" * 64


@given(any_texts())
def test_any_text_as_arguments_is_read_or_refused(arguments: str) -> None:
    """A model may write anything at all."""
    try:
        read(everything, arguments)
    except InvalidValueError:
        return


@given(st.dictionaries(st.sampled_from(["key", "count", "other"]), json_values()))
def test_any_object_is_read_or_refused(arguments: dict[str, Any]) -> None:
    def take(key: Any, count: int = 1) -> str:
        return f"{key}{count}"

    text = json.dumps(arguments)
    try:
        given_ = read(take, text)
    except InvalidValueError:
        assert "key" not in arguments or "other" in arguments or type(arguments.get("count")) is not int
    else:
        assert set(given_) == set(arguments)


def test_lone_surrogates_in_arguments_reach_the_tool() -> None:
    """R-9: as escapes, which is how models write them, and in the text itself."""

    def note(words: str) -> str:
        return words

    assert read(note, '{"words": "\\ud800"}') == read(note, '{"words": "\ud800"}') == {"words": "\ud800"}


def test_arguments_that_nest_too_deep_are_refused() -> None:
    with pytest.raises(InvalidValueError):
        read(everything, "[" * 100_000)


@given(json_values())
def test_any_json_value_is_a_result(value: Any) -> None:
    """And reads as what it was."""
    result = result_of(ToolCall("c", "f"), value)
    if value is None or isinstance(value, str):
        assert result.text == (value or "")
    else:
        assert json.loads(result.text) == value


@pytest.mark.parametrize("details", [True, False])
def test_the_text_of_an_error_is_told_where_it_is_meant_for_the_model(details: bool) -> None:  # noqa: FBT001 - parametrized
    call = ToolCall("c", "f")

    class PoliteError(ToolError):
        """A tool's own error."""

    assert error_result(call, PoliteError("no"), details=details).text == "PoliteError: no"
    assert error_result(call, InvalidValueError("no"), details=details).text == "InvalidValueError: no"
    assert ("secret" in error_result(call, ValueError("secret"), details=details).text) is details


def test_a_function_with_some_arguments_set_is_a_tool() -> None:
    """What is set is not asked for, or may be left out."""
    made = tool(functools.partial(functools.partial(everything, "k"), 1, Unit.KELVIN, kind="b"))
    assert (made.spec.name, made.spec.parameters["required"]) == ("everything", ["places", "options"])


def test_text_that_utf8_cannot_say_and_great_integers_are_results() -> None:
    """B149: names of files may hold surrogates."""
    assert result_of(ToolCall("c", "f"), ["\udc88", 2**70]).text == f'["\udc88",{2**70}]'
