"""H-1: a turn that Anthropic pauses, as its own tools take long, is gone on with until it is a reply."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.playing_server import PlayingServer
from tests.models.providers import PROVIDERS, Way, asked, each_way
from turnlog import UserMessage
from turnlog.errors import InvalidReplyError
from turnlog.formats import ProblemLevel, problems
from turnlog.models import Prompt, Usage

ASKED = UserMessage("The weather in Oslo?")
LOOKED = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "Oslo"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def answered(way: Way, stop_reason: str, *content: dict[str, Any], **fields: Any) -> Any:
    """An answer, in one piece or as the stream of it."""
    head: dict[str, Any] = {"id": "m1", "type": "message", "role": "assistant", "model": "claude-opus-4-1", **fields}
    usage = {"input_tokens": 5, "output_tokens": 7}
    if not way.is_streamed:
        return head | {"content": list(content), "stop_reason": stop_reason, "usage": usage}
    events: list[Any] = [{"type": "message_start", "message": head | {"content": [], "usage": usage}}]
    for index, block in enumerate(content):
        is_text = block["type"] == "text"
        start = {"type": "content_block_start", "index": index}
        events.append(start | {"content_block": text("") if is_text else block})
        if is_text:
            delta = {"type": "text_delta", "text": block["text"]}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    ended = {"type": "message_delta", "delta": {"stop_reason": stop_reason, **fields}, "usage": {"output_tokens": 7}}
    return [*events, ended, {"type": "message_stop"}]


@each_way
def test_a_paused_turn_is_sent_back_and_gone_on_with(way: Way, playing: PlayingServer) -> None:
    """Stored as it is, it would make every later request one that is refused."""
    place = {"container": {"id": "c1", "expires_at": "2026-12-01T00:00:00Z"}}
    playing.play(
        answered(way, "pause_turn", text("Let me look. "), LOOKED, **place),
        answered(way, "pause_turn"),
        answered(way, "end_turn", FOUND, text("Rain.")),
    )
    with asked(PROVIDERS[2], way, base_url=playing.url, api_key="k") as question:
        answer = question(Prompt(messages=(ASKED,)))
    said = [text("Let me look. "), LOOKED]
    assert [body["messages"][1:] for body in playing.bodies] == [[], *[[{"role": "assistant", "content": said}]] * 2]
    assert playing.bodies[1]["container"] == "c1"
    reply = answer.said
    assert (reply.message.text, reply.finish_reason, reply.usage) == ("Let me look. Rain.", "end_turn", Usage(15, 21))
    assert reply.message.native is not None
    assert reply.message.native.data["content"] == [*said, FOUND, text("Rain.")]
    if way.is_streamed:
        assert answer.text == "Let me look. Rain."

    playing.play(answered(way, "end_turn", text("Snow.")))
    with asked(PROVIDERS[2], way, base_url=playing.url, api_key="k") as question:
        question(Prompt(messages=(ASKED, reply.message, UserMessage("And now?"))))
    errors = [problem for problem in problems(playing.bodies[-1], "anthropic") if problem.level is ProblemLevel.ERROR]
    assert errors == []


@each_way
@pytest.mark.parametrize(("pauses", "is_reply"), [(10, True), (11, False)])
def test_a_turn_is_not_gone_on_with_for_ever(pauses: int, is_reply: bool, way: Way, playing: PlayingServer) -> None:  # noqa: FBT001 - a case
    playing.play(*[answered(way, "pause_turn", text("a"))] * pauses, answered(way, "end_turn", text("b")))
    with asked(PROVIDERS[2], way, base_url=playing.url, api_key="k") as question:
        if is_reply:
            assert question(Prompt(messages=(ASKED,))).said.message.text == "a" * pauses + "b"
            return
        with pytest.raises(InvalidReplyError, match="paused the turn more than 10 times"):
            question(Prompt(messages=(ASKED,)))
    assert len(playing.bodies) == pauses


@each_way
def test_a_call_of_the_providers_own_that_is_cut_off_is_no_reply(way: Way, playing: PlayingServer) -> None:
    playing.play(answered(way, "max_tokens", text("Let me look. "), LOOKED))
    with (
        asked(PROVIDERS[2], way, base_url=playing.url, api_key="k") as question,
        pytest.raises(InvalidReplyError, match="cut off in the middle of a tool call"),
    ):
        question(Prompt(messages=(ASKED,)))
