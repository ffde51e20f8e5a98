"""Ids of calls as each provider takes them: the same for a call and its result, others for other calls (P-1)."""

from __future__ import annotations

import pytest

from tests.formats import looking
from tests.formats.samples import PROVIDERS
from turnlog import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from turnlog.formats import ProblemLevel, Request, parse_request, problems, render_request

LONG = "call_" + "x" * 60


ODD = "functions.look:0"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_ids_are_made_acceptable_the_same_for_call_and_result_and_different_for_different_calls(provider: str) -> None:
    ids = [LONG, LONG + "y", ODD, "functions_look_0", "", "é", "ok"]
    request = Request(
        messages=(
            UserMessage("Look."),
            AssistantMessage(tool_calls=tuple(ToolCall(id_, "look", "{}") for id_ in ids)),
            *(ToolMessage((ToolResult(id_, f"result {index}"),)) for index, id_ in enumerate(ids)),
            UserMessage("Again."),
            AssistantMessage(tool_calls=(ToolCall(ODD, "look", "{}"),)),
            ToolMessage((ToolResult(ODD, "again"),)),
        ),
        provider="openai-chat" if provider != "openai-chat" else "gemini",
    )
    rendered = render_request(request, provider)
    asked, answered = looking.calls(rendered, provider), looking.results(rendered, provider)
    assert [call.id for call in asked] == [result.id for result in answered]
    assert [result.text for result in answered] == [f"result {index}" for index in range(7)] + ["again"]
    assert len({call.id for call in asked[:7]}) == 7
    assert asked[6].id == "ok"
    assert [found for found in problems(rendered, provider) if found.level is ProblemLevel.ERROR] == []


def steps_with(ids: list[str]) -> tuple[Message, ...]:
    """A question, and a step for each id."""
    made: list[Message] = [UserMessage("Look.")]
    for id_ in ids:
        made += (AssistantMessage(tool_calls=(ToolCall(id_, "look"),)), ToolMessage((ToolResult(id_, "5"),)))
    return tuple(made)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_conversation_that_goes_on_keeps_the_same_beginning(provider: str) -> None:
    """What providers cache is the beginning of a request."""
    ids = [ODD, LONG, "ok", ODD, "fine", LONG + "y"]
    source = "gemini" if provider != "gemini" else "openai-chat"
    whole = render_request(Request(messages=steps_with(ids), provider=source), provider)
    for count in range(1, len(ids)):
        part = render_request(Request(messages=steps_with(ids[:count]), provider=source), provider)
        asked = looking.calls(part, provider)
        assert asked == looking.calls(whole, provider)[:count]


def test_an_id_that_stands_in_for_another_is_nobody_elses() -> None:
    (odd,) = looking.calls(
        render_request(Request(messages=steps_with([ODD]), provider="gemini"), "anthropic"), "anthropic"
    )
    for ids in ([odd.id, ODD, odd.id], [ODD, odd.id, ODD]):
        request = Request(messages=steps_with(ids), provider="gemini")
        sent = [call.id for call in looking.calls(render_request(request, "anthropic"), "anthropic")]
        assert sent[0] == sent[2] != sent[1]
        assert odd.id in sent


@pytest.mark.parametrize("provider", PROVIDERS)
def test_two_calls_of_one_id_in_one_message_are_told_apart_and_answered_in_order(provider: str) -> None:
    twice = (ToolCall("c", "look", '{"x":1}'), ToolCall("c", "look", '{"x":2}'))
    results = (ToolResult("c", "one"), ToolResult("c", "two"))
    request = Request(
        messages=(UserMessage("Look."), AssistantMessage(tool_calls=twice), ToolMessage(results)),
        provider="gemini" if provider != "gemini" else "openai-chat",
    )
    for rendered in (render_request(request, provider), render_request(request.replace(provider=provider))):
        asked, answered = looking.calls(rendered, provider), looking.results(rendered, provider)
        assert len({call.id for call in asked}) == 2
        assert [result.id for result in answered] == [call.id for call in asked]
        assert [result.text for result in answered] == ["one", "two"]


def test_a_result_that_a_provider_sent_follows_a_call_whose_id_was_replaced() -> None:
    """The call was made here, so its id is; the original of its result has another one, and stays behind."""
    data = {
        "messages": [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": [{"type": "tool_use", "id": ODD, "name": "look", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": ODD, "content": "5"}]},
        ]
    }
    request = parse_request(data, "anthropic")
    assert render_request(request) == data
    mine = AssistantMessage("Let me look.", tool_calls=(ToolCall(ODD, "look"),))
    rendered = render_request(request.replace(messages=(request.messages[0], mine, request.messages[2])))
    (asked,), (answered,) = looking.calls(rendered, "anthropic"), looking.results(rendered, "anthropic")
    assert asked.id == answered.id != ODD


def test_a_call_id_that_is_used_again_is_another_call_where_ids_are_unique() -> None:
    """Models use ids again in a later reply; OpenAI's Responses API tells calls apart by them."""
    request = Request(messages=steps_with(["c", "c", "c"]), provider="openai-chat")
    rendered = render_request(request, "openai-responses")
    ids = [call.id for call in looking.calls(rendered, "openai-responses")]
    assert len(set(ids)) == 3
    assert ids[0] == "c"
    assert [result.id for result in looking.results(rendered, "openai-responses")] == ids
    chat = render_request(request)
    assert [call.id for call in looking.calls(chat, "openai-chat")] == ["c", "c", "c"]
