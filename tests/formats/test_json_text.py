"""Reading JSON text: the fast reader and the standard library's agree, and every fault is a typed error."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.json_strategies import json_values
from turnlog.formats.json_fields import is_array, is_object
from turnlog.formats.json_text import InvalidJsonError, decode, decode_as


def exact(value: Any) -> Any:
    """``value`` in a form in which 1, 1.0, True and -0.0 differ."""
    if is_object(value):
        return {key: exact(item) for key, item in value.items()}
    if is_array(value):
        return [exact(item) for item in value]
    return (type(value).__name__, repr(value))


def with_escapes(value: Any) -> str:
    return json.dumps(value)


def with_few_escapes(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return "".join(f"\\u{ord(c):04x}" if "\ud800" <= c <= "\udfff" else c for c in text)


@given(json_values, st.sampled_from([with_escapes, with_few_escapes]))
def test_what_was_written_is_read(value: Any, write: Callable[[Any], str]) -> None:
    """R-9: the same value whether it comes by the fast reader (plain text) or the slow one (lone surrogates)."""
    text = write(value)
    assert exact(decode(text.encode("utf-8"))) == exact(json.loads(text))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "expecting value"),
        (b"{", "expecting property name"),
        (b'{"a": 1', "expecting ',' delimiter"),
        (b'"abc', "unterminated string"),
        (b"NaN", "NaN is not a JSON number"),
        (b'{"a": -Infinity}', "-Infinity is not a JSON number"),
        (b'"\xff"', "not UTF-8 at byte 2"),
        (b'"\xed\xa0\x80"', "not UTF-8 at byte 2"),
        (b"[" * 100_000, "nested too deep"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deep"),
        (b"9" * 4301, "an integer of too many digits"),
        (b"{} {}", "extra data"),
        (b'"\x00"', "invalid control character"),
    ],
)
def test_a_fault_is_a_typed_error_that_says_why(text: bytes, reason: str) -> None:
    with pytest.raises(InvalidJsonError, match=reason):
        decode(text)


@given(st.binary(max_size=40))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    with contextlib.suppress(InvalidJsonError):
        decode(data)


def test_lone_surrogates_are_kept_and_pairs_of_escapes_are_joined() -> None:
    """R-9: JSON's own escapes join pairs; a lone one comes back as it was."""
    assert decode(b'"\\ud800 \\ud83d\\ude00"') == "\ud800 😀"


def test_the_last_value_of_a_key_that_stands_twice_counts() -> None:
    assert decode(b'{"a": 1, "a": 2}') == {"a": 2}
    assert decode(b'{"a": 1, "a": "\\ud800"}') == {"a": "\ud800"}


@given(
    json_values, st.sampled_from([with_escapes, with_few_escapes, lambda value: json.dumps(value, ensure_ascii=False)])
)
def test_what_a_model_wrote_is_read_as_the_type_that_was_asked_for(value: Any, write: Callable[[Any], str]) -> None:
    """Lone surrogates may stand in it as escapes, or in the text itself."""
    text = write({"kept": value})
    assert exact(decode_as(text, Any)) == exact(json.loads(text))
    assert exact(decode_as(text, dict[str, Any])) == exact(json.loads(text))


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ('{"1": "\\ud800"}', dict[int, str], {1: "\ud800"}),
        ('["2026-03-01", "\\ud800"]', tuple[date, str], (date(2026, 3, 1), "\ud800")),
        ('"\ud800"', str, "\ud800"),
    ],
)
def test_a_lone_surrogate_changes_nothing_about_the_rest(text: str, kind: Any, value: Any) -> None:
    assert decode_as(text, kind) == value


@pytest.mark.parametrize("text", ["", "{", '{"a": "\ud800"', "\ud800", '"\\ud800"', "[" * 100_000])
def test_what_is_no_value_of_the_type_raises_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_as(text, dict[str, int])
