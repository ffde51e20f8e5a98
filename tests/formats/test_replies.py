"""Whole answers: read as the APIs and SDKs give them, and sent back as they came (P-1)."""

from __future__ import annotations

import contextlib
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.json_strategies import json_values
from tests.formats.samples import paths, put, without, written
from turnlog import (
    AssistantMessage,
    InvalidValueError,
    MediaPart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCall,
    UserMessage,
)
from turnlog.formats import (
    ParsedReply,
    ProblemLevel,
    Usage,
    anthropic,
    bedrock,
    gemini,
    openai_chat,
    openai_responses,
    problems,
)

CHAT: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "some-model",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "logprobs": None,
            "message": {
                "role": "assistant",
                "content": None,
                "refusal": None,
                "annotations": [],
                "audio": None,
                "function_call": None,
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"x": null}'}}
                ],
            },
        }
    ],
    "usage": {
        "prompt_tokens": 61,
        "completion_tokens": 9,
        "total_tokens": 70,
        "prompt_tokens_details": {"cached_tokens": 5},
    },
}
RESPONSES: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "model": "some-model",
    "status": "completed",
    "incomplete_details": None,
    "output": [
        {"id": "rs_1", "type": "reasoning", "summary": [], "content": None, "encrypted_content": "e1", "status": None},
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "phase": None,
            "content": [{"type": "output_text", "text": "Yes.", "annotations": [], "logprobs": None}],
        },
        {
            "id": "fc_1",
            "type": "function_call",
            "call_id": "call_1",
            "name": "look",
            "arguments": "{}",
            "status": "completed",
            "namespace": None,
        },
    ],
    "usage": {"input_tokens": 61, "output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 4}},
}
ANTHROPIC: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "some-model",
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s1"},
        {"type": "text", "text": "Yes.", "citations": None},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"x": None}},
    ],
    "usage": {
        "input_tokens": 1,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 40,
        "output_tokens": 9,
        "server_tool_use": None,
    },
}


class Reason(Enum):
    STOP = "STOP"


GEMINI: dict[str, Any] = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {"text": "hm", "thought": True, "inline_data": None},
                    {"text": "Yes.", "thought": None},
                    {
                        "function_call": {"id": None, "name": "look", "args": {"x": None}},
                        "thought_signature": b"\x01\x02",
                        "text": None,
                    },
                ],
            },
            "finish_reason": Reason.STOP,
        }
    ],
    "usage_metadata": {"prompt_token_count": 61, "candidates_token_count": 5, "thoughts_token_count": 4},
    "model_version": "some-model",
}
BEDROCK: dict[str, Any] = {
    "output": {
        "message": {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s1"}}},
                {"text": "Yes."},
                {"toolUse": {"toolUseId": "tooluse_1", "name": "look", "input": {"x": None}}},
            ],
        }
    },
    "stopReason": "tool_use",
    "usage": {"inputTokens": 21, "cacheReadInputTokens": 40, "outputTokens": 9, "totalTokens": 70},
}
CALLED = '{"x":null}'


