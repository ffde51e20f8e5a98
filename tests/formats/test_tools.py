"""Definitions of tools, from and to each provider (P-1)."""

from __future__ import annotations

import pytest

from tests.formats.samples import PROVIDERS
from turnlog import (
    AssistantMessage,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from turnlog.formats import Request, ToolSpec, losses, parse_request, render_request

TOOL = ToolSpec("look", "Looks.", {"type": "object", "properties": {"x": {"type": "integer"}}})


@pytest.mark.parametrize("provider", PROVIDERS)
def test_tools_come_back_and_go_to_any_provider(provider: str) -> None:
    request = Request(messages=(UserMessage("Hi."),), provider=provider, tools=(TOOL,))
    data = render_request(request)
    assert parse_request(data, provider) == request
    for target in PROVIDERS:
        assert parse_request(render_request(request, target), target).tools == (TOOL,)


def test_what_tools_say_more_is_kept_for_their_provider_and_named_for_others() -> None:
    tools = [
        {"name": "look", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}},
        {"type": "web_search_20250305", "name": "web_search"},
    ]
    data = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi."}], "tools": tools}
    request = parse_request(data, "anthropic")
    assert request.tools == (ToolSpec("look", "", {"type": "object"}),)
    assert render_request(request) == data
    assert [(loss.place, loss.what) for loss in losses(request, "gemini")] == [
        ("rest.model", "model"),
        ("rest.max_tokens", "max_tokens"),
        ("rest.tools[0]", "options of a tool"),
        ("rest.tools[1]", "web_search_20250305"),
    ]
    other = request.replace(tools=(TOOL,))
    assert [tool["name"] for tool in render_request(other)["tools"]] == ["look", "web_search"]
    assert render_request(request.replace(tools=()))["tools"] == [tools[1]]


def test_a_tool_is_defined_for_each_name_that_is_called_where_a_provider_wants_that() -> None:
    request = Request(
        messages=(
            UserMessage("Look."),
            AssistantMessage(tool_calls=(ToolCall("a", "look"),)),
            ToolMessage((ToolResult("a", "5"),)),
        ),
        provider="openai-chat",
    )
    for rendered in (render_request(request, "bedrock"), render_request(request.replace(provider="bedrock"))):
        assert [tool["toolSpec"]["name"] for tool in rendered["toolConfig"]["tools"]] == ["look"]
    own = request.replace(tools=(TOOL,))
    assert render_request(own, "bedrock")["toolConfig"]["tools"][0]["toolSpec"]["description"] == "Looks."
