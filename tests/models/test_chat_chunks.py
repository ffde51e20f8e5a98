"""H-1: a stream of chat completions gives the reply that the answer in one piece gives, whoever sends it how."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.playing_server import PlayingServer
from tests.models.providers import PROVIDERS, WAYS, Way, asked
from turnlog import ReasoningPart, ToolCall, UserMessage
from turnlog.errors import InvalidReplyError
from turnlog.formats import Usage
from turnlog.formats.openai_chat import parse_reply
from turnlog.models import Delta, Prompt, Reply
from turnlog.models.chat_chunks import ChatAssembly


def chunk(delta: Any = None, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": finish} | ({} if delta is None else {"delta": delta})
    return {"object": "chat.completion.chunk", "model": "m", "choices": [choice]} | fields


def assembled(*chunks: dict[str, Any]) -> tuple[Reply, list[Delta]]:
    """The reply, and what was said on the way to it."""
    assembly = ChatAssembly()
    # As from the wire: nothing is shared between chunks.
    said = [delta for each in json.loads(json.dumps(chunks)) for delta in assembly.add(each)]
    return assembly.reply(), said


def streamed(*deltas: Any) -> Reply:
    return assembled(*map(chunk, deltas), chunk({}, "stop"))[0]


def whole(message: dict[str, Any]) -> Reply:
    parsed = parse_reply({"model": "m", "choices": [{"message": message, "finish_reason": "stop"}]})
    return Reply(message=parsed.message, model=parsed.model, finish_reason="stop")


def is_same(first: Reply, second: Reply) -> bool:
    """Whether what is kept of the provider's own is the same, too."""
    return first == second and first.message.native == second.message.native


def call(name: str = "f", arguments: str = "{}", call_id: str = "a") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


THOUGHT = {"type": "reasoning.text", "text": "Hm, Oslo.", "format": "claude-v1", "index": 0, "signature": "Et8B"}
HIDDEN = {"type": "reasoning.encrypted", "data": "gAAA", "format": "claude-v1", "index": 0, "id": "r1"}


@pytest.mark.parametrize(
    ("deltas", "message"),
    [
        ([{"content": "a", "role": "assistant"}, {"content": "b", "role": "assistant"}], {"content": "ab"}),
        ([{"refusal": "I "}, {"refusal": "won't."}], {"refusal": "I won't."}),
        (
            [
                {"content": "a", "annotations": [{"type": "url_citation", "url": "u"}]},
                {"content": "b", "annotations": [{"type": "url_citation", "url": "v"}]},
            ],
            {
                "content": "ab",
                "annotations": [{"type": "url_citation", "url": "u"}, {"type": "url_citation", "url": "v"}],
            },
        ),
        (
            [
                {"reasoning_details": [THOUGHT | {"text": "Hm, ", "signature": None}]},
                {"reasoning_details": [{"type": "reasoning.text", "text": "Oslo.", "format": "claude-v1", "index": 0}]},
                {"reasoning_details": [{"signature": "Et8B", "format": "claude-v1", "index": 0}, HIDDEN]},
                {"content": "Rain."},
            ],
            {"content": "Rain.", "reasoning_details": [THOUGHT, HIDDEN]},
        ),
        (
            [{"audio": {"id": "x", "transcript": "Ra"}}, {"audio": {"transcript": "in.", "expires_at": 5}}],
            {"audio": {"id": "x", "transcript": "Rain.", "expires_at": 5}},
        ),
        (
            [
                {"content": ""},
                {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm, "}]}]},
                {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Oslo."}]}]},
                {"content": "Ra"},
                {"content": "in."},
            ],
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "Hm, Oslo."}]},
                    {"type": "text", "text": "Rain."},
                ]
            },
        ),
        ([{"function_call": {"name": "f", "arguments": "{"}}, {"function_call": {"arguments": "}"}}],
         {"function_call": {"name": "f", "arguments": "{}"}}),
    ],
    ids=["roles", "refusal", "lists without numbers", "numbered pieces", "speech", "parts", "a function"],
)  # fmt: skip
def test_pieces_are_put_together_to_what_the_whole_answer_says(deltas: list[Any], message: dict[str, Any]) -> None:
    assert is_same(streamed(*deltas), whole(message))