@pytest.mark.parametrize(
    ("reply", "message", "model", "reason"),
    [
        (
            openai_chat.parse_reply(CHAT),
            AssistantMessage(tool_calls=[ToolCall("call_1", "look", '{"x": null}')]),
            "some-model",
            "tool_calls",
        ),
        (
            openai_responses.parse_reply(RESPONSES),
            AssistantMessage(
                [ReasoningPart(signature="e1"), TextPart("Yes.")], tool_calls=[ToolCall("call_1", "look")]
            ),
            "some-model",
            "completed",
        ),
        (
            anthropic.parse_reply(ANTHROPIC),
            AssistantMessage(
                [ReasoningPart(text="hm", signature="s1"), TextPart("Yes.")],
                tool_calls=[ToolCall("toolu_1", "look", CALLED)],
            ),
            "some-model",
            "tool_use",
        ),
        (
            gemini.parse_reply(GEMINI),
            AssistantMessage(
                [ReasoningPart(text="hm"), TextPart("Yes.")], tool_calls=[ToolCall("function:look", "look", CALLED)]
            ),
            "some-model",
            "STOP",
        ),
        (
            bedrock.parse_reply(BEDROCK),
            AssistantMessage(
                [ReasoningPart(text="hm", signature="s1"), TextPart("Yes.")],
                tool_calls=[ToolCall("tooluse_1", "look", CALLED)],
            ),
            None,
            "tool_use",
        ),
    ],
    ids=["chat", "responses", "anthropic", "gemini", "bedrock"],
)
def test_an_answer_says_its_message_usage_model_and_why_it_ended(
    reply: ParsedReply, message: Message, model: str | None, reason: str
) -> None:
    assert reply.message == message
    assert reply.usage == Usage(input_tokens=61, output_tokens=9)
    assert (reply.model, reply.finish_reason) == (model, reason)


def test_a_reply_is_sent_back_as_it_came_without_what_the_sdk_put_in() -> None:
    (sent,) = openai_chat.render([openai_chat.parse_reply(CHAT).message])
    assert sent == {"role": "assistant", "content": None, "tool_calls": CHAT["choices"][0]["message"]["tool_calls"]}
    items = openai_responses.render([openai_responses.parse_reply(RESPONSES).message])["input"]
    assert items[0] == {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "e1"}
    assert items[1]["content"] == [{"type": "output_text", "text": "Yes.", "annotations": []}]
    assert "namespace" not in items[2]
    question = UserMessage("Why?")
    turns = anthropic.render([question, anthropic.parse_reply(ANTHROPIC).message])["messages"]
    assert turns[1]["content"] == [ANTHROPIC["content"][0], {"type": "text", "text": "Yes."}, ANTHROPIC["content"][2]]
    contents = gemini.render([question, gemini.parse_reply(GEMINI).message])["contents"]
    assert contents[1]["parts"] == [
        {"text": "hm", "thought": True},
        {"text": "Yes."},
        {"function_call": {"name": "look", "args": {"x": None}}, "thought_signature": "AQI="},
    ]
    turns = bedrock.render([question, bedrock.parse_reply(BEDROCK).message])["messages"]
    assert turns[1] == BEDROCK["output"]["message"]


def test_what_the_sdks_make_of_an_answer_reads_the_same() -> None:
    """An SDK's object dumps all that the API did not send as null."""
    from anthropic.types import Message as AnthropicMessage
    from openai.types.chat import ChatCompletion
    from openai.types.responses import Response

    chat = ChatCompletion.construct(**CHAT).model_dump(warnings=False)
    assert openai_chat.parse_reply(chat) == openai_chat.parse_reply(CHAT)
    response = Response.construct(**RESPONSES).model_dump(warnings=False)
    assert openai_responses.parse_reply(response) == openai_responses.parse_reply(RESPONSES)
    message = AnthropicMessage.construct(**ANTHROPIC).model_dump(warnings=False)
    assert anthropic.parse_reply(message) == anthropic.parse_reply(ANTHROPIC)
    question = UserMessage("Why?")
    for found in (message, ANTHROPIC):
        turns = anthropic.render([question, anthropic.parse_reply(found).message])["messages"]
        assert turns[1]["content"][1] == {"type": "text", "text": "Yes."}


SILENT: list[tuple[Any, dict[str, Any], str]] = [
    (openai_chat, {"choices": [{"message": {"role": "assistant", "content": None}}]}, "openai-chat"),
    (openai_responses, {"output": []}, "openai-responses"),
    (openai_responses, {"output": [{"type": "reasoning", "id": "rs_1", "summary": []}]}, "openai-responses"),
    (anthropic, {"content": []}, "anthropic"),
    (gemini, {"candidates": [{"finishReason": "SAFETY"}]}, "gemini"),
    (bedrock, {"output": {"message": {"role": "assistant", "content": []}}}, "bedrock"),
]


