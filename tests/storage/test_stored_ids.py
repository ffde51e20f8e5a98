"""R-8: no two event ids become the same bytes in a store."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turnlog.storage.sql.rows import event_id, stored_id
from turnlog.testing.strategies import names

UUID = "0197f7a0-1111-7222-8333-444455556666"


@pytest.mark.parametrize(
    ("given_id", "length"),
    [
        (UUID, 16),
        (UUID.upper(), 37),
        (UUID.replace("-", ""), 33),
        ("-" + UUID[1:35] + "-", 37),  # dashes in their places, and two more
        (" 197f7a0-1111-7222-8333-444455556666", 37),
        ("fifteen letters", 17),
        ("fourteen chars", 15),
        ("é" * 8, 17),
        ("ÿ", 3),
    ],
)
def test_the_length_tells_the_form(given_id: str, length: int) -> None:
    assert len(stored_id(given_id)) == length
    assert event_id(stored_id(given_id)) == given_id


@given(names() | st.uuids().map(str) | st.text(st.sampled_from("0123456789abcdef-"), min_size=36, max_size=36))
@example("-" * 36)
def test_every_id_comes_back(given_id: str) -> None:
    assert event_id(stored_id(given_id)) == given_id


@given(st.binary(min_size=16, max_size=16))
def test_sixteen_bytes_are_always_a_uuid(data: bytes) -> None:
    assert stored_id(event_id(data)) == data
    assert event_id(data) == str(uuid.UUID(bytes=data))
