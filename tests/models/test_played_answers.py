"""H-1: what providers say beside text and calls is kept, counted, and handed back as it came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tests.models.playing_server import PlayingServer
from tests.models.providers import PROVIDERS, WAYS, Answer, Chat, Provider, Way, asked, each_way
from turnlog import ReasoningPart, ToolCall, ToolMessage, ToolResult, UserMessage
from turnlog.chat import tool
from turnlog.errors import InvalidReplyError
from turnlog.formats import ProblemLevel, ToolSpec, problems
from turnlog.models import Prompt, Reply, Usage

CHAT, RESPONSES, ANTHROPIC = PROVIDERS
TOOLS = (ToolSpec("weather", "", {"type": "object", "properties": {"city": {"type": "string"}}}),)
ASKED = UserMessage("The weather in Oslo?")


class Played(Struct, frozen=True):
    """An answer that thinks, says something, and calls a tool: in one piece, as a stream, and as it is handed back."""

    provider: Provider
    whole: dict[str, Any]
    stream: list[Any]
    handed_back: list[dict[str, Any]]
    finish_reason: str
    has_visible_reasoning: bool = True

    def answer(self, way: Way) -> Any:
        return self.stream if way.is_streamed else self.whole


def _chat() -> Played:
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    message = {"role": "assistant", "content": "Let me look.", "reasoning_content": "Hm, Oslo.", "tool_calls": [call]}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    head = {"id": "c1", "created": 1, "model": "deepseek-reasoner"}
    chunk = head | {"object": "chat.completion.chunk"}

    def piece(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return chunk | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    named = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather", "arguments": ""}}
    stream: list[Any] = [
        piece({"role": "assistant", "content": None, "reasoning_content": "Hm, "}),
        piece({"reasoning_content": "Oslo."}),
        piece({"content": "Let me "}),
        piece({"content": "look."}),
        piece({"tool_calls": [named]}),
        piece({"tool_calls": [{"index": 0, "function": {"arguments": '{"city": '}}]}),
        piece({"tool_calls": [{"index": 0, "function": {"arguments": '"Oslo"}'}}]}),
        piece({}, "tool_calls"),
        chunk | {"choices": [], "usage": usage},
        "[DONE]",
    ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    whole = head | {"object": "chat.completion", "choices": [choice], "usage": usage}
    return Played(CHAT, whole, stream, [message], "tool_calls")


def _responses() -> Played:
    thought = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Hm, Oslo."}],
        "encrypted_content": "gAAAA=",
    }
    said = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}],
    }
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "weather",
        "arguments": '{"city": "Oslo"}',
        "status": "completed",
    }
    output: list[dict[str, Any]] = [thought, said, call]
    usage = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
    whole: dict[str, Any] = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-5",
        "status": "completed",
        "output": output,
        "usage": usage,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    begun: dict[str, Any] = {**whole, "status": "in_progress", "output": [], "usage": None}
    at = {"output_index": 1, "item_id": "msg_1", "content_index": 0, "logprobs": []}
    thinking = {"type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "output_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": thought | {"summary": []}},
        thinking | {"summary_index": 0, "delta": "Hm, "},
        thinking | {"summary_index": 0, "delta": "Oslo."},
        {"type": "response.output_item.done", "output_index": 0, "item": thought},
        {"type": "response.output_item.added", "output_index": 1, "item": said | {"content": []}},
        {"type": "response.output_text.delta", "delta": "Let me ", **at},
        {"type": "response.output_text.delta", "delta": "look.", **at},
        {"type": "response.output_item.done", "output_index": 1, "item": said},
        {"type": "response.output_item.done", "output_index": 2, "item": call},
        {"type": "response.completed", "response": whole},
    ]
    stream = [event | {"sequence_number": number} for number, event in enumerate(events)]
    return Played(RESPONSES, whole, stream, output, "completed")


def _anthropic() -> Played:
    thought = {"type": "thinking", "thinking": "Hm, Oslo.", "signature": "EqQBCgIYAhIM"}
    hidden = {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix"}
    said = {"type": "text", "text": "Let me look."}
    call = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}}
    content = [thought, hidden, said, call]
    head: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-1"}
    usage = {"input_tokens": 5, "cache_read_input_tokens": 6, "output_tokens": 7}
    whole = head | {"content": content, "stop_reason": "tool_use", "usage": usage}

    def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {"type": "content_block_start", "index": index, "content_block": start},
            *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
            {"type": "content_block_stop", "index": index},
        ]

    begun = head | {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}
    stream = [
        {"type": "message_start", "message": begun},
        *block(
            0,
            thought | {"thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "Hm, "},
            {"type": "thinking_delta", "thinking": "Oslo."},
            {"type": "signature_delta", "signature": "EqQBCgIYAhIM"},
        ),
        *block(1, hidden),
        {"type": "ping"},
        *block(
            2,
            {"type": "text", "text": ""},
            {"type": "text_delta", "text": "Let me "},
            {"type": "text_delta", "text": "look."},
        ),
        *block(
            3,
            call | {"input": {}},
            {"type": "input_json_delta", "partial_json": '{"city": '},
            {"type": "input_json_delta", "partial_json": '"Oslo"}'},
        ),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]
    return Played(ANTHROPIC, whole, stream, [{"role": "assistant", "content": content}], "tool_use")


PLAYED = (_chat(), _responses(), _anthropic())

each_played = pytest.mark.parametrize("played", PLAYED, ids=lambda played: played.provider.form)


def ask(playing: PlayingServer, provider: Provider, way: Way, *prompts: Prompt, **model: Any) -> list[Answer]:
    """The answers to the prompts, one after the other."""
    url = playing.url if provider is ANTHROPIC else f"{playing.url}/v1"
    with asked(provider, way, base_url=url, api_key="k", **model) as question:
        return [question(prompt) for prompt in prompts]


@each_played
@each_way
def test_reasoning_is_kept_and_handed_back_untouched(played: Played, way: Way, playing: PlayingServer) -> None:
    playing.play(played.answer(way), played.answer(way))
    (answer,) = ask(playing, played.provider, way, Prompt(messages=(ASKED,), tools=TOOLS))
    message = answer.said.message
    result = ToolMessage((ToolResult(message.tool_calls[0].id, "rain"),))
    ask(playing, played.provider, way, Prompt(messages=(ASKED, message, result), tools=TOOLS))

    sent = playing.bodies[-1]
    items = sent.get("messages") or sent["input"]
    assert items[1 : 1 + len(played.handed_back)] == played.handed_back
    assert [each for each in problems(sent, played.provider.form) if each.level is ProblemLevel.ERROR] == []


def weather(city: str) -> str:
    """The weather."""
    return f"{city}: rain"


@each_played
@each_way
def test_reasoning_comes_back_from_the_store_untouched(
    played: Played, way: Way, playing: PlayingServer, tmp_path: Path
) -> None:
    """V-1: a later turn, in another process as far as the store knows, is sent what the provider sent."""
    url = playing.url if played.provider is ANTHROPIC else f"{playing.url}/v1"
    talk = Chat(played.provider, way, f"sqlite:{tmp_path}/chat.db", base_url=url, api_key="k")
    playing.play(played.answer(way), played.answer(way))
    tools = [tool(weather, return_direct=True)]
    talk.say("The weather in Oslo?", tools)
    talk.say("And now?", tools)

    sent = playing.bodies[-1]
    items = sent.get("messages") or sent["input"]
    assert items[1 : 1 + len(played.handed_back)] == played.handed_back
    assert [each for each in problems(sent, played.provider.form) if each.level is ProblemLevel.ERROR] == []


@each_played
@each_way
def test_a_reply_says_what_the_provider_reported(played: Played, way: Way, playing: PlayingServer) -> None:
    playing.play(played.answer(way))
    (answer,) = ask(playing, played.provider, way, Prompt(messages=(ASKED,), tools=TOOLS))
    reply = answer.said
    assert isinstance(reply, Reply)
    assert reply.usage == Usage(11, 7)
    assert reply.model == played.whole["model"]
    assert reply.finish_reason == played.finish_reason
    assert reply.message.text == "Let me look."
    assert [(call.name, call.arguments.replace(" ", "")) for call in reply.message.tool_calls] == [
        ("weather", '{"city":"Oslo"}')
    ]
    thoughts = [part for part in reply.message.parts if isinstance(part, ReasoningPart)]
    assert thoughts[0].text == "Hm, Oslo."


@each_played
@pytest.mark.parametrize("way", [way for way in WAYS if way.is_streamed], ids=str)
def test_a_stream_gives_the_reply_that_the_whole_answer_gives(played: Played, way: Way, playing: PlayingServer) -> None:
    playing.play(played.stream, played.whole)
    (streamed,) = ask(playing, played.provider, way, Prompt(messages=(ASKED,), tools=TOOLS))
    (whole,) = ask(playing, played.provider, Way(way.is_async, is_streamed=False), Prompt(messages=(ASKED,)))
    assert streamed.said == whole.said
    assert streamed.said.message.native == whole.said.message.native
    assert (streamed.text, streamed.reasoning) == ("Let me look.", "Hm, Oslo.")


#: Words of the APIs, and what services send in their place that keep to them less strictly.
ODD = {
    '"finish_reason": "tool_calls"': '"finish_reason": "eos"',
    '"stop_reason": "tool_use"': '"stop_reason": "eos"',
    '"status": "completed"': '"status": "done"',
}


@each_played
@each_way
def test_words_that_the_sdk_does_not_know_are_no_failure(played: Played, way: Way, playing: PlayingServer) -> None:
    """Warnings are errors here, and SDKs could warn of values that their types lack."""
    answer = json.dumps(played.answer(way))
    for word, odd in ODD.items():
        answer = answer.replace(word, odd)
    playing.play(json.loads(answer))
    (reply,) = ask(playing, played.provider, way, Prompt(messages=(ASKED,), tools=TOOLS))
    assert reply.said.message.text == "Let me look."
    assert reply.said.finish_reason in {"eos", "done"}


def _calls(*pieces: dict[str, Any]) -> list[Any]:
    """A stream of pieces of calls, each with its arguments."""
    head = {"id": "c1", "created": 1, "model": "m", "object": "chat.completion.chunk"}
    deltas: list[dict[str, Any]] = [{"tool_calls": [piece]} for piece in pieces]
    chunks = [head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    last = head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    return [*chunks, last, "[DONE]"]


def _piece(arguments: str, name: str | None = None, **fields: Any) -> dict[str, Any]:
    function = {"arguments": arguments} | ({} if name is None else {"name": name})
    return fields | {"function": function}


@pytest.mark.parametrize("way", [way for way in WAYS if way.is_streamed], ids=str)
@pytest.mark.parametrize(
    "stream",
    [
        _calls(
            _piece("{", "f", index=0, id="a"),
            _piece("}", index=0),
            _piece("{", "g", index=1, id="b"),
            _piece("}", index=1),
        ),
        _calls(_piece("{}", "f", id="a"), _piece("{}", "g", id="b")),
        _calls(_piece("{", "f", id="a"), _piece("}"), _piece("{}", "g", id="b")),
        _calls(
            _piece("{", "f", index=0, id="a"),
            _piece("}", index=0),
            _piece("{", "g", index=0, id="b"),
            _piece("}", index=0, id=""),
        ),
        _calls(
            _piece("{", "f", index=0, id="a"),
            _piece("{", "g", index=1, id="b"),
            _piece("}", index=1, id="b"),
            _piece("}", index=0, id="a"),
        ),
    ],
    ids=["as documented", "no numbers", "pieces without numbers", "the same number", "ids in each piece"],
)
def test_parallel_calls_are_told_apart_however_a_service_numbers_them(
    stream: list[Any], way: Way, playing: PlayingServer
) -> None:
    playing.play(stream)
    (answer,) = ask(playing, CHAT, way, Prompt(messages=(ASKED,), tools=TOOLS))
    assert answer.said.message.tool_calls == (ToolCall("a", "f", "{}"), ToolCall("b", "g", "{}"))


@each_way
@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded", "refusal"])
def test_a_call_that_is_cut_off_is_not_run(reason: str, way: Way, playing: PlayingServer) -> None:
    """Anthropic's SDK completes broken JSON: half of the input would look whole."""
    played = PLAYED[2]
    whole = played.whole | {"stop_reason": reason}
    stream = [
        event | {"delta": {"stop_reason": reason}} if event["type"] == "message_delta" else event
        for event in played.stream
    ]
    playing.play(stream if way.is_streamed else whole)
    with pytest.raises(InvalidReplyError, match="cut off in the middle of a tool call"):
        ask(playing, ANTHROPIC, way, Prompt(messages=(ASKED,), tools=TOOLS))


