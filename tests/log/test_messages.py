"""Messages: immutable values without identity, equal by content (V-1)."""

from __future__ import annotations

from collections import OrderedDict, UserString
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given

from tests.log.untyped import untyped
from turnlog.errors import InvalidValueError, UnstorableError
from turnlog.log.messages import (
    AssistantMessage,
    Content,
    MediaPart,
    Message,
    MessageType,
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
from turnlog.testing.strategies import messages

CALL = ToolCall("c1", "look_up", '{"key": 1}')
RESULT = ToolResult("c1", "found")
MEGABYTE = "x" * 1_000_000
TEXT_CLASSES = (SystemMessage, UserMessage, AssistantMessage)
EXAMPLES: tuple[Message, ...] = (
    SystemMessage("hi"),
    UserMessage("hi"),
    AssistantMessage("hi"),
    AssistantMessage("hi", tool_calls=(CALL,)),
    ToolMessage((RESULT,)),
)


def test_each_class_has_its_type() -> None:
    types = [message.type for message in EXAMPLES]
    assert types == [
        MessageType.SYSTEM,
        MessageType.USER,
        MessageType.ASSISTANT,
        MessageType.ASSISTANT,
        MessageType.TOOL,
    ]


def test_wire_values_are_lower_case() -> None:
    assert [kind.value for kind in MessageType] == ["system", "user", "assistant", "tool"]
    assert [status.value for status in ToolStatus] == ["ok", "error", "interim", "not_run"]


def test_user_message_takes_its_text() -> None:
    message = UserMessage("hi")
    assert message.text == "hi"
    assert message.content == "hi"
    assert message.parts == (TextPart("hi"),)


@pytest.mark.parametrize("build", TEXT_CLASSES)
def test_none_is_not_the_empty_string(build: type[UserMessage]) -> None:
    assert build(None) == build()
    assert build(None) != build("")
    assert build(None).content is None
    assert build("").content == ""
    assert build(None).text == build("").text == ""


def test_text_joins_the_text_parts_only() -> None:
    message = AssistantMessage(
        (ReasoningPart(text="hm"), TextPart("a"), MediaPart(url="u"), TextPart("b", refusal=True))
    )
    assert message.text == "ab"
    assert len(message.parts) == 4


@pytest.mark.parametrize("content", ["hi", ("hi",), [TextPart("hi")], (TextPart("hi"),)])
def test_one_plain_text_part_is_its_string(content: object) -> None:
    if content == ("hi",):
        with pytest.raises(InvalidValueError, match="content parts are"):
            UserMessage(untyped(content))
        return
    message = UserMessage(untyped(content))
    assert message.content == "hi"
    assert message == UserMessage("hi")
    assert hash(message) == hash(UserMessage("hi"))


def test_parts_that_are_more_than_one_text_stay_parts() -> None:
    refusal = (TextPart("no", refusal=True),)
    assert AssistantMessage(refusal).content == refusal
    assert AssistantMessage(refusal) != AssistantMessage("no")
    two = (TextPart("a"), TextPart("b"))
    assert UserMessage(two).content == two
    assert UserMessage(two) != UserMessage("ab")


@pytest.mark.parametrize("empty", [[], ()])
def test_no_parts_are_no_content(empty: object) -> None:
    assert UserMessage(untyped(empty)) == UserMessage(None)
    assert ToolResult("c", untyped(empty)) == ToolResult("c", None)


def test_a_list_of_parts_is_copied() -> None:
    parts = [TextPart("a"), TextPart("b")]
    calls = [CALL]
    message = AssistantMessage(untyped(parts), tool_calls=untyped(calls))
    parts.append(TextPart("c"))
    calls.append(CALL)
    assert message.text == "ab"
    assert message.tool_calls == (CALL,)


@pytest.mark.parametrize("message", EXAMPLES, ids=repr)
def test_metadata_and_native_take_no_part_in_equality(message: Message) -> None:
    other = message.replace(metadata={"seen": True}, native=Native("openai", {"id": 1}))
    assert other == message
    assert not (other != message)  # noqa: SIM202 - the operators are two
    assert hash(other) == hash(message)
    assert other.metadata == {"seen": True}
    assert other.native == Native("openai", {"id": 1})


def test_messages_of_different_types_or_content_differ() -> None:
    assert len(set(EXAMPLES)) == len(EXAMPLES)
    assert all(a != b for i, a in enumerate(EXAMPLES) for b in EXAMPLES[i + 1 :])
    assert UserMessage("hi") != "hi"
    assert ToolMessage((RESULT,)) != RESULT


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ToolResult("c1"), ToolResult("c2")),
        (ToolResult("c1", "a"), ToolResult("c1", "b")),
        (ToolResult("c1"), ToolResult("c1", "")),
        (ToolResult("c1", "a"), ToolResult("c1", "a", ToolStatus.ERROR)),
        (ToolResult("c1", "a"), ToolResult("c1", "a", name="look_up")),
    ],
)
def test_every_field_of_a_result_is_content(one: ToolResult, other: ToolResult) -> None:
    assert ToolMessage((one,)) != ToolMessage((other,))


