"""A record comes back from its bytes as it was, and what is no record is an error, never something else (R-9, R-10)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.errors import UnreadableDataError
from turnlog.log.session import Session
from turnlog.storage.records import SessionRecord, decode_record, encode_record
from turnlog.storage.rules import Lease
from turnlog.testing import strategies
from turnlog.testing.clocks import START
from turnlog.testing.contract.exactness import exactly
from turnlog.testing.factories import assistant, session, user


@st.composite
def records(draw: st.DrawFn) -> SessionRecord:
    """Any record that a store may make."""
    events = draw(st.lists(strategies.events(), max_size=2))
    made = Session(
        id=draw(strategies.names()),
        created_at=draw(strategies.times()),
        expires_at=draw(st.none() | strategies.times()),
        metadata=draw(strategies.json_objects(max_leaves=3)),
    )
    lease = Lease(draw(strategies.names()), draw(strategies.times())) if draw(st.booleans()) else Lease()
    placed = tuple(event.at(position) for position, event in enumerate(events, 1))
    batches = (placed,) if draw(st.booleans()) else tuple((event,) for event in placed)
    return SessionRecord(made, draw(st.integers(0, 2**70)), lease, tuple(filter(None, batches)))


@given(records())
def test_a_record_comes_back_from_its_bytes(record: SessionRecord) -> None:
    there = decode_record(encode_record(record))
    assert there == record
    assert exactly(there) == exactly(record)


def test_version_is_the_number_of_events() -> None:
    assert SessionRecord(session(), 1).version == 0
    assert SessionRecord(session(), 1, batches=((user(1), assistant(2)), (user(3),))).version == 3


WHOLE = encode_record(SessionRecord(session(), 7, batches=((user(1).at(1),),)))


@pytest.mark.parametrize(
    "damaged",
    [
        *(WHOLE[:length] for length in range(0, len(WHOLE), 7)),
        WHOLE + b"]",
        WHOLE.replace(b" 0\n", b" 9\n"),
        WHOLE.replace(b" 0\n", b" zero\n"),
        WHOLE.replace(b"turnlog", b"TURNLOG"),
        WHOLE.replace(b'"user"', b'"nobody"'),
        b"turnlog-record 0\n" + b"[" * 100_000,
    ],
)
def test_what_is_no_record_is_refused(damaged: bytes) -> None:
    with pytest.raises(UnreadableDataError, match="session 's': this is no record"):
        decode_record(damaged, "s")


def test_the_layout_stays() -> None:
    """Records that this version wrote are read by every later one."""
    record = SessionRecord(session(principal="ann"), 7, Lease("t", START), ((user(1).at(1),),))
    data = (
        b"turnlog-record 0\n"
        b'[{"id":"s","created_at":"2026-01-01T00:00:00Z","metadata":{"principal_name":"ann"}},7,'
        b'{"token":"t","until":"2026-01-01T00:00:00Z"},[[{"session_id":"s","message":{"role":"user",'
        b'"content":"question"},"id":"e1","position":1,"timestamp":"2026-01-01T00:00:01Z"}]]]'
    )
    assert decode_record(data) == record
    assert encode_record(record) == data