@pytest.mark.parametrize(("format_", "data", "provider"), SILENT)
def test_an_answer_that_says_nothing_breaks_nothing_when_it_is_sent_back(
    format_: Any, data: dict[str, Any], provider: str
) -> None:
    message = format_.parse_reply(data).message
    assert message.text == ""
    rendered = format_.render([UserMessage("Hi."), message, UserMessage("Hello?")])
    request = {"messages": rendered} if provider == "openai-chat" else rendered
    assert [found for found in problems(request, provider) if found.level is ProblemLevel.ERROR] == []


def test_speech_is_kept_and_its_transcript_is_the_text() -> None:
    audio = {"id": "audio_1", "data": "AAEC", "expires_at": 1, "transcript": "Yes."}
    reply = openai_chat.parse_reply({"choices": [{"message": {"role": "assistant", "content": None, "audio": audio}}]})
    assert reply.message.parts == (TextPart("Yes."), MediaPart(media_type="audio/*", data=b"\x00\x01\x02"))


def test_an_unfinished_response_says_why() -> None:
    data = {"output": [], "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    assert openai_responses.parse_reply(data).finish_reason == "max_output_tokens"


ANSWERS: list[tuple[Any, dict[str, Any]]] = [
    (openai_chat, CHAT),
    (openai_responses, RESPONSES),
    (anthropic, ANTHROPIC),
    (gemini, GEMINI),
    (bedrock, BEDROCK),
]


@given(st.sampled_from(ANSWERS), st.data())
def test_a_wrong_value_in_an_answer_is_named_by_its_path_or_means_nothing(
    answer: tuple[Any, dict[str, Any]], data: st.DataObject
) -> None:
    format_, whole = answer
    path = data.draw(st.sampled_from(list(paths(whole))))
    changed = put(whole, path, data.draw(json_values)) if data.draw(st.booleans()) else without(whole, path)
    try:
        format_.parse_reply(changed)
    except InvalidValueError as error:
        fault = str(error)
    else:
        return
    place = fault.split(" ", 1)[0].rstrip(":").split("['")[0].removeprefix("reply").removeprefix(".")
    # Gemini's keys may be spelled in either case.
    at, place = written(path).replace("_", "").lower(), place.replace("_", "").lower()
    assert at.startswith(place) or place.startswith(at), fault


@pytest.mark.parametrize(("format_", "whole"), ANSWERS)
def test_an_answer_that_is_nested_too_deep_raises_nothing_else(format_: Any, whole: dict[str, Any]) -> None:
    deep: Any = "x"
    for _ in range(10_000):
        deep = [deep]
    for path in paths(whole):
        # What is not looked at means nothing, however deep it is.
        with contextlib.suppress(InvalidValueError):
            format_.parse_reply(put(whole, path, deep))


@pytest.mark.parametrize(
    ("format_", "data", "problem"),
    [
        (openai_chat, {"choices": []}, "reply.choices is empty"),
        (openai_chat, {"error": {"message": "no"}}, "reply has no 'choices'"),
        (openai_responses, {"output": [{"role": "user", "content": "x"}]}, r"reply.output\[0\].role is 'user'"),
        (anthropic, {"content": {}}, "reply.content must be an array"),
        (
            anthropic,
            {"content": [], "usage": {"input_tokens": "5"}},
            "reply.usage.input_tokens must be an integer or null",
        ),
        (gemini, {"candidates": []}, "reply.candidates is empty"),
        (bedrock, {"output": {}}, "reply.output has no 'message'"),
    ],
)
def test_what_is_no_answer_is_said_with_its_place(format_: Any, data: Any, problem: str) -> None:
    with pytest.raises(InvalidValueError, match=f"^{problem}"):
        format_.parse_reply(data)
