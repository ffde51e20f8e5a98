"""Calls, results and instructions on their way to another provider (P-1)."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.conftest import ROOT
from tests.formats import looking
from tests.formats.samples import PROVIDERS
from turnlog import (
    AssistantMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from turnlog.formats import ProblemLevel, Request, losses, parse_request, problems, render_request


def test_of_several_results_the_last_one_is_sent_to_another_provider() -> None:
    """H-6: and the one before it is named."""
    request = Request(
        messages=(
            UserMessage("Look."),
            AssistantMessage(tool_calls=(ToolCall("c", "look"),)),
            ToolMessage((ToolResult("c", "5"),)),
            UserMessage("Well?"),
            ToolMessage((ToolResult("c", "6"),)),
        ),
        provider="openai-responses",
    )
    rendered = render_request(request, "anthropic")
    assert [result.text for result in looking.results(rendered, "anthropic")] == ["6"]
    assert [(loss.place, loss.why) for loss in losses(request, "anthropic")] == [
        ("messages[2].results[0]", "a later one follows")
    ]


def test_an_unanswered_call_and_a_lonely_result_become_text_for_another_provider() -> None:
    """B137: a call that nobody answered is no call for the next model."""
    request = Request(
        messages=(
            UserMessage("Look."),
            AssistantMessage(tool_calls=(ToolCall("a", "look", '{"x":1}'), ToolCall("b", "find", "{}"))),
            ToolMessage((ToolResult("b", "5"),)),
            ToolMessage((ToolResult("c", "7"),)),
        ),
        provider="openai-chat",
    )
    rendered = render_request(request, "anthropic")
    assert rendered["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": '(Called look with {"x":1}; there is no result.)'},
                {"type": "tool_use", "id": "b", "name": "find", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "b", "content": "5"},
                {"type": "text", "text": "(Result of call c:)"},
                {"type": "text", "text": "7"},
            ],
        },
    ]
    assert [loss.place for loss in losses(request, "anthropic")] == [
        "messages[1].tool_calls[0]",
        "messages[3].results[0]",
    ]


def test_results_that_came_late_are_put_behind_their_calls_for_another_provider() -> None:
    late = Request(
        messages=(
            UserMessage("Look."),
            AssistantMessage(tool_calls=(ToolCall("a", "look"),)),
            UserMessage("Hurry."),
            ToolMessage((ToolResult("a", "5"),)),
        ),
        provider="openai-responses",
    )
    rendered = render_request(late, "openai-chat")
    assert [message["role"] for message in rendered["messages"]] == ["user", "assistant", "tool", "user"]
    assert [item.get("type", "message") for item in render_request(late)["input"]] == [
        "message",
        "function_call",
        "message",
        "function_call_output",
    ]


def test_arguments_that_are_no_object_are_wrapped_and_named() -> None:
    request = Request(
        messages=(
            UserMessage("Look."),
            AssistantMessage(tool_calls=(ToolCall("a", "look", '{"x": '), ToolCall("b", "look", "[1]"))),
            ToolMessage((ToolResult("a", "?"), ToolResult("b", "?"))),
        ),
        provider="openai-chat",
    )
    for provider in ("anthropic", "gemini", "bedrock"):
        arguments = [call.arguments for call in looking.calls(render_request(request, provider), provider)]
        assert arguments == ['{"arguments": "{\\"x\\": "}', '{"arguments": "[1]"}']
        places = [loss.place for loss in losses(request, provider)]
        assert places == ["messages[1].tool_calls[0].arguments", "messages[1].tool_calls[1].arguments"]
    assert [call["function"]["arguments"] for call in render_request(request)["messages"][1]["tool_calls"]] == [
        '{"x": ',
        "[1]",
    ]


def test_system_messages_stand_where_each_provider_has_them() -> None:
    """B135: a later one is neither lost nor sent where it is refused."""
    request = Request(
        messages=(SystemMessage("Be brief."), UserMessage("Hi."), SystemMessage("Be kind."), UserMessage("So?")),
        provider="openai-chat",
    )
    assert render_request(request, "anthropic") == {
        "system": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi."}, {"type": "text", "text": "So?"}]}],
    }
    assert render_request(request, "gemini")["systemInstruction"] == {
        "parts": [{"text": "Be brief."}, {"text": "Be kind."}]
    }
    assert render_request(request, "bedrock")["system"] == [{"text": "Be brief."}, {"text": "Be kind."}]
    assert render_request(request, "openai-responses") == {
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "Hi."},
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "So?"},
        ],
    }


@pytest.mark.parametrize("provider", PROVIDERS)
def test_real_conversations_go_on_with_any_provider(provider: str) -> None:
    """Nearly all have calls; 27 of them use an id twice."""
    with gzip.open(ROOT / "tests" / "data" / "conversations.jsonl.gz", "rt", encoding="utf-8") as lines:
        conversations = [json.loads(line) for line in lines]
    seen = 0
    for conversation in conversations:
        request = parse_request({"messages": conversation["messages"]}, "openai-chat")
        rendered = render_request(request, provider)
        assert [found for found in problems(rendered, provider) if found.level is ProblemLevel.ERROR] == []
        asked, answered = looking.calls(rendered, provider), looking.results(rendered, provider)
        assert [call.id for call in asked] == [result.id for result in answered]
        wanted = looking.results({"messages": conversation["messages"]}, "openai-chat")
        assert [result.text for result in answered] == [result.text for result in wanted]
        seen += len(asked)
    assert seen > 500
