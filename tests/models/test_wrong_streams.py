"""H-1: whatever stands in a provider's answer, it is read, or it is no reply."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.samples import paths, put, without
from tests.models.test_played_answers import ANTHROPIC, CHAT, PLAYED, RESPONSES, Played
from turnlog.errors import InvalidReplyError
from turnlog.formats import openai_chat
from turnlog.models import Delta, Reply
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
