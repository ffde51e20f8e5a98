"""H-1: whatever stands in a provider's answer, it is read, or it is no reply."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.samples import paths, put, without
from tests.models.playing_server import PlayingServer
from tests.models.providers import Way, asked
from tests.models.test_played_answers import ANTHROPIC, ASKED, CHAT, PLAYED, RESPONSES, TOOLS, Played
from turnlog.errors import InvalidReplyError
from turnlog.formats import openai_chat
from turnlog.models import Delta, Prompt, Reply
from turnlog.models.anthropic import message_reply
from turnlog.models.chat_chunks import ChatAssembly
from turnlog.models.openai_responses import ResponseAssembly, response_reply
from turnlog.models.provider_request import reply_of

WRONG: tuple[Any, ...] = (None, True, 5, "x", [], [5], {}, {"a": 1})

Step = tuple[str | int, ...]


@st.composite
def spoiled(draw: st.DrawFn, value: Any, least: int) -> Any:
    """The value with something wrong, or missing, at one place that lies at least so deep."""
    path: Step = draw(st.sampled_from([path for path in paths(value) if len(path) >= least]))
    if draw(st.booleans()):
        return put(value, path, draw(st.sampled_from(WRONG)))
    return without(value, path)


def assembled(played: Played, events: list[dict[str, Any]]) -> tuple[Reply, list[Delta]]:
    assembly = ChatAssembly() if played.provider is CHAT else ResponseAssembly()
    said = [delta for event in events for delta in assembly.add(event)]
    return assembly.reply(), said


def check(reply: Reply, said: list[Delta]) -> None:
    assert type(reply.finish_reason) is str
    assert all(type(delta.text) is type(delta.reasoning) is str for delta in said)


@pytest.mark.parametrize(
    "played", [each for each in PLAYED if each.provider is not ANTHROPIC], ids=["chat", "responses"]
)
@given(data=st.data())
def test_a_stream_that_is_wrong_somewhere(played: Played, data: st.DataObject) -> None:
    events = data.draw(spoiled([event for event in played.stream if isinstance(event, dict)], 2))
    try:
        check(*assembled(played, events))
    except InvalidReplyError:
        return  # said with its place


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # the SDK's own models, of what it was sent
def test_a_stream_of_anthropic_s_that_is_wrong_somewhere(playing: PlayingServer) -> None:
    """Its events are put together by the SDK, which trips over some: every place with every wrong value."""
    (played,) = [each for each in PLAYED if each.provider is ANTHROPIC]
    way, prompt = Way(is_async=False, is_streamed=True), Prompt(messages=(ASKED,), tools=TOOLS)
    with asked(ANTHROPIC, way, base_url=playing.url, api_key="k") as question:
        for path in paths(played.stream):
            wrong = [put(played.stream, path, value) for value in WRONG if len(path) > 1]
            for events in (without(played.stream, path), *wrong):
                playing.play(events)
                with suppress(InvalidReplyError):
                    answer = question(prompt)
                    check(answer.said, answer.deltas)
    assert len(playing.bodies) > 500


@pytest.mark.parametrize("played", PLAYED, ids=["chat", "responses", "anthropic"])
@given(data=st.data())
def test_an_answer_that_is_wrong_somewhere(played: Played, data: st.DataObject) -> None:
    answer = data.draw(spoiled(played.whole, 1))
    try:
        if played.provider is CHAT:
            check(reply_of(openai_chat.parse_reply, answer), [])
        else:
            check((response_reply if played.provider is RESPONSES else message_reply)(answer), [])
    except InvalidReplyError:
        return  # said with its place
