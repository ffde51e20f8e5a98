"""Whole requests: to the same provider nothing is lost, to another one nothing that is not named (P-1)."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.formats import looking
from tests.formats.samples import PROVIDERS, accepted
from turnlog import (
    AssistantMessage,
    InvalidValueError,
    MediaPart,
    Message,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UnstorableError,
    UserMessage,
)
from turnlog.formats import ProblemLevel, Request, ToolSpec, losses, parse_request, problems, render_request
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


def test_of_several_results_the_last_one_is_sent_to_another_provider() -> None:
    """H-6: and the one before it is named."""
    request = Request(
        messages=(*steps_with(["c"]), UserMessage("Well?"), ToolMessage((ToolResult("c", "6"),))),
        provider="openai-responses",
    )
    rendered = render_request(request, "anthropic")
    assert [result.text for result in looking.results(rendered, "anthropic")] == ["6"]
    assert [(loss.place, loss.why) for loss in losses(request, "anthropic")] == [
        ("messages[2].results[0]", "a later one follows")
    ]


def test_a_request_shows_what_it_is_and_not_megabytes() -> None:
    request = Request(messages=(UserMessage("x" * 10_000),), provider="openai-chat", rest={"model": "m" * 1_000})
    assert repr(request) == "Request('openai-chat', 1 messages, 0 tools, beside model)"


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


def test_a_system_instruction_in_snake_case_comes_back_so() -> None:
    data = {
        "system_instruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "Hi."}]}],
    }
    request = parse_request(data, "gemini")
    assert request.messages[0] == SystemMessage("Be brief.")
    assert render_request(request) == data


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
    rendered = render_request(request, "bedrock")
    assert [tool["toolSpec"]["name"] for tool in rendered["toolConfig"]["tools"]] == ["look"]
    assert "toolConfig" not in render_request(request.replace(provider="bedrock"))


def test_a_request_is_the_callers_own() -> None:
    data: dict[str, Any] = {"messages": [{"role": "user", "content": "hi", "x": {"y": 1}}], "metadata": {"a": 1}}
    request = parse_request(data, "openai-chat")
    data["metadata"]["a"] = 2
    rendered = render_request(request)
    assert rendered["metadata"] == {"a": 1}
    rendered["messages"][0]["x"]["y"] = 2
    assert render_request(request)["messages"][0]["x"] == {"y": 1}


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