def test_every_field_of_a_call_is_content() -> None:
    kept = AssistantMessage(tool_calls=(CALL,))
    for changed in (
        ToolCall("c2", "look_up", CALL.arguments),
        ToolCall("c1", "x", CALL.arguments),
        ToolCall("c1", "look_up"),
    ):
        assert AssistantMessage(tool_calls=(changed,)) != kept


def test_arguments_are_the_text_that_the_model_wrote() -> None:
    assert ToolCall("c", "f", '{ "a":1 }').arguments == '{ "a":1 }'
    assert ToolCall("c", "f", "not json").arguments == "not json"
    assert ToolCall("c", "f").arguments == "{}"
    with pytest.raises(InvalidValueError, match="arguments must be str, not dict"):
        ToolCall("c", "f", untyped({"a": 1}))


def test_reasoning_keeps_the_signature_untouched() -> None:
    part = ReasoningPart(text="hm", signature="c2ln\n==", data="x")
    assert (part.text, part.signature, part.data) == ("hm", "c2ln\n==", "x")
    assert AssistantMessage((part,)) != AssistantMessage((ReasoningPart(text="hm", data="x"),))


def test_a_tool_message_takes_one_result_or_several() -> None:
    assert ToolMessage(untyped(RESULT)) == ToolMessage((RESULT,)) == ToolMessage(untyped([RESULT]))
    assert ToolMessage((RESULT,)).text == ""
    assert ToolMessage((RESULT,)).parts == ()


def test_a_result_joins_its_text_parts() -> None:
    assert ToolResult("c", (TextPart("a"), MediaPart(url="u"), TextPart("b"))).text == "ab"
    assert ToolResult("c").text == ""


@pytest.mark.parametrize("message", EXAMPLES, ids=repr)
def test_messages_are_frozen(message: Message) -> None:
    with pytest.raises(AttributeError):
        untyped(message).metadata = {}
    for part in (TextPart("a"), MediaPart(url="u"), ReasoningPart(), CALL, RESULT, Native("f", 1)):
        with pytest.raises(AttributeError):
            setattr(part, part.__struct_fields__[0], "changed")


BUILDERS: tuple[Callable[..., Message], ...] = (*TEXT_CLASSES, partial(ToolMessage, (RESULT,)))


@pytest.mark.parametrize("build", BUILDERS)
@pytest.mark.parametrize("empty", [True, False])
def test_metadata_is_a_copy(build: Callable[..., Message], *, empty: bool) -> None:
    """What the caller does to its dict later does not reach the message, also where it was empty (B36)."""
    given_metadata: dict[str, Any] = {} if empty else {"list": [1]}
    message = build(metadata=given_metadata)
    given_metadata["list"] = given_metadata.get("list", [])
    given_metadata["list"].append(2)
    given_metadata["more"] = object()
    assert message.metadata == ({} if empty else {"list": [1]})