@given(st.text(), st.text(), st.data())
def test_a_text_may_come_in_any_pieces(text: str, thought: str, data: st.DataObject) -> None:
    def cut(value: str) -> list[str]:
        places = sorted(data.draw(st.lists(st.integers(0, len(value)), max_size=4)))
        return [value[start:end] for start, end in zip([0, *places], [*places, len(value)], strict=True)]

    deltas = [{"reasoning_content": piece} for piece in cut(thought)] + [{"content": piece} for piece in cut(text)]
    reply, said = assembled(*map(chunk, deltas), chunk({}, "stop"))
    assert is_same(reply, whole({"content": text, "reasoning_content": thought}))
    assert "".join(delta.text for delta in said) == text
    assert "".join(delta.reasoning for delta in said) == thought


@pytest.mark.parametrize(
    "pieces",
    [
        [call(arguments="{") | {"index": 0}, {"index": 0, "function": {"name": "f", "arguments": "}"}}],
        [call(arguments="{") | {"index": 0}, call(arguments="}") | {"index": 0}],
        [{"index": 0, "id": "a", "function": {"name": "f"}}, {"index": 0, "function": {"arguments": "{}"}}],
    ],
    ids=["the name again", "everything again", "no type"],
)
def test_a_call_has_one_name_however_often_a_service_sends_it(pieces: list[Any]) -> None:
    assert is_same(streamed(*({"tool_calls": [piece]} for piece in pieces)), whole({"tool_calls": [call()]}))
    assert is_same(streamed({"tool_calls": pieces}), whole({"tool_calls": [call()]}))


def test_calls_without_ids_are_told_apart_by_their_numbers_or_names() -> None:
    f, g = {"function": {"name": "f", "arguments": "{"}}, {"function": {"name": "g", "arguments": "{}"}}
    rest = {"function": {"arguments": "}"}}
    for pieces in ([f | {"index": 0}, rest | {"index": 0}, g | {"index": 1}], [f, rest, g]):
        reply = streamed(*({"tool_calls": [piece]} for piece in pieces))
        assert reply.message.tool_calls == (ToolCall("call_1", "f", "{}"), ToolCall("call_2", "g", "{}"))


@pytest.mark.parametrize("function", [{"name": "f"}, {"name": "f", "arguments": None}, {"name": "f", "arguments": ""}])
def test_a_function_without_parameters_may_be_called_without_arguments(function: dict[str, Any]) -> None:
    sent = {"id": "a", "type": "function", "function": function}
    for reply in (streamed({"tool_calls": [sent]}), whole({"tool_calls": [sent]})):
        assert reply.message.tool_calls == (ToolCall("a", "f", ""),)


def test_a_call_without_an_id_is_given_one_that_no_other_has() -> None:
    calls = [call(call_id="call_1"), {"function": {"name": "g", "arguments": "{}"}}, call(call_id="")]
    message = whole({"tool_calls": calls}).message
    assert [each.id for each in message.tool_calls] == ["call_1", "call_2", "call_3"]


def test_what_a_filter_reports_beside_the_choices_is_no_failure() -> None:
    """A chunk of it has no delta, and may have no choices."""
    found = {"index": 0, "finish_reason": None, "content_filter_results": {"hate": {"filtered": False}}}
    reply, _ = assembled(
        {"object": "", "model": "", "choices": [], "prompt_filter_results": []},
        chunk({"content": "Rain."}),
        {"object": "", "model": "", "choices": [found]},
        chunk({}, "stop"),
        chunk(choices=None, usage={"prompt_tokens": 3, "completion_tokens": 2}),
        chunk(choices=[], usage=None),
    )
    assert (reply.message.text, reply.model, reply.usage) == ("Rain.", "m", Usage(3, 2))


