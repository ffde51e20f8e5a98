"""Reading a document piece by piece: the same values as reading it whole, whatever the pieces."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.json_strategies import json_values
from turnlog.formats.json_stream import JsonStream
from turnlog.formats.json_text import InvalidJsonError

chunks = st.integers(1, 40)


def stream(data: bytes, chunk: int = 7, longest: int = 1 << 20) -> JsonStream:
    return JsonStream(io.BytesIO(data).read, chunk=chunk, longest=longest)


def elements(reader: JsonStream) -> list[Any]:
    found = [reader.value() for _ in reader.array()]
    reader.end()
    return found


@given(st.lists(json_values, max_size=5), chunks, st.sampled_from([{}, {"indent": 2}, {"ensure_ascii": False}]))
def test_the_elements_of_an_array(values: list[Any], chunk: int, style: dict[str, Any]) -> None:
    data = json.dumps(values, **style).encode("utf-8", "replace")
    assert elements(stream(data, chunk)) == json.loads(data)


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=5), chunks)
def test_the_values_of_an_object(values: dict[str, Any], chunk: int) -> None:
    data = json.dumps(values, indent=1).encode()
    reader = stream(data, chunk)
    assert {key: reader.value() for key in reader.object()} == json.loads(data)
    reader.end()


@given(st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False), chunks)
def test_a_number_is_not_cut_where_a_piece_ends(number: float, chunk: int) -> None:
    assert stream(json.dumps(number).encode(), chunk).value() == number


@given(st.lists(json_values, max_size=3), st.integers(0, 200), st.binary(min_size=1, max_size=2), chunks)
def test_damage_raises_nothing_but_the_typed_error(values: list[Any], at: int, put: bytes, chunk: int) -> None:
    data = json.dumps(values).encode()
    at %= len(data)
    with contextlib.suppress(InvalidJsonError):
        elements(stream(data[:at] + put + data[at + 1 :], chunk))


@pytest.mark.parametrize(
    ("data", "line", "reason"),
    [
        (b"[1,\n2,\n x]", 3, "expecting value"),
        (b"[1,\n2", 2, "expecting ',' or ']', but the file ends here"),
        (b'[\n"a\nb"]', 2, "invalid control character"),
        (b"[\n\n1] 2", 3, "expecting the end of the document"),
        (b"[\n1,\n\xff]", 3, "not UTF-8"),
        (b"[NaN]", 1, "NaN is not a JSON number"),
        (b"[" + b"[" * 100_000, 1, "nested too deep"),
        (b"[" + b"9" * 5000 + b"]", 1, "too many digits"),
        (b"{}", 1, "expecting an array"),
        (b"", 1, "expecting an array, but the file ends here"),
    ],
)
def test_a_fault_names_its_line(data: bytes, line: int, reason: str) -> None:
    with pytest.raises(InvalidJsonError, match=reason) as caught:
        elements(stream(data))
    assert caught.value.line == line


@pytest.mark.parametrize(("data", "reason"), [(b"{1: 2}", "a key in double quotes"), (b'{"a" 2}', "expecting ':'")])
def test_a_fault_between_the_values_of_an_object(data: bytes, reason: str) -> None:
    reader = stream(data)
    with pytest.raises(InvalidJsonError, match=reason):
        [reader.value() for _ in reader.object()]


def test_a_byte_order_mark_is_no_part_of_the_document() -> None:
    assert elements(stream(b"\xef\xbb\xbf[1]")) == [1]


def test_a_value_over_the_limit_is_refused_before_it_is_read_whole() -> None:
    asked: list[int] = []

    def read(size: int) -> bytes:
        asked.append(size)
        return b'["' + b"a" * (size - 2) if len(asked) == 1 else b"a" * size

    reader = JsonStream(read, longest=1000, chunk=64)
    with pytest.raises(InvalidJsonError, match="more than 1,000 characters"):
        elements(reader)
    assert sum(asked) < 5000


def test_an_early_fault_does_not_wait_for_the_end() -> None:
    """A broken element is known to be broken long before a limit is reached."""
    asked: list[int] = []

    def broken(size: int) -> bytes:
        asked.append(size)
        return b'["a" "b"' + b" " * (size - 8) if len(asked) == 1 else b" " * size

    with pytest.raises(InvalidJsonError):
        elements(JsonStream(broken, chunk=64))
    assert sum(asked) <= 128


def test_each_element_is_read_once_or_little_more() -> None:
    """The buffer grows with the element: reading costs what is there, not its square."""
    read: Callable[[int], bytes] = io.BytesIO(json.dumps(["a" * 100_000]).encode()).read
    calls: list[int] = []

    def counted(size: int) -> bytes:
        calls.append(size)
        return read(size)

    assert elements(JsonStream(counted, chunk=16)) == ["a" * 100_000]
    assert len(calls) < 25
