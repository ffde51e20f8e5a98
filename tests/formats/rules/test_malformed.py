"""Requests that are none: a typed error that names the path, and never another exception (P-2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.json_strategies import json_values, texts
from tests.formats.recorded import recorded
from tests.formats.rules.providers import provider_of, request_of
from turnlog.errors import InvalidValueError
from turnlog.formats import problems
from turnlog.formats.rules import PROVIDERS

_ROOTS = {"messages", "contents", "input"}

SAMPLES = [
    (request_of(request), provider_of(request))
    for request in recorded()
    if len(str(request.request)) < 4_000 and len(request.request.get("messages", "1")) != 1
][::7]


def paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The way to each value inside."""
    steps: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        steps = list(value.items())
    elif isinstance(value, list):
        steps = list(enumerate(value))
    for step, inner in steps:
        yield (*path, step)
        yield from paths(inner, (*path, step))


def put(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    """A copy of ``value`` with ``new`` at the end of ``path``."""
    if not path:
        return new
    copied = value.copy()
    copied[path[0]] = put(value[path[0]], path[1:], new)
    return copied


def written(path: tuple[str | int, ...]) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def fault_of(request: Any, provider: str) -> str:
    """What is said of a request that is none; empty for one."""
    try:
        found = problems(request, provider)
    except InvalidValueError as error:
        return str(error)
    assert all(problem.message and problem.place for problem in found)
    return ""


def named_place(fault: str) -> str:
    """The path with which it begins."""
    return fault.split(" ", 1)[0].removeprefix("request.")


@given(st.sampled_from(SAMPLES), st.data())
def test_a_wrong_value_anywhere_is_named_by_its_path_or_breaks_a_rule_or_nothing(
    sample: tuple[dict[str, Any], str], data: st.DataObject
) -> None:
    request, provider = sample
    path = data.draw(st.sampled_from(list(paths(request))))
    changed = put(request, path, data.draw(json_values))
    fault = fault_of(changed, provider)
    place, changed_at = named_place(fault), written(path)
    assert place.startswith(changed_at) or changed_at.startswith(place) or fault.startswith("the request has")


_KEYS = [
    *("role", "content", "parts", "type", "text", "tool_calls", "tool_call_id", "id", "function", "arguments", "name"),
    *("input", "call_id", "tool_use_id", "thinking", "signature", "functionCall", "function_response", "toolUse"),
    *("toolResult", "toolUseId", "status", "summary", "encrypted_content", "thoughtSignature", "refusal"),
]
_WORDS = [
    *("user", "assistant", "tool", "model", "system", "text", "tool_use", "tool_result", "thinking", "reasoning"),
    *("function_call", "function_call_output", "message", "item_reference", "a", "rs_1", "fc_1"),
]
_values: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(_WORDS) | st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=6),
    max_leaves=30,
)


@given(st.dictionaries(st.sampled_from(["messages", "input", "contents", "model", "store"]), _values))
def test_no_request_raises_anything_but_the_typed_error(request: dict[str, Any]) -> None:
    for provider in PROVIDERS:
        root = named_place(fault_of(request, provider)).split("[")[0].split(".")[0]
        assert root in _ROOTS | {"", "the", "model"}


@pytest.mark.parametrize("request_", [None, [], "hi", 5])
def test_what_is_no_object_is_refused(request_: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"^the request must be an object, not"):
        problems(request_, "anthropic")


@pytest.mark.parametrize(
    ("provider", "request_", "said"),
    [
        ("openai-chat", {}, "the request has no 'messages'"),
        ("openai-chat", {"messages": {}}, "messages must be an array, not an object"),
        ("openai-chat", {"messages": [5]}, r"messages\[0\] must be an object, not a number"),
        ("openai-chat", {"messages": [{"role": "tool", "content": "x"}]}, r"messages\[0\] has no 'tool_call_id'"),
        ("openai-responses", {"input": [{}]}, r"input\[0\] has neither 'type' nor 'role'"),
        ("openai-responses", {"conversation": 5}, "request.conversation must be a string, an object or null"),
        ("anthropic", {"messages": [{"role": "user", "content": None}]}, r"messages\[0\].content must be a string or"),
        (
            "anthropic",
            {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": 5}]}]},
            r"messages\[0\].content\[0\].tool_use_id must be a string, not a number",
        ),
        ("gemini", {"contents": 5}, "contents must be an array, an object or a string, not a number"),
        ("gemini", {"contents": [{"parts": [{"text": 5}]}]}, r"contents\[0\].parts\[0\].text must be a string or null"),
        ("bedrock", {"messages": [{"role": "user", "content": "x"}]}, r"messages\[0\].content must be an array, not a"),
    ],
)
def test_what_is_wrong_is_said_with_its_path(provider: str, request_: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidValueError, match=f"^{said}"):
        problems(request_, provider)