@each_way
@pytest.mark.parametrize("arguments", ["", '{"city": '])
@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_call_whose_arguments_have_not_all_come_is_not_run(
    reason: str, arguments: str, way: Way, playing: PlayingServer
) -> None:
    """Blank arguments would be those of a function without parameters."""
    called = {"name": "weather", "arguments": arguments}
    call = {"index": 0, "id": "call_1", "type": "function", "function": called}
    choice = {"index": 0, "finish_reason": reason}
    said = {"role": "assistant", "tool_calls": [call]}
    head = {"id": "c1", "created": 1, "model": "m"}
    whole = head | {"object": "chat.completion", "choices": [choice | {"message": said}]}
    playing.play([head | {"choices": [choice | {"delta": said}]}, "[DONE]"] if way.is_streamed else whole)
    with pytest.raises(InvalidReplyError, match="cut off in the middle of a tool call"):
        ask(playing, CHAT, way, Prompt(messages=(ASKED,), tools=TOOLS))

    bound = {"length": "max_output_tokens"}.get(reason, reason)
    output = [PLAYED[1].whole["output"][-1] | {"arguments": arguments, "status": "incomplete"}]
    details = {"status": "incomplete", "incomplete_details": {"reason": bound}, "output": output}
    response = PLAYED[1].whole | details
    last = {"type": "response.incomplete", "response": response, "sequence_number": 0}
    playing.play([last] if way.is_streamed else response)
    with pytest.raises(InvalidReplyError, match=bound):
        ask(playing, RESPONSES, way, Prompt(messages=(ASKED,), tools=TOOLS))


@each_way
@pytest.mark.parametrize("status", ["failed", "incomplete"])
def test_a_response_that_failed_is_no_reply_and_one_that_was_cut_short_says_so(
    way: Way, status: str, playing: PlayingServer
) -> None:
    details = {"error": {"code": "server_error", "message": "out of luck"}, "incomplete_details": None}
    if status == "incomplete":
        details = {"error": None, "incomplete_details": {"reason": "max_output_tokens"}}
    whole = PLAYED[1].whole | {"status": status} | details
    last = {"type": f"response.{status}", "response": whole, "sequence_number": 99}
    playing.play([*PLAYED[1].stream[:-1], last] if way.is_streamed else whole)
    prompt = Prompt(messages=(ASKED,), tools=TOOLS)
    if status == "incomplete":
        (answer,) = ask(playing, RESPONSES, way, prompt)
        assert answer.said.finish_reason == "max_output_tokens"
        return
    with pytest.raises(InvalidReplyError, match="out of luck"):
        ask(playing, RESPONSES, way, prompt)
