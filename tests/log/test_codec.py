"""Stored JSON: lossless in both directions (R-9), and the content by which a replay is known (R-4)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.log.untyped import untyped
from turnlog.log.codec import (
    ESCAPED,
    FORMATS,
    PLAIN,
    Body,
    content_key,
    decode,
    decode_body,
    decode_events,
    encode,
    encode_body,
)
from turnlog.log.events import EventFields, EventType, SessionEvent
from turnlog.log.messages import (
    AssistantMessage,
    Content,
    MediaPart,
    Message,
    Native,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolStatus,
    UserMessage,
)
from turnlog.testing.clocks import START
from turnlog.testing.factories import PROGRESS, event, own, user
from turnlog.testing.strategies import events, json_values

FAMILY = "👩‍👩‍👧"
TEXTS = (
    "",
    "\0",
    "a\0b",
    "\ud800",
    "a\udfffb",
    "\ud83d\ude00",  # a pair as two code points is not the character
    "\U0001f600",
    "\ude00\ud83d",
    FAMILY,
    "\x10",
    "\x10d83d",
    "\x10\ud83d",
    "\x100010",
    "\\ud83d",
    "\\u0000",
    "\u2028\u2029\x7f\x85",
    "\ufeff",
    "\uffff\U0010ffff",
    "乤乥",
)


def round_trip(made: SessionEvent) -> SessionEvent:
    format_, data = encode_body(made)
    assert format_ in FORMATS
    body = decode_body(format_, data)
    return made.replace(message=body.message, payload=body.payload, metadata=body.metadata)


def details(message: Message | None) -> object:
    """All that a message holds, type by type: what ``==`` leaves out, too."""
    assert message is not None
    fields = {name: getattr(message, name) for name in message.__struct_fields__}
    return type(message), repr(fields["metadata"]), fields.pop("native"), fields


def assert_lossless(made: SessionEvent) -> None:
    back = round_trip(made)
    assert back == made
    assert repr(back.metadata) == repr(made.metadata)
    if made.message is None:
        assert repr(back.payload) == repr(made.payload)
        return
    assert details(back.message) == details(made.message)
    if made.message.native is not None and back.message is not None and back.message.native is not None:
        assert repr(back.message.native.data) == repr(made.message.native.data)


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_any_text_comes_back_wherever_it_stands(text: str) -> None:
    """B149, B150: one rule for every string, keys included."""
    holders = {text: [text, {text: text}]}
    native = Native(text, holders)
    for message in (
        SystemMessage(text, metadata=holders, native=native),
        UserMessage((TextPart(text), TextPart("x"))),
        UserMessage((MediaPart(url=text, media_type=text, name=text), MediaPart(file_id=text))),
        AssistantMessage(
            (ReasoningPart(text=text, signature=text, data=text),), tool_calls=(ToolCall(text, text, text),)
        ),
        AssistantMessage((TextPart(text, refusal=True),)),
        ToolMessage(
            (ToolResult(text, text, ToolStatus.INTERIM, text), ToolResult("c", (TextPart(text), TextPart("x"))))
        ),
    ):
        assert_lossless(event(1, message, metadata=holders))
    assert_lossless(own(1, holders))


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_only_surrogates_are_written_by_the_escape(text: str) -> None:
    has_surrogates = any("\ud800" <= character <= "\udfff" for character in text)
    assert encode_body(user(1, text))[0] == (ESCAPED if has_surrogates else PLAIN)


def test_the_bytes_are_utf_8_json_without_escapes_of_our_text() -> None:
    """B131: text stays text."""
    assert encode_body(user(1, "乤乥")) == (PLAIN, '{"message":{"role":"user","content":"乤乥"}}'.encode())
    assert encode_body(user(1, "\ud83d\ude00"))[1].decode() == (
        '{"message":{"role":"user","content":"\\u0010d83d\\u0010de00"}}'
    )


NOTHINGS: tuple[Content, ...] = (
    None,
    "",
    (TextPart("", refusal=True),),
    (ReasoningPart(),),
    (TextPart(""), TextPart("")),
)


@pytest.mark.parametrize("content", NOTHINGS, ids=repr)
def test_none_stays_apart_from_the_empty_string(content: Content) -> None:
    for message in (UserMessage(content), AssistantMessage(content), ToolMessage((ToolResult("c", content),))):
        back = round_trip(event(1, message)).content
        assert back == message
        assert details(back) == details(message)


def test_five_megabytes_come_back() -> None:
    for text in ("ä" * 2_500_000, FAMILY * 300_000, "x" * 5_000_000 + "\ud800"):
        back = round_trip(user(1, text))
        assert back.content.text == text


@pytest.mark.parametrize("size", [0, 1, 2, 3, 1_000_000])
@pytest.mark.parametrize("beside", ["", "\ud800"])
def test_case_B125_bytes_come_back_as_bytes(size: int, beside: str) -> None:  # noqa: N802 - the case's id
    data = bytes(range(256)) * (size // 256) + b"\xff\xfe\x00"[: size % 256]
    message = UserMessage((MediaPart(data=data, media_type="image/png"), TextPart(beside)))
    back = round_trip(event(1, message)).content
    assert back == message


def test_case_B127_a_binary_part_comes_back_as_the_same_type() -> None:  # noqa: N802 - the case's id
    message = ToolMessage((ToolResult("c", (MediaPart(data=b"\xff\xfe", media_type="image/png"),)),))
    assert_lossless(event(1, message))


NUMBERS: tuple[object, ...] = (
    [1, 1.0, True],
    [0, 0.0, -0.0, False],
    [10**4299, -(10**4300 - 1), 2**63, 2**64, -(2**63) - 1],
    [5e-324, 1.7976931348623157e308, 0.1, 1e16, 1e22, 123456789012345680000.0, 2.0**53],
)


@pytest.mark.parametrize("numbers", NUMBERS, ids=lambda numbers: str(numbers)[:20])
@pytest.mark.parametrize("beside", ["", "\ud800"])
def test_numbers_stay_what_they_are(numbers: object, beside: str) -> None:
    assert_lossless(own(1, {"n": numbers, "beside": beside}))


@pytest.mark.parametrize("leaf", ["x", "\ud800"])
def test_deep_and_large_metadata_comes_back(leaf: str) -> None:
    deep: Any = leaf
    for depth in range(199):
        deep = [deep] if depth % 2 else {"k": deep}
    large = {f"key {n}": {"list": list(range(20)), "text": "x" * 50} for n in range(5_000)}
    native = Native("f", {"deep": deep})
    assert_lossless(event(1, UserMessage("hi", metadata={"deep": deep}, native=native), metadata={"deep": deep}))
    assert_lossless(own(1, {"deep": deep}))
    assert_lossless(own(1, {"large": large, "leaf": leaf}))


def test_empty_stays_apart_from_absent() -> None:
    assert round_trip(own(1, {})).payload == {}
    assert round_trip(event(1, ToolMessage(()))).content == ToolMessage(())
    assert encode_body(own(1, {}))[1] == b'{"payload":{}}'


def test_case_B36_what_comes_back_is_a_value_of_its_own() -> None:  # noqa: N802 - the case's id
    format_, data = encode_body(user(1, metadata={"list": [1]}))
    one, other = decode_body(format_, data), decode_body(format_, data)
    one.metadata["list"].append(2)
    assert other.metadata == {"list": [1]}
    empty = [decode_body(*encode_body(user(1))) for _ in range(2)]
    empty[0].metadata["a"] = 1
    assert empty[1].metadata == Body().metadata == {}


@given(events())
def test_any_event_comes_back(made: SessionEvent) -> None:
    assert_lossless(made)


@given(json_values())
def test_any_json_value_comes_back(value: Any) -> None:
    format_, data = encode(value)
    assert repr(decode(format_, data, Any)) == repr(value)


def read_many(made: Sequence[SessionEvent]) -> list[EventFields]:
    formats, bodies = zip(*(encode_body(each) for each in made), strict=True)
    return decode_events(formats, bodies)


@given(st.lists(events(), min_size=1, max_size=3))
def test_many_bodies_come_back_as_each_alone_does(log: list[SessionEvent]) -> None:
    """The fast way, which checks nothing again, makes the same values as the checked one."""
    for made, read in zip(log, read_many(log), strict=True):
        body = decode_body(*encode_body(made))
        assert (read.message, read.payload, read.metadata) == (body.message, body.payload, body.metadata)
        assert repr((read.payload, read.metadata)) == repr((body.payload, body.metadata))
        if made.message is not None:
            assert details(read.message) == details(body.message)
            assert type(read.message) is type(made.message)
            assert read.message is not None
            assert read.message.replace() == made.message
            assert hash(read.message) == hash(made.message)


@pytest.mark.parametrize("beside", ["", "\ud800"])
def test_many_bodies_share_nothing_and_hold_tuples(beside: str) -> None:
    parts = (TextPart("a"), TextPart(beside))
    log = [
        event(1, UserMessage(parts)),
        event(2, AssistantMessage(parts, tool_calls=(ToolCall("c", "f"),))),
        event(3, ToolMessage((ToolResult("c", parts),))),
        event(4, SystemMessage("x")),
        own(5, {"n": -(10**4300 - 1)}),
    ]
    one, other = read_many(log), read_many(log)
    for read in one:
        read.metadata["more"] = 1
        if read.message is not None:
            read.message.metadata["more"] = 1
    assert [(read.message, read.metadata) for read in other] == [(made.message, {}) for made in log]
    assert all(read.message is None or read.message.metadata == {} for read in other)
    assert type(untyped(one[0].message).content) is tuple
    assert type(untyped(one[1].message).tool_calls) is tuple
    assert type(untyped(one[2].message).results[0].content) is tuple
    assert one[4].payload == log[4].payload


def test_encoding_is_the_same_each_time() -> None:
    made = user(1, "hi", metadata={"b": 1, "a": 2})
    assert encode_body(made) == encode_body(made.replace())


DAMAGED = (
    b"",
    b"{",
    b"[]",
    b"null",
    b'"text"',
    b"\xff",
    b'{"message":5}',
    b'{"message":{}}',
    b'{"message":{"role":"alien"}}',
    b'{"message":{"role":"user","content":5}}',
    b'{"message":{"role":"user","content":[{"type":"alien"}]}}',
    b'{"message":{"role":"user","content":[{"type":"media"}]}}',
    b'{"message":{"role":"user","content":[{"type":"media","data":"not base64"}]}}',
    b'{"message":{"role":"tool"}}',
    b'{"message":{"role":"tool","results":[{"id":"c","status":"alien"}]}}',
    b'{"metadata":[]}',
    b'{"payload":{"a":1}}trailing',
    b'{"payload":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
)


@pytest.mark.parametrize("data", DAMAGED, ids=lambda data: ascii(data)[:50])
@pytest.mark.parametrize("format_", FORMATS)
def test_damaged_data_is_an_error(format_: int, data: bytes) -> None:
    """R-10: a ``ValueError`` for the store to name session and position; never something empty."""
    with pytest.raises(ValueError):  # noqa: PT011 - msgspec words it
        decode_body(format_, data)
    good_format, good = encode_body(user(1))
    with pytest.raises(ValueError):  # noqa: PT011 - the same
        decode_events([good_format, format_], [good, data])


@pytest.mark.parametrize("format_", [-1, 2, 99])
def test_an_unknown_format_is_an_error(format_: int) -> None:
    with pytest.raises(ValueError, match=f"format {format_} is not known"):
        decode_body(format_, b'{"payload":{}}')


SAME: tuple[tuple[SessionEvent, SessionEvent], ...] = (
    (user(1, "hi"), user(2, "hi")),
    (user(1, "hi"), user(1, "hi", timestamp=START)),
    (user(1, "hi"), user(1, "hi", position=7)),
    (user(1, "hi"), user(1, "hi", metadata={"seen": True}, run="r")),
    (user(1, "hi"), event(1, UserMessage("hi", metadata={"k": 1}, native=Native("f", {})))),
    (user(1, "hi"), user(1, (TextPart("hi"),))),
    (own(1, {"a": 1, "b": {"c": 2, "d": 3}}), own(1, {"b": {"d": 3, "c": 2}, "a": 1})),
    (user(1, "hi"), user(1, "hi", session_id="other")),
)


@pytest.mark.parametrize(("one", "other"), SAME, ids=range(len(SAME)))
def test_what_is_no_content_makes_no_difference(one: SessionEvent, other: SessionEvent) -> None:
    """R-4"""
    assert content_key(one) == content_key(other)


DIFFERENT: tuple[SessionEvent, ...] = (
    user(1, None),
    user(1, ""),
    user(1, "hi"),
    user(1, "Hi"),
    user(1, "hi", branch="a"),
    user(1, "hi", branch="a.b"),
    event(1, SystemMessage("hi")),
    event(1, AssistantMessage("hi")),
    event(1, AssistantMessage((TextPart("hi", refusal=True),))),
    event(1, AssistantMessage("hi", tool_calls=(ToolCall("c", "f"),))),
    event(1, AssistantMessage("hi", tool_calls=(ToolCall("c", "f", "{ }"),))),
    event(1, AssistantMessage("hi", tool_calls=(ToolCall("c", "f"), ToolCall("c", "f")))),
    event(1, AssistantMessage((ReasoningPart(text="hi"),))),
    event(1, AssistantMessage((ReasoningPart(text="hi", signature="s"),))),
    event(1, UserMessage((MediaPart(data=b"hi"),))),
    event(1, UserMessage((MediaPart(url="hi"),))),
    event(1, ToolMessage((ToolResult("c", "hi"),))),
    event(1, ToolMessage((ToolResult("c", "hi", ToolStatus.ERROR),))),
    event(1, ToolMessage((ToolResult("c", "hi", name="f"),))),
    user(1, "\ud83d\ude00"),
    user(1, "\U0001f600"),
    user(1, "\x10d83d\x10de00"),
    user(1, "\ud83d"),
    own(1, {}),
    own(1, {"n": 1}),
    own(1, {"n": 1.0}),
    own(1, {"n": True}),
    own(1, {"n": None}),
    own(1, {"n": [1]}),
    own(1, {"n": "1"}),
    own(1, {"\ud800": 1}),
    own(1, {"n": 1}, type=EventType.of("TEST.OTHER")),
    own(1, {"n": 1}, branch="a"),
)


def test_every_difference_in_content_makes_one() -> None:
    """R-4: type, branch, and message or payload, in stored canonical form."""
    keys = {content_key(made): made for made in DIFFERENT}
    assert len(keys) == len(DIFFERENT)


@given(events(), events())
def test_the_key_is_equal_exactly_when_the_content_is(one: SessionEvent, other: SessionEvent) -> None:
    def content(made: SessionEvent) -> object:
        return made.type, made.branch, made.message, json.dumps(made.payload, sort_keys=True)

    assert (content_key(one) == content_key(other)) is (content(one) == content(other))
    assert content_key(round_trip(one)) == content_key(one)


def test_a_type_is_content() -> None:
    assert content_key(own(1, {"n": 1}, type=PROGRESS)) == content_key(own(1, {"n": 1}))
