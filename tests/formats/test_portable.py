"""turnlog's own JSON Lines: every log comes back exactly, a damaged file is refused where it is damaged (O-5, R-9)."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.errors import InvalidValueError
from turnlog.formats.portable import Header, LogReader, is_header, read_header, write
from turnlog.log.events import SessionEvent
from turnlog.log.messages import MediaPart, UserMessage
from turnlog.log.session import Session
from turnlog.testing.strategies import batches, json_objects

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SESSION = Session(id="session", created_at=NOON)


def positioned(log: Sequence[Sequence[SessionEvent]]) -> list[list[SessionEvent]]:
    position = iter(range(1, 1 + sum(map(len, log))))
    return [[event.replace(position=next(position)) for event in batch] for batch in log]


def written(log: Sequence[Sequence[SessionEvent]], session: Session = SESSION) -> list[bytes]:
    return list(write(session, sum(map(len, log)), log))


def read_back(lines: Iterable[bytes]) -> tuple[Header, list[list[SessionEvent]]]:
    first, *rest = lines
    header = read_header(first)
    reader = LogReader(header)
    log: list[list[SessionEvent]] = []
    for line in rest:
        entry = reader.read(line)
        if entry.batch > len(log):
            log.append([])
        log[-1].append(entry.event)
    reader.end()
    return header, log


def fields(event: SessionEvent) -> Any:
    """All that an event holds, ``metadata`` and ``native`` of its message included, types told apart."""
    message = event.message
    return repr([getattr(event, name) for name in event.__struct_fields__ if name != "message"]), (
        message and repr([getattr(message, name) for name in message.__struct_fields__]),
        message,
    )


@given(batches(SESSION.id))
def test_every_log_comes_back_with_its_batches(log: list[list[SessionEvent]]) -> None:
    log = positioned(log)
    _, back = read_back(written(log))
    assert back == log
    assert [[fields(event) for event in batch] for batch in back] == [
        [fields(event) for event in batch] for batch in log
    ]


@given(batches(SESSION.id, max_batches=3))
def test_every_line_is_utf_8_json_and_ends_with_its_only_newline(log: list[list[SessionEvent]]) -> None:
    for line in written(positioned(log)):
        assert line.count(b"\n") == 1
        assert line.endswith(b"}\n")
        assert isinstance(json.loads(line.decode("utf-8")), dict)


@given(json_objects(), st.none() | st.integers(1, 10**6))
def test_every_session_comes_back(metadata: dict[str, Any], seconds: int | None) -> None:
    metadata.pop("principal_name", None)
    life = None if seconds is None else timedelta(seconds=seconds, microseconds=1)
    expires_at = None if life is None else NOON + life
    session = Session(id="s", created_at=NOON, expires_at=expires_at, time_to_live=life, metadata=metadata)
    header, log = read_back(written([], session))
    assert header == Header(session, 0)
    assert repr(header.session.metadata) == repr(metadata)
    assert log == []


@pytest.mark.parametrize(
    "text", ["\ud800", "\udc00\ud800", "\ud83d\ude00 and 😀", "\x10", "\x10d800", "\x00", "👩‍👩‍👧", ""]
)
def test_text_that_json_cannot_hold_comes_back(text: str) -> None:
    """R-9: lone and paired surrogates stay what they are, keys included; so does what looks like their escape."""
    media = MediaPart(media_type="x", data=bytes(range(256)))
    message = UserMessage((media,), metadata={text: [text]})
    event = SessionEvent(session_id=SESSION.id, position=1, message=message, metadata={text + "k": text})
    _, back = read_back(written([[event]]))
    assert fields(back[0][0]) == fields(event)


HEADER, FIRST, SECOND = written(
    positioned(
        [[SessionEvent(session_id=SESSION.id, id=str(n), message=UserMessage("hi"), timestamp=NOON)] for n in (1, 2)]
    )
)


def changed(line: bytes, **values: Any) -> bytes:
    return json.dumps(json.loads(line) | values).encode()


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([FIRST], "missing required field `turnlog`"),
        ([changed(HEADER, turnlog=2)], "layout 2 of turnlog's files is not known"),
        ([changed(HEADER, turnlog="x")], "Expected `int`"),
        ([changed(HEADER, version=-1)], "a log has no version -1"),
        (
            [changed(HEADER, session={"id": "a\n", "created_at": "2026-01-01T00:00:00Z"})],
            "control or surrogate character",
        ),
        ([changed(HEADER, session={"id": "a", "created_at": "2026-01-01T00:00:00"})], "naive"),
        ([changed(HEADER, extra=1)], "unknown field `extra`"),
        ([HEADER, SECOND], "event 2 follows event 0"),
        ([HEADER, FIRST, FIRST], "event 1 follows event 1"),
        ([HEADER, FIRST, changed(SECOND, batch=3)], "batch 3 follows batch 1"),
        ([HEADER, FIRST, changed(SECOND, batch=0)], "batch 0 follows batch 1"),
        ([HEADER, FIRST, SECOND, changed(SECOND, position=3)], "event 3 of a log that has 2"),
        ([HEADER, FIRST], "cut short: 1 of 2 events"),
        ([HEADER, FIRST, SECOND[:-20]], "truncated"),
        ([HEADER, changed(FIRST, message={"role": "critic"})], "Invalid value 'critic'"),
        ([HEADER, changed(FIRST, message=None)], "needs a message"),
        ([HEADER, changed(FIRST, type="lower")], "event type 'lower'"),
        ([HEADER, changed(FIRST, type="OWN.TYPE")], "a OWN.TYPE event has a payload"),
        ([HEADER, changed(FIRST, payload={})], "a MESSAGE event has no payload"),
        ([HEADER, changed(FIRST, branch="a..b")], "empty segment"),
        ([HEADER, changed(FIRST, surprise=1)], "unknown field `surprise`"),
        ([HEADER, FIRST.replace(b'"hi"', b"NaN")], "malformed"),
        ([HEADER, b"[" * 100_000], "nested|array"),
        ([HEADER, b"\xff"], "malformed|UTF-8"),
    ],
)
def test_what_is_wrong_is_refused(lines: list[bytes], problem: str) -> None:
    with pytest.raises(InvalidValueError, match=problem):
        read_back(lines)


@given(st.integers(0, 1000), st.binary(max_size=3), st.integers(0, 3))
def test_damage_raises_nothing_but_the_typed_error(at: int, put: bytes, lost: int) -> None:
    data = HEADER + FIRST + SECOND
    at %= len(data)
    damaged = data[:at] + put + data[at + lost :]
    with contextlib.suppress(InvalidValueError):
        read_back(damaged.splitlines())


def test_a_header_is_told_from_an_event_and_from_other_files() -> None:
    assert is_header(HEADER)
    assert is_header(b' { "turnlog" : 1')
    assert not any(map(is_header, [FIRST, b'{"role": "turnlog"}', b"[]", b"", b'{"messages": [], "turnlog": 1}']))


def test_the_lines_are_written_as_the_batches_come() -> None:
    """An export needs no memory for the whole log."""
    taken: list[int] = []

    def log() -> Iterator[list[SessionEvent]]:
        for number in (1, 2):
            taken.append(number)
            yield [SessionEvent(session_id=SESSION.id, position=number, message=UserMessage("hi"))]

    lines = write(SESSION, 2, log())
    assert is_header(next(lines))
    assert taken == []
    next(lines)
    assert taken == [1]
