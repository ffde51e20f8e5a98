"""OpenAI chat messages: every role and content form is read, and comes back as it was (P-1, V-1)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests.formats.json_strategies import messages, odd_messages
from turnlog.errors import InvalidValueError, UnstorableError
from turnlog.formats.openai_chat import FORMAT, parse, render, render_message
from turnlog.log.codec import decode_body, encode_body
from turnlog.log.events import SessionEvent
from turnlog.log.messages import (
    AssistantMessage,
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


def lines(path: Path) -> Iterator[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def test_every_real_conversation_comes_back_as_it_was_and_needs_no_second_copy(data: Path) -> None:
    seen = 0
    for conversation in lines(data / "conversations.jsonl.gz"):
        parsed = [parse(message) for message in conversation["messages"]]
        assert render(parsed) == conversation["messages"]
        assert all(message.native is None for message in parsed)
        seen += len(parsed)
    assert seen > 2_000


def test_every_message_of_every_recorded_request_comes_back_as_it_was(data: Path) -> None:
    seen = 0
    for request in lines(data / "provider_requests.jsonl.gz"):
        if request["api"] == "openai-chat":
            sent = request["request"].get("messages", [])
            assert render(map(parse, sent)) == sent
            seen += len(sent)
    assert seen > 500


@given(messages)
def test_a_right_message_comes_back_as_it_was_also_from_a_store(message: dict[str, Any]) -> None:
    parsed = parse(message)
    assert render_message(parsed) == [message]
    kept = decode_body(*encode_body(SessionEvent(session_id="s", message=parsed))).message
    assert kept == parsed
    assert kept is not None
    assert render_message(kept) == [message]


@given(odd_messages())
def test_no_wrong_message_raises_anything_but_a_typed_error_that_begins_with_the_place(message: Any) -> None:
    try:
        parsed = parse(message, "messages[3]")
    except InvalidValueError as error:
        fault = str(error)
    else:
        assert render_message(parsed) == [message]
        return
    assert fault.startswith("messages[3]")


CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a":1}'}}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"role": "system", "content": "Be brief."}, SystemMessage("Be brief.")),
        ({"role": "user", "content": ""}, UserMessage("")),
        ({"role": "assistant", "content": "Hello"}, AssistantMessage("Hello")),
        (
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            AssistantMessage(tool_calls=(ToolCall("c1", "look", '{"a":1}'),)),
        ),
        ({"role": "assistant", "content": None, "refusal": "No."}, AssistantMessage((TextPart("No.", refusal=True),))),
        ({"role": "tool", "tool_call_id": "c1", "content": "5"}, ToolMessage((ToolResult("c1", "5"),))),
        (
            {"role": "tool", "tool_call_id": "c1", "name": "look", "content": "5"},
            ToolMessage((ToolResult("c1", "5", name="look"),)),
        ),
        (
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            UserMessage((TextPart("a"), TextPart("b"))),
        ),
        (
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAEC"}},
                    {"type": "image_url", "image_url": {"url": "https://e.org/a"}},
                    {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                    {
                        "type": "file",
                        "file": {"file_data": "data:application/pdf;base64,JVBERg==", "filename": "a.pdf"},
                    },
                ],
            },
            UserMessage(
                (
                    MediaPart(media_type="image/png", data=b"\x00\x01\x02"),
                    MediaPart(media_type="image/*", url="https://e.org/a"),
                    MediaPart(media_type="audio/wav", data=b"RIFF"),
                    MediaPart(media_type="application/pdf", data=b"%PDF", name="a.pdf"),
                )
            ),
        ),
    ],
)
def test_what_the_message_says_itself_is_not_kept_twice(data: dict[str, Any], message: Message) -> None:
    parsed = parse(data)
    assert parsed == message
    assert parsed.native is None
    assert render_message(message) == [data]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"role": "developer", "content": "Be brief."}, SystemMessage("Be brief.")),
        ({"role": "user", "content": "hi", "name": "ann"}, UserMessage("hi")),
        ({"role": "user", "content": [{"type": "text", "text": "hi"}]}, UserMessage("hi")),
        ({"role": "user", "content": []}, UserMessage(None)),
        ({"role": "user", "content": None}, UserMessage(None)),
        ({"role": "assistant", "content": None}, AssistantMessage(None)),
        (
            {"role": "tool", "tool_call_id": "c1", "name": "look", "content": None},
            ToolMessage((ToolResult("c1", None, name="look"),)),
        ),
        ({"role": "tool", "tool_call_id": "c" * 41, "content": "5"}, ToolMessage((ToolResult("c" * 41, "5"),))),
        ({"role": "user"}, UserMessage(None)),
        ({"role": "user", "content": [{"type": "hologram", "x": 1}]}, UserMessage(None)),
        (
            {"role": "assistant", "tool_calls": [CALL]},
            AssistantMessage(tool_calls=(ToolCall("c1", "look", '{"a":1}'),)),
        ),
        ({"role": "assistant", "content": "x", "tool_calls": []}, AssistantMessage("x")),
        ({"role": "assistant", "content": "x", "refusal": None, "annotations": []}, AssistantMessage("x")),
        (
            {"role": "assistant", "content": "x", "refusal": "No."},
            AssistantMessage((TextPart("x"), TextPart("No.", refusal=True))),
        ),
        (
            {"role": "assistant", "content": None, "audio": {"id": "a1", "data": "AAEC", "transcript": "hi"}},
            AssistantMessage((TextPart("hi"), MediaPart(media_type="audio/*", data=b"\x00\x01\x02"))),
        ),
        (
            {"role": "assistant", "content": None, "audio": {"id": "a1"}},
            AssistantMessage((MediaPart(media_type="audio/*", file_id="a1"),)),
        ),
        (
            {"role": "assistant", "content": "4", "reasoning_content": "2+2"},
            AssistantMessage((ReasoningPart(text="2+2"), TextPart("4"))),
        ),
        (
            {
                "role": "assistant",
                "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "n", "input": "free"}}],
            },
            AssistantMessage(tool_calls=(ToolCall("c", "n", "free"),)),
        ),
        (
            {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
            AssistantMessage(tool_calls=(ToolCall("function:look", "look", "{}"),)),
        ),
        (
            {"role": "function", "name": "look", "content": "5"},
            ToolMessage((ToolResult("function:look", "5", name="look"),)),
        ),
        # What a tool's message, or a model's, would not be given by us.
        (
            {
                "role": "tool",
                "tool_call_id": "c1",
                "content": [
                    {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERg==", "filename": "a"}}
                ],
            },
            ToolMessage((ToolResult("c1", (MediaPart(media_type="application/pdf", data=b"%PDF", name="a"),)),)),
        ),
        (
            {"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": "https://e.org/a"}}]},
            AssistantMessage((MediaPart(media_type="image/*", url="https://e.org/a"),)),
        ),
        (
            {"role": "user", "content": [{"type": "refusal", "refusal": "No."}]},
            UserMessage((TextPart("No.", refusal=True),)),
        ),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": "https://e.org/a"}]},
            UserMessage((MediaPart(media_type="image/*", url="https://e.org/a"),)),
        ),
    ],
)
def test_what_the_message_cannot_say_is_kept_beside_it(data: dict[str, Any], message: Message) -> None:
    parsed = parse(data)
    assert parsed == message
    assert parsed.native == Native(FORMAT, data)
    assert render_message(parsed) == [data]


def test_a_file_of_the_providers_says_whose_it_is() -> None:
    """P-1: the id of a file means nothing to a stranger."""
    data = {"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}
    parsed = parse(data)
    assert parsed == UserMessage((MediaPart(file_id="file-1"),))
    assert parsed.native == Native(FORMAT, None)
    assert render_message(parsed) == [data]


#: What is wrong, and what is said about it.
WRONG: list[tuple[Any, str]] = [
    (None, "m must be an object, not null"),
    ([], "m must be an object, not an array"),
    ({}, "m has no 'role'"),
    ({"role": 1}, "m.role must be a string, not a number"),
    ({"role": "critic"}, "m.role is 'critic', not one of system, developer"),
    ({"role": "user", "content": 5}, "m.content must be a string, an array of parts, or null, not a number"),
    ({"role": "user", "content": ["x"]}, r"m.content\[0\] must be an object, not a string"),
    ({"role": "user", "content": [{"text": "x"}]}, r"m.content\[0\] has no 'type'"),
    (
        {"role": "user", "content": [{"type": "text", "text": True}]},
        r"m.content\[0\].text must be a string, not a bool",
    ),
    ({"role": "user", "content": [{"type": "image_url"}]}, r"m.content\[0\] has no 'image_url'"),
    (
        {"role": "user", "content": [{"type": "image_url", "image_url": {}}]},
        r"m.content\[0\].image_url has no 'url'",
    ),
    ({"role": "user", "content": [{"type": "file", "file": {}}]}, r"m.content\[0\].file has neither"),
    ({"role": "tool", "content": "x"}, "m has no 'tool_call_id'"),
    ({"role": "function", "content": "x"}, "m has no 'name'"),
    ({"role": "assistant", "tool_calls": {}}, "m.tool_calls must be an array or null, not an object"),
    ({"role": "assistant", "tool_calls": [{"id": "c"}]}, r"m.tool_calls\[0\] has neither 'function' nor 'custom'"),
    (
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {}}}]},
        r"m.tool_calls\[0\].function.arguments must be a string, not an object",
    ),
    ({"role": "assistant", "audio": {}}, "m.audio has no 'id'"),
    ({"role": "assistant", "function_call": []}, "m.function_call must be an object, not an array"),
]


@pytest.mark.parametrize(("data", "problem"), WRONG)
def test_what_is_wrong_is_said_with_its_place(data: Any, problem: str) -> None:
    with pytest.raises(InvalidValueError, match=f"^{problem}"):
        parse(data, "m")


@pytest.mark.parametrize(
    "unstorable", [float("nan"), float("inf"), b"x", {1: 2}, {"a": (1,)}, pytest.param(10**5000, id="digits")]
)
def test_an_unknown_key_that_cannot_be_stored_is_refused_with_its_path(unstorable: Any) -> None:
    """R-9: what is kept beside the message must be JSON, kept exactly."""
    with pytest.raises(UnstorableError, match=r"^m\['x'\]"):
        parse({"role": "user", "content": "hi", "x": unstorable}, "m")


def test_nesting_beyond_the_limit_is_refused_not_a_recursion_error() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(UnstorableError, match="nested deeper than 200"):
        parse({"role": "user", "content": "hi", "x": deep})


def test_a_message_changed_after_it_was_read_is_rendered_as_it_is_now() -> None:
    """P-1: the kept original is handed back only while it says the same."""
    message = parse({"role": "user", "content": "secret", "name": "ann"})
    assert render_message(message.replace(content="[removed]")) == [{"role": "user", "content": "[removed]"}]


def test_what_is_rendered_is_the_callers_own() -> None:
    message = parse({"role": "user", "content": "hi", "x": {"y": 1}})
    render_message(message)[0]["x"]["y"] = 2
    assert render_message(message) == [{"role": "user", "content": "hi", "x": {"y": 1}}]


def test_several_results_become_several_messages() -> None:
    both = ToolMessage((ToolResult("a", "1"), ToolResult("b", "no", status=ToolStatus.ERROR)))
    assert render([both]) == [
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "no"},
    ]


def test_what_another_provider_sent_is_not_handed_to_this_one() -> None:
    message = UserMessage("hi", native=Native("anthropic", {"role": "user", "content": "hi"}))
    assert render_message(message) == [{"role": "user", "content": "hi"}]
