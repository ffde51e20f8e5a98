"""Requests with something wrong at any place: a typed error that names the path, and never another exception (P-1)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.json_strategies import json_values
from tests.formats.samples import PROVIDERS, paths, put, small, without, written
from turnlog import InvalidValueError, UnstorableError
from turnlog.formats import ProblemLevel, losses, parse_request, problems, render_request

SAMPLES = small()
#: Values of each type, and such as stand at other places of real requests.
_VALUES: st.SearchStrategy[Any] = json_values | st.sampled_from(
    [
        *(None, True, 0, 1, 2.5, 10**30, "", " ", "x", "text", "tool", "\ud800", "AAAA", "https://e.org/a"),
        *([], {}, [None], ["x"], [{}], [[]], {"a": 1}, [{"type": "text", "text": ""}], {"type": "text", "text": "hi"}),
        "data:image/png;base64,AAAA",
    ]
)
_UNSTORABLE = [float("nan"), float("-inf"), b"x", (1,), {1: 2}, {"a": {2}}, 10**5000]


def is_error(request: dict[str, Any], provider: str) -> bool:
    return any(found.level is ProblemLevel.ERROR for found in problems(request, provider))


def fault_of(data: Any, provider: str) -> str:
    """What is said of a request that is none; empty for one."""
    try:
        parse_request(data, provider)
    except InvalidValueError as error:
        return str(error)
    return ""


def names_the_place(fault: str, changed: tuple[str | int, ...]) -> bool:
    """Whether an error begins with the changed place, with one around it, or one inside of it."""
    place, at = fault.split(" ", 1)[0].rstrip(":").split("['")[0], written(changed)
    return place.startswith(at) or at.startswith(place) or fault.startswith("the request")


@given(st.sampled_from(SAMPLES), st.data())
def test_a_wrong_value_anywhere_is_named_by_its_path_or_kept_as_it_is(
    sample: tuple[dict[str, Any], str], data: st.DataObject
) -> None:
    original, provider = sample
    path = data.draw(st.sampled_from(list(paths(original))))
    is_removed = data.draw(st.integers(0, 5)) == 0
    changed = without(original, path) if is_removed else put(original, path, data.draw(_VALUES))
    fault = fault_of(changed, provider)
    if fault:
        assert names_the_place(fault, path), (fault, written(path))
        return
    request = parse_request(changed, provider)
    rendered = render_request(request)
    # A request that breaks a rule may come back with it mended.
    assert rendered == changed or is_error(changed, provider)
    losses(request)
    for target in PROVIDERS:
        other = render_request(request, target)
        json.dumps(other, allow_nan=False)
        losses(request, target)
        if request.messages and target != provider:
            assert not is_error(other, target)


@pytest.mark.parametrize("provider", PROVIDERS)
@given(data=st.data())
def test_what_no_store_keeps_is_refused_with_its_path(provider: str, data: st.DataObject) -> None:
    """R-9: wherever it stands, as everything in a request is kept."""
    original = data.draw(st.sampled_from([request for request, whose in SAMPLES if whose == provider]))
    path = data.draw(st.sampled_from(list(paths(original))))
    changed = put(original, path, data.draw(st.sampled_from(_UNSTORABLE)))
    with pytest.raises(InvalidValueError) as caught:
        parse_request(changed, provider)
    fault = str(caught.value.path if isinstance(caught.value, UnstorableError) else caught.value)
    assert names_the_place(fault, path), (fault, written(path))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_is_nested_too_deep_is_refused_wherever_it_stands(provider: str) -> None:
    """R-9: by its path, and not when the stack is used up."""
    deep: Any = "x"
    for _ in range(10_000):
        deep = {"text": deep}
    samples = [request for request, whose in SAMPLES if whose == provider]
    for original in samples[:: len(samples) // 4]:
        for path in paths(original):
            fault = fault_of(put(original, path, deep), provider)
            assert names_the_place(fault, path), (fault, written(path))


@given(
    json_values | st.dictionaries(st.sampled_from(["messages", "contents", "input", "system", "tools"]), json_values)
)
def test_any_json_is_a_request_or_a_typed_error(data: Any) -> None:
    for provider in PROVIDERS:
        try:
            request = parse_request(data, provider)
        except InvalidValueError:
            continue
        assert render_request(request) == data or is_error(data, provider)