def test_native_data_is_a_copy() -> None:
    data: dict[str, Any] = {"blocks": [1]}
    native = Native("anthropic", data)
    data["blocks"].append(2)
    assert native.data == {"blocks": [1]}


NO_METADATA: tuple[object, ...] = (None, [], "x", OrderedDict[str, int](), OrderedDict[str, int](a=1))


@pytest.mark.parametrize("message", EXAMPLES, ids=repr)
@pytest.mark.parametrize("metadata", NO_METADATA)
def test_metadata_must_be_a_dict(message: Message, metadata: object) -> None:
    with pytest.raises(UnstorableError) as caught:
        message.replace(metadata=metadata)
    assert caught.value.path == "message.metadata"


def test_unstorable_values_name_their_path() -> None:
    with pytest.raises(UnstorableError) as caught:
        UserMessage("hi", metadata={"a": [0, {"b": b"bytes"}]})
    assert caught.value.path == "message.metadata['a'][1]['b']"
    with pytest.raises(UnstorableError) as caught:
        Native("f", [float("nan")])
    assert caught.value.path == "native.data[0]"


class _Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "content", [1, b"bytes", True, _Text("hi"), UserString("hi"), {"type": "text"}, {TextPart("a")}, iter([])]
)
def test_content_of_another_type_is_refused(content: object) -> None:
    for build in TEXT_CLASSES:
        with pytest.raises(InvalidValueError, match="content"):
            build(untyped(content))
    with pytest.raises(InvalidValueError, match="content"):
        ToolResult("c", untyped(content))


TYPED_FIELDS: tuple[Callable[[Any], object], ...] = (
    TextPart,
    lambda bad: TextPart("a", refusal=bad),
    lambda bad: MediaPart(url="u", media_type=bad),
    lambda bad: MediaPart(url=bad),
    lambda bad: MediaPart(file_id=bad),
    lambda bad: MediaPart(data=bad),
    lambda bad: MediaPart(url="u", name=bad),
    lambda bad: ReasoningPart(text=bad),
    lambda bad: ReasoningPart(signature=bad),
    lambda bad: ReasoningPart(data=bad),
    lambda bad: ToolCall(bad, "f"),
    lambda bad: ToolCall("c", bad),
    lambda bad: ToolCall("c", "f", bad),
    ToolResult,
    lambda bad: ToolResult("c", status=bad),
    lambda bad: ToolResult("c", name=bad),
    lambda bad: Native(bad, 1),
    lambda bad: UserMessage("a", native=bad),
    lambda bad: AssistantMessage("a", tool_calls=bad),
    lambda bad: AssistantMessage("a", tool_calls=(bad,)),
    ToolMessage,
    lambda bad: ToolMessage((bad,)),
    lambda bad: ToolMessage((RESULT,), native=bad),
)


@pytest.mark.parametrize("build", TYPED_FIELDS)
@pytest.mark.parametrize("bad", [1, 1.5, {"a": 1}, object()], ids=type)
def test_fields_of_another_type_are_refused(build: Any, bad: object) -> None:
    with pytest.raises(InvalidValueError):
        build(bad)


def test_a_status_is_no_plain_string() -> None:
    with pytest.raises(InvalidValueError, match="status must be ToolStatus, not str"):
        ToolResult("c", status=untyped("error"))


@pytest.mark.parametrize("bad", ["calls", None])
def test_calls_and_results_are_sequences(bad: object) -> None:
    with pytest.raises(InvalidValueError, match="tool_calls must be a sequence of ToolCall"):
        AssistantMessage("a", tool_calls=untyped(bad))
    with pytest.raises(InvalidValueError, match="results must be a sequence of ToolResult"):
        ToolMessage(untyped(bad))


