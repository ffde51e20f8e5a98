"""Reading JSON text: the fast reader and the standard library's agree, and every fault is a typed error."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.json_strategies import json_values
from turnlog.formats.json_fields import is_array, is_object
from turnlog.formats.json_text import InvalidJsonError, decode


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
