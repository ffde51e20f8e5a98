"""Rows back to events: the same values as were written, though no constructor looks at them again (R-9, R-10)."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turnlog.errors import UnreadableDataError
from turnlog.log import codec
from turnlog.log.events import SessionEvent
from turnlog.log.messages import MESSAGE_CLASSES, AssistantMessage, TextPart, ToolCall
from turnlog.log.session import LONGEST_TIME_TO_LIVE, Session, SessionAttributes
from turnlog.log.turns import TurnState
from turnlog.storage.sql import rows
from turnlog.storage.sql.statements import Row
from turnlog.testing.clocks import START
from turnlog.testing.factories import assistant, boundary, event, own, session, turn, user
from turnlog.testing.strategies import events
from turnlog.testing.strategies_values import json_objects, names, times

SESSION = "s"


def row_of(made: SessionEvent, position: int = 1) -> Row:
    """The row of ``EVENT_COLUMNS`` that the event is stored as."""
    parameters, _, _ = rows.event_parameters(7, [made], TurnState(version=position - 1), None)
    _, at, id_, timestamp, kind, _, _, format_, _, type_, branch, _, body = parameters[0]
    return (at, id_, timestamp, format_, body, kind, type_, branch)


def damaged(row: Row, **columns: Any) -> Row:
    names = ("position", "event_id", "timestamp", "format", "body", "kind", "type", "branch")
    return tuple(columns.get(name, value) for name, value in zip(names, row, strict=True))


@given(events())
def test_an_event_comes_back_as_it_was(made: SessionEvent) -> None:
    read = rows.event(made.session_id, row_of(made, 3))
    assert type(read) is SessionEvent
    assert read == made.at(3)
    if made.message is not None and read.message is not None:
        assert type(read.message) is type(made.message)
        assert hash(read.message) == hash(made.message)
        assert repr(read.message) == repr(made.message)
        assert (read.message.metadata, read.message.native) == (made.message.metadata, made.message.native)


def test_what_is_read_is_as_good_as_what_is_made() -> None:
    """It can be compared, copied, pickled, changed and encoded; only its making was shorter."""
    made = [*turn(1), assistant(5, (TextPart("no", refusal=True),)), own(6)]
    read = rows.events(SESSION, [row_of(item.replace(session_id=SESSION)) for item in made])
    for one in read:
        assert copy.copy(one) == one == pickle.loads(pickle.dumps(one)) == one.replace()  # noqa: S301 - our own bytes
        assert one.message is None or type(one.message) in MESSAGE_CLASSES
        assert row_of(one) == row_of(one.replace())


def test_what_is_read_shares_no_dictionary() -> None:
    row = row_of(user(1))
    one, other = rows.events(SESSION, [row, row])
    one.metadata["a"] = one.content.metadata["a"] = 1
    assert other.metadata == other.content.metadata == {}


def test_several_values_come_back_as_tuples() -> None:
    call = ToolCall("c", "look", "{}")
    read = rows.event(SESSION, row_of(event(1, AssistantMessage((TextPart("a"), TextPart("b")), tool_calls=[call]))))
    assert isinstance(read.message, AssistantMessage)
    assert read.message.content == (TextPart("a"), TextPart("b"))
    assert read.message.tool_calls == (call,)


def test_rows_of_messages_on_root_need_no_more_columns() -> None:
    read = rows.events(SESSION, [row_of(user(1)), row_of(assistant(2), 2)])
    assert rows.events(SESSION, [row_of(user(1))[:5], row_of(assistant(2), 2)[:5]]) == read


GOOD = row_of(user(1, branch="a.b"))
DAMAGED = {
    "no JSON": damaged(GOOD, body=b"{"),
    "no message": damaged(GOOD, body=b"{}"),
    "a payload in place of the message": damaged(GOOD, body=b'{"payload":{}}'),
    "a payload beside the message": damaged(GOOD, body=b'{"payload":{},"message":{"role":"user"}}'),
    "a message in an own event": damaged(row_of(own(1)), body=GOOD[4]),
    "no payload in an own event": damaged(row_of(own(1)), body=b"{}"),
    "an own event without type": damaged(row_of(own(1)), type=None),
    "an own event with a wrong type": damaged(row_of(own(1)), type="small"),
    "no payload in a boundary": damaged(row_of(boundary(1, [])), body=b"{}"),
    "an empty branch segment": damaged(GOOD, branch="a..b"),
    "a role that is not known": damaged(GOOD, body=b'{"message":{"role":"alien"}}'),
    "a format that is not known": damaged(GOOD, format=9),
    "text that is no UTF-8": damaged(GOOD, body=b'{"message":{"role":"user","content":"\xff"}}'),
    "a time outside the calendar": damaged(GOOD, timestamp=2**60),
    "an id that is no text": damaged(GOOD, event_id=b"\xfe\xfe\xff"),
    "an empty id": damaged(GOOD, event_id=b"\xff"),
    "messages alone without message": (1, GOOD[1], GOOD[2], 0, b'{"payload":{}}'),
}


@pytest.mark.parametrize("row", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_row_is_named(row: Row) -> None:
    """R-10: session and position are in the error, also where the row is one of many."""
    fine = row_of(user(2))
    among = [fine[: len(row)], damaged(fine, position=41)[: len(row)], (42, *row[1:]), damaged(fine)[: len(row)]]
    for found in ([(42, *row[1:])], among):
        with pytest.raises(UnreadableDataError) as caught:
            rows.events(SESSION, found)
        assert (caught.value.session_id, caught.value.position) == (SESSION, 42)


def session_row(made: Session) -> Row:
    """The row of ``SESSION_COLUMNS`` that the session is stored as."""
    return (*rows.session_parameters(made), *codec.encode(made.metadata))


@given(
    names(),
    times(),
    st.none() | times(),
    st.none() | st.timedeltas(timedelta(microseconds=1), LONGEST_TIME_TO_LIVE),
    json_objects(),
)
def test_a_session_comes_back_as_it_was(
    id_: str, created: datetime, expires: datetime | None, living: timedelta | None, metadata: dict[str, Any]
) -> None:
    made = Session(
        id=id_,
        created_at=created,
        expires_at=expires,
        time_to_live=None if expires is None else living,
        metadata=metadata | {SessionAttributes.PRINCIPAL_NAME: "ada"},
    )
    read = rows.session(session_row(made))
    assert type(read) is Session
    assert read == made == read.replace() == copy.copy(read)
    read.metadata["changed"] = 1
    assert rows.session(session_row(made)) == made


@pytest.mark.parametrize(
    "damage",
    [{3: 2**70}, {1: 2**60}, {2: -(2**60)}, {4: 9}, {5: b"{"}, {5: b"[]"}, {5: b'{"a":' * 5_000}, {5: b'"\xff"'}],
    ids=lambda damage: ascii(damage)[:30],
)
def test_a_damaged_session_is_named(damage: dict[int, Any]) -> None:
    """R-10."""
    row = session_row(session(SESSION, time_to_live=timedelta(1), expires_at=START))
    with pytest.raises(UnreadableDataError) as caught:
        rows.session(tuple(damage.get(index, value) for index, value in enumerate(row)))
    assert caught.value.session_id == SESSION


EXACT = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=2**52)


@given(st.datetimes(timezones=st.just(UTC)))
@example(datetime(1, 1, 1, tzinfo=UTC))
@example(datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC))
@example(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC))
@example(datetime(1970, 1, 1, tzinfo=UTC))
@example(EXACT - timedelta(microseconds=1))
@example(EXACT + timedelta(microseconds=1))
def test_every_moment_comes_back_to_the_microsecond(moment: datetime) -> None:
    value = rows.micros(moment)
    assert rows.moments([value]) == [rows.moment(value)] == [moment]
    assert rows.moments([value])[0].tzinfo is UTC


@given(st.integers(0, 2**52), st.integers(1, 200))
def test_neighbouring_moments_stay_apart(first: int, count: int) -> None:
    """Floats of seconds carry them, which is exact in this range alone."""
    values = range(first, first + count)
    assert rows.moments(values) == [rows.moment(value) for value in values]