@pytest.mark.parametrize(
    "fields", [{}, {"data": b"", "url": "u"}, {"url": "u", "file_id": "f"}, {"data": b"", "file_id": ""}]
)
def test_media_has_exactly_one_source(fields: Any) -> None:
    with pytest.raises(InvalidValueError, match="exactly one"):
        MediaPart(**fields)


@pytest.mark.parametrize("fields", [{"data": b""}, {"url": ""}, {"file_id": ""}])
def test_an_empty_source_is_one(fields: Any) -> None:
    assert MediaPart(**fields) == MediaPart(**fields)


def test_replace_makes_a_changed_copy_and_validates_again() -> None:
    message = AssistantMessage("a", tool_calls=(CALL,), metadata={"k": 1})
    changed = message.replace(content="b")
    assert (changed.content, changed.tool_calls, changed.metadata) == ("b", (CALL,), {"k": 1})
    assert message.content == "a"
    with pytest.raises(InvalidValueError):
        message.replace(content=1)
    with pytest.raises(TypeError):
        message.replace(contents="b")


HUGE: tuple[object, ...] = (
    TextPart(MEGABYTE),
    MediaPart(data=b"x" * 1_000_000, media_type=MEGABYTE),
    MediaPart(url=MEGABYTE),
    MediaPart(file_id=MEGABYTE),
    ReasoningPart(text=MEGABYTE, signature=MEGABYTE, data=MEGABYTE),
    ToolCall(MEGABYTE, MEGABYTE, MEGABYTE),
    ToolResult(MEGABYTE, MEGABYTE, name=MEGABYTE),
    Native(MEGABYTE, MEGABYTE),
    SystemMessage(MEGABYTE),
    UserMessage(MEGABYTE, metadata={"k": MEGABYTE}),
    UserMessage(tuple(TextPart(f"{n}") for n in range(100_000))),
    AssistantMessage(MEGABYTE, tool_calls=(ToolCall(MEGABYTE, MEGABYTE, MEGABYTE),) * 1000),
    ToolMessage((ToolResult(MEGABYTE, MEGABYTE),) * 1000, native=Native("f", MEGABYTE)),
)


@pytest.mark.parametrize("value", HUGE, ids=lambda value: type(value).__name__)
def test_a_repr_never_prints_megabytes(value: object) -> None:
    assert len(repr(value)) <= 300
    assert len(str(value)) <= 300


def test_a_repr_shows_what_was_said() -> None:
    assert repr(UserMessage("hi")) == "UserMessage('hi')"
    assert repr(UserMessage(None)) == "UserMessage(None)"
    assert repr(AssistantMessage(None, tool_calls=(CALL,))) == "AssistantMessage(None, calls look_up)"
    assert repr(ToolMessage((RESULT,))) == "ToolMessage(ToolResult('c1', 'found', ok))"
    assert repr(AssistantMessage((TextPart("no", refusal=True),))) == "AssistantMessage(TextPart('no', refusal=True))"
    assert repr(MediaPart(data=b"ab", media_type="image/png")) == "MediaPart('image/png', 2 bytes)"


@pytest.mark.parametrize("content", ["\ud800", (TextPart("\ud800"), MediaPart(url="\ud800"))])
def test_a_repr_can_be_printed_whatever_it_shows(content: Content) -> None:
    message = AssistantMessage(content)
    repr(message).encode()


@given(messages())
def test_messages_are_unequal_exactly_where_they_are_not_equal(message: Message) -> None:
    """``!=`` has a rule of its own in a class that defines only ``==``."""
    assert not message != message.replace(metadata={})  # noqa: SIM202 - the operator is what is tested
    assert message != "hi"
    assert message != SystemMessage("something else entirely")


@given(messages())
def test_a_message_equals_its_rebuilt_self(message: Message) -> None:
    again = message.replace()
    assert again == message
    assert hash(again) == hash(message)
    assert again.metadata == message.metadata
    assert len(repr(message)) <= 300
