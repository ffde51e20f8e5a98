"""Whole requests: to the same provider nothing is lost, to another one nothing that is not named (P-1)."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.formats import looking
from tests.formats.recorded import recorded
from tests.formats.rules.providers import provider_of
from tests.formats.samples import PROVIDERS, accepted
from turnlog import (
    AssistantMessage,
    InvalidValueError,
    MediaPart,
    Message,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolMessage,
    ToolResult,
    UnstorableError,
    UserMessage,
)
from turnlog.formats import ProblemLevel, Request, losses, parse_request, problems, render_request
from turnlog.log.codec import decode_body, encode_body
from turnlog.log.events import SessionEvent

CROSSINGS = [(source, target) for source in PROVIDERS for target in PROVIDERS if source != target]


def of(provider: str) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((recorded.name, recorded.request) for recorded, whose in accepted() if whose == provider)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_accepted_request_comes_back_as_it_was(provider: str) -> None:
    seen = 0
    for name, data in of(provider):
        request = parse_request(data, provider)
        assert render_request(request) == data, name
        assert losses(request) == [], name
        seen += 1
    assert seen > 200


def test_every_refused_request_comes_back_too_or_breaks_a_rule() -> None:
    """Most were refused for something else than their messages."""
    refused = [(found, provider_of(found)) for found in recorded() if not found.is_accepted]
    for found, provider in refused:
        rendered = render_request(parse_request(found.request, provider))
        broken = [problem for problem in problems(found.request, provider) if problem.level is ProblemLevel.ERROR]
        assert rendered == found.request or broken, found.name
    assert len(refused) > 30


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_accepted_request_comes_back_from_a_store(provider: str) -> None:
    for name, data in of(provider):
        request = parse_request(data, provider)
        kept = [
            decode_body(*encode_body(SessionEvent(session_id="s", message=message))).message
            for message in request.messages
        ]
        assert render_request(request.replace(messages=tuple(kept))) == data, name


@pytest.mark.parametrize(("source", "target"), CROSSINGS)
def test_no_accepted_request_breaks_a_rule_at_another_provider(source: str, target: str) -> None:
    for name, data in of(source):
        rendered = render_request(parse_request(data, source), target)
        broken = [found for found in problems(rendered, target) if found.level is ProblemLevel.ERROR]
        assert broken == [], name
        json.dumps(rendered, allow_nan=False)


def _content(message: Message) -> Iterator[Any]:
    if isinstance(message, ToolMessage):
        for result in message.results:
            yield from (result.content,) if isinstance(result.content, str) else result.content or ()
    else:
        yield from message.parts


@pytest.mark.parametrize(("source", "target"), CROSSINGS)
def test_all_that_another_provider_can_carry_arrives_and_the_rest_is_named(source: str, target: str) -> None:
    media = 0
    for name, data in of(source):
        request = parse_request(data, source)
        rendered = render_request(request, target)
        lost = {loss.place: loss for loss in losses(request, target)}
        arrived = list(looking.strings(rendered))
        everything = "\n".join(arrived)
        for index, message in enumerate(request.messages):
            for part in _content(message):
                text = part if isinstance(part, str) else part.text if isinstance(part, TextPart) else None
                if text and not text.isspace():
                    assert text in everything, (name, text)
                if isinstance(part, MediaPart):
                    media += 1
                    is_named = any(place.startswith(f"messages[{index}].") for place in lost)
                    assert is_named or _is_there(part, arrived), name
        assert not any("signature" in found for found in _keys(rendered)), name
    assert media > 5


def _is_there(part: MediaPart, arrived: list[str]) -> bool:
    if part.data is not None:
        # Anthropic takes text as it is.
        said = {b64encode(part.data).decode(), part.data.decode("utf-8", "replace")}
    else:
        said = {str(part.url or part.file_id).rpartition(";base64,")[2]}
    return any(found.rpartition(";base64,")[2] in said for found in arrived)


def _keys(rendered: Any) -> Iterator[str]:
    for fields in looking.objects(rendered):
        for key, value in fields.items():
            # The one that says there is none is not anybody's secret.
            if value != b64encode(b"skip_thought_signature_validator").decode():
                yield key.lower()


@pytest.mark.parametrize(("source", "target"), CROSSINGS)
def test_calls_and_results_arrive_in_pairs(source: str, target: str) -> None:
    seen = 0
    for name, data in of(source):
        request = parse_request(data, source)
        rendered = render_request(request, target)
        named = " ".join(f"{loss.what} {loss.why}" for loss in losses(request, target))
        asked, answered = looking.calls(rendered, target), looking.results(rendered, target)
        assert sorted(call.id for call in asked) == sorted(result.id for result in answered), name
        wanted = Counter(
            (call.name, looking.arguments(call.arguments))
            for message in request.messages
            if isinstance(message, AssistantMessage)
            for call in message.tool_calls
        )
        missing = wanted - Counter((call.name, call.arguments) for call in asked)
        for called, _ in missing:
            assert f"call of {called!r}" in named, name
        seen += len(asked)
    assert seen > 30


def test_a_thought_never_goes_to_a_stranger() -> None:
    """P-1: neither its text nor its signature."""
    data = {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Why?"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "secret-thought", "signature": "secret-signature"},
                    {"type": "redacted_thinking", "data": "secret-data"},
                    {"type": "text", "text": "Because."},
                ],
            },
            {"role": "user", "content": [{"type": "text", "text": "So?"}]},
        ]
    }
    request = parse_request(data, "anthropic")
    assert render_request(request) == data
    for provider in PROVIDERS[:2] + PROVIDERS[3:]:
        assert "secret" not in json.dumps(render_request(request, provider))
        assert [loss.place for loss in losses(request, provider)] == [
            "messages[1].content[0]",
            "messages[1].content[1]",
        ]


def test_a_thought_without_an_owner_goes_nowhere() -> None:
    message = AssistantMessage((ReasoningPart(text="secret", signature="secret"), TextPart("Because.")))
    for provider in PROVIDERS:
        rendered = render_request(Request(messages=(UserMessage("Why?"), message), provider=provider))
        assert "secret" not in json.dumps(rendered)
        assert "Because." in json.dumps(rendered)


def test_a_conversation_goes_on_with_another_provider_and_comes_back() -> None:
    """P-1: what each of them sent goes back to that one as it was."""
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s1"}
    first = parse_request(
        {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Look."}]},
                {
                    "role": "assistant",
                    "content": [thinking, {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "5"}]},
            ]
        },
        "anthropic",
    )
    reply = {
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e1"},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": "{}"},
        ]
    }
    from turnlog.formats import openai_responses

    message = openai_responses.parse_reply(reply).message
    both = first.replace(messages=(*first.messages, message, ToolMessage((ToolResult("call_1", "6"),))))
    back = render_request(both)
    assert back["messages"][1]["content"][0] == thinking
    assert "e1" not in json.dumps(back)
    away = render_request(both, "openai-responses")
    assert reply["output"] == away["input"][3:5]
    assert "s1" not in json.dumps(away)


def test_a_changed_message_is_sent_as_it_is_now_and_the_loss_is_named() -> None:
    data = {
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "secret", "cache_control": {"type": "ephemeral"}}],
            }
        ]
    }
    request = parse_request(data, "anthropic")
    changed = request.replace(messages=(request.messages[0].replace(content="[removed]"),))
    assert render_request(changed) == {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "[removed]"}]}]
    }
    (loss,) = losses(changed)
    assert (loss.place, loss.what) == ("messages[0].content[0].cache_control", "cache_control")


def test_both_halves_of_a_message_say_whose_they_are() -> None:
    """The id of a file stays with its provider, also where the file stood behind a result."""
    data = {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Look."}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t", "content": "5"},
                    {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
                ],
            },
        ]
    }
    request = parse_request(data, "anthropic")
    assert render_request(request) == data
    assert "file_1" not in json.dumps(render_request(request, "openai-responses"))


def test_half_of_a_message_that_became_two_is_sent_alone() -> None:
    """A filter may take the results, or the words behind them."""
    call = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
    turn = {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "5"},
            {"type": "text", "text": "And?", "cache_control": {"type": "ephemeral"}},
        ],
    }
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Go."}]},
        {"role": "assistant", "content": [call]},
    ]
    request = parse_request({"messages": [*messages, turn]}, "anthropic")
    assert [type(message) for message in request.messages[2:]] == [ToolMessage, UserMessage]
    alone = render_request(request.replace(messages=request.messages[:3]))
    assert alone["messages"][2] == {"role": "user", "content": turn["content"][:1]}
    words = render_request(request.replace(messages=(request.messages[3],)))
    assert words["messages"] == [{"role": "user", "content": [{"type": "text", "text": "And?"}]}]


def test_a_request_shows_what_it_is_and_not_megabytes() -> None:
    request = Request(messages=(UserMessage("x" * 10_000),), provider="openai-chat", rest={"model": "m" * 1_000})
    assert repr(request) == "Request('openai-chat', 1 messages, 0 tools, beside model)"


def test_a_system_instruction_in_snake_case_comes_back_so() -> None:
    data = {
        "system_instruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "Hi."}]}],
    }
    request = parse_request(data, "gemini")
    assert request.messages[0] == SystemMessage("Be brief.")
    assert render_request(request) == data


def test_a_request_is_the_callers_own() -> None:
    data: dict[str, Any] = {"messages": [{"role": "user", "content": "hi", "x": {"y": 1}}], "metadata": {"a": 1}}
    data["tools"] = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    request = parse_request(data, "openai-chat")
    data["metadata"]["a"] = 2
    rendered = render_request(request)
    assert rendered["metadata"] == {"a": 1}
    rendered["messages"][0]["x"]["y"] = rendered["metadata"]["a"] = 2
    rendered["tools"][0]["function"]["parameters"]["type"] = "x"
    again = render_request(request)
    assert (again["messages"][0]["x"], again["metadata"]) == ({"y": 1}, {"a": 1})
    assert again["tools"][0]["function"]["parameters"] == {"type": "object"}


@pytest.mark.parametrize(
    ("data", "provider", "problem"),
    [
        ([], "anthropic", "the request must be an object, not an array"),
        ({}, "anthropic", "the request has no 'messages'"),
        ({"messages": {}}, "bedrock", "messages must be an array, not an object"),
        ({"contents": [{"parts": [{"text": 1}]}]}, "gemini", r"contents\[0\].parts\[0\].text must be a string"),
        (
            {"contents": [{"parts": [{"inline_data": {"mime_type": 1, "data": ""}}]}]},
            "gemini",
            r"contents\[0\].parts\[0\].inline_data.mime_type must be a string",
        ),
        ({"input": 5}, "openai-responses", "input must be a string or an array of items, not a number"),
        ({"messages": []}, "openai", "no format is called 'openai': choose one of openai-chat, openai-responses"),
    ],
)
def test_what_is_no_request_is_said_with_its_place(data: Any, provider: str, problem: str) -> None:
    with pytest.raises(InvalidValueError, match=f"^{problem}"):
        parse_request(data, provider)


def test_an_option_that_cannot_be_stored_is_refused_with_its_path() -> None:
    with pytest.raises(UnstorableError, match=r"^temperature: nan"):
        parse_request({"messages": [], "temperature": float("nan")}, "openai-chat")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"messages": "hi"}, "messages must be a sequence, not str"),
        ({"messages": ("hi",)}, r"messages\[0\] must be SystemMessage or UserMessage"),
        ({"tools": ({"name": "x"},)}, r"tools\[0\] must be ToolSpec, not dict"),
        ({"provider": "x"}, "no format is called 'x'"),
        ({"rest": {"a": b""}}, r"rest\['a'\]: bytes is not a JSON value"),
    ],
)
def test_a_wrong_request_is_refused_when_it_is_made(changes: dict[str, Any], problem: str) -> None:
    request = Request(messages=(), provider="openai-chat")
    with pytest.raises(InvalidValueError, match=f"^{problem}"):
        request.replace(**changes)