def test_of_several_choices_the_first_is_the_reply() -> None:
    other = {"index": 1, "delta": {"content": "Sun."}, "finish_reason": "length"}
    reply, said = assembled(chunk(choices=[other]), chunk({"content": "Rain."}), chunk({}, "stop"))
    assert (reply.message.text, reply.finish_reason, said) == ("Rain.", "stop", [Delta("Rain.")])


def test_a_model_may_show_its_thoughts_among_the_parts_of_its_content() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    _, said = assembled(chunk({"content": [thinking, {"type": "text", "text": "Rain."}]}), chunk({}, "stop"))
    assert said == [Delta(text="Rain.", reasoning="Hm.")]
    assert assembled(chunk({"refusal": "No."}), chunk({}, "stop"))[1] == [Delta(text="No.")]


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        (chunk(choices=5), "chunk.choices must be an array"),
        (chunk(choices=[[]]), r"chunk.choices\[0\] must be an object"),
        (chunk("Rain."), r"chunk.choices\[0\].delta must be an object"),
        (chunk({"content": 5}), r"chunk.choices\[0\].delta.content must be a string, an array of parts, or null"),
        (chunk({"content": ["Rain."]}), r"chunk.choices\[0\].delta.content\[0\] must be an object"),
        (chunk({"tool_calls": {}}), r"chunk.choices\[0\].delta.tool_calls must be an array"),
        (chunk({"tool_calls": ["f"]}), r"chunk.choices\[0\].delta.tool_calls\[0\] must be an object"),
    ],
)
def test_a_wrong_chunk_is_no_reply_and_its_place_is_named(wrong: dict[str, Any], where: str) -> None:
    with pytest.raises(InvalidReplyError, match=where):
        assembled(wrong, chunk({}, "stop"))


@pytest.mark.parametrize(
    "delta",
    [
        {"tool_calls": [{"id": 5, "index": "x", "function": "f"}]},
        {"tool_calls": [{"id": [], "index": [], "function": {"name": 5, "arguments": {}}}]},
        {"refusal": [5], "role": {}},
        {"content": [{"type": "text", "text": 5}, {"type": "text", "text": "a"}]},
        {"content": [{"type": []}]},
        {"audio": [{"index": 0}, {"index": 0, "type": {}}], "reasoning": 5},
    ],
)
def test_whatever_stands_in_a_delta_the_answer_is_read_or_is_no_reply(delta: dict[str, Any]) -> None:
    with pytest.raises(InvalidReplyError, match=r"choices\[0\].message"):
        streamed(delta, delta)


@pytest.mark.parametrize("way", [way for way in WAYS if way.is_streamed], ids=str)
def test_odd_chunks_reach_the_assembly_through_the_sdk(way: Way, playing: PlayingServer) -> None:
    found = {"index": 0, "finish_reason": None, "content_filter_offsets": {"check_offset": 44}}
    thinking = {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]}
    playing.play(
        [
            {"id": "", "object": "", "created": 0, "model": "", "choices": [], "prompt_filter_results": []},
            chunk(thinking, id="c", created=1),
            chunk({"content": "Rain.", "annotations": [{"type": "a"}]}, id="c", created=1),
            chunk({"annotations": [{"type": "b"}]}, id="c", created=1),
            {"id": "", "object": "", "created": 0, "model": "", "choices": [found], "usage": None},
            chunk({}, "stop", id="c", created=1),
            chunk(choices=None, usage={"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}),
            "[DONE]",
        ]
    )
    with asked(PROVIDERS[0], way, base_url=f"{playing.url}/v1", api_key="k") as question:
        answer = question(Prompt(messages=(UserMessage("Weather?"),)))
    assert (answer.text, answer.reasoning) == ("Rain.", "Hm.")
    native = answer.said.message.native
    assert native is not None
    assert native.data["annotations"] == [{"type": "a"}, {"type": "b"}]
    assert not any(isinstance(part, ReasoningPart) for part in answer.said.message.parts)
