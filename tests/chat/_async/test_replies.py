"""H-1: replies that are none are not stored, and what a call gives back is what it says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chat._async.talking import Talk
from tests.chat.speaking import DIRECT, asks, look_up
from turnlog import AssistantMessage, AsyncSessionService, InvalidValueError, Message, SystemMessage, UserMessage
from turnlog.chat import AsyncChatClient, Limits, OnBreach, Outcome
from turnlog.errors import InvalidReplyError
from turnlog.models.protocol import Prompt, Reply, Usage
from turnlog.models.scripted import AsyncScriptedModel


def used(text: str, tokens: int) -> Reply:
    return Reply(message=AssistantMessage(text), usage=Usage(tokens, tokens), model="small")


def twice(_: Prompt) -> AssistantMessage:
    return asks("c1", "c1")


def no_reply(_: Prompt) -> Any:
    return {"text": "hello"}


@pytest.mark.parametrize("said", [AssistantMessage(""), AssistantMessage("  "), AssistantMessage(), twice, no_reply])
async def test_a_reply_that_is_none_is_an_error_and_not_stored(service: AsyncSessionService, said: Any) -> None:
    """Empty, two calls with one id, no reply at all: the question is stored, and nothing behind it."""
    talk = Talk(service, said, "hello")
    with pytest.raises(InvalidReplyError):
        await talk.client.call("hi", session_id="s", run_id="r")
    assert await talk.log() == ["user: hi"]
    assert (await talk.client.call("hi", session_id="s", run_id="r")).text == "hello"
    assert await talk.log() == ["user: hi", "assistant: hello"]


async def test_an_advisor_inside_the_memory_cannot_have_such_a_reply_stored(service: AsyncSessionService) -> None:
    class Emptying:
        async def around_model_call(self, request: Any, call_next: Any) -> Reply:
            await call_next(request)
            return Reply(message=AssistantMessage(""))

    talk = Talk(service)
    client = AsyncChatClient(AsyncScriptedModel(["hello"]), advisors=[*talk.advisors, Emptying()])
    with pytest.raises(InvalidReplyError, match="empty"):
        await client.call("hi", session_id="s")
    assert await talk.log() == ["user: hi"]


async def test_around_turn_returns_a_result() -> None:
    class Forgetful:
        async def around_turn(self, request: Any, call_next: Any) -> Any:
            await call_next(request)

    with pytest.raises(InvalidReplyError, match="ChatResult"):
        await AsyncChatClient(AsyncScriptedModel(["hello"]), advisors=[Forgetful()]).call("hi")


async def test_what_a_call_gives() -> None:
    """H-1: text, message, usage, outcome, context."""
    client = AsyncChatClient(AsyncScriptedModel([used("hello", 5)]), context={"mine": 1})
    result = await client.call("hi")
    assert (result.text, result.message) == ("hello", AssistantMessage("hello"))
    assert (result.outcome, result.usage, result.model) == (Outcome.REPLY, Usage(5, 5), "small")
    assert (result.context, result.rounds, result.finish_reason) == ({"mine": 1}, 1, "stop")
    assert (result.results, result.output) == ((), None)


async def test_usage_is_that_of_every_model_call() -> None:
    """Also of those whose reply is thrown away by an advisor that asks again."""

    class Again:
        async def around_model_call(self, request: Any, call_next: Any) -> Reply:
            await call_next(request)
            reply: Reply = await call_next(request)
            return reply

    asking = Reply(message=asks("c1"), usage=Usage(1, 2))
    model = AsyncScriptedModel([used("no", 10), asking, used("no", 100), used("done", 1000)])
    result = await AsyncChatClient(model, tools=[look_up], advisors=[Again()]).call("hi")
    assert result.usage == Usage(1111, 1112)


async def test_the_message_is_the_last_reply_however_the_turn_ends() -> None:
    told = Limits(rounds=0, on_breach=OnBreach.TELL_MODEL)
    for limits, said in [
        (Limits(), [asks("c1", name="hand_over")]),
        (Limits(rounds=0), [asks("c1")]),
        (told, [asks("c0"), asks("c1")]),
    ]:
        client = AsyncChatClient(AsyncScriptedModel(said), tools=[look_up, DIRECT], limits=limits)
        result = await client.call("hi")
        assert result.message == said[-1]
        assert [each.id for each in result.results] == ["c1"]
        assert result.text == result.results[0].text


class TestWhatIsSaid:
    async def test_defaults_stand_on_the_client_and_a_call_replaces_them(self) -> None:
        model = AsyncScriptedModel(["1", "2"])
        client = AsyncChatClient(model, system="be kind", tools=[look_up], options={"temperature": 0, "seed": 1})
        await client.call("hi")
        await client.call("hi", system=SystemMessage("be brief"), tools=[], options={"temperature": 1})
        first, second = model.prompts
        assert first.messages == (SystemMessage("be kind"), UserMessage("hi"))
        assert ([tool.name for tool in first.tools], first.options) == (["look_up"], {"temperature": 0, "seed": 1})
        assert second.messages == (SystemMessage("be brief"), UserMessage("hi"))
        assert (second.tools, second.options) == ((), {"temperature": 1})

    @pytest.mark.parametrize("wrong", [7, b"hi", ["hi"], None, [None]])
    async def test_text_or_messages_are_said(self, wrong: Any) -> None:
        model = AsyncScriptedModel(["never"])
        with pytest.raises(InvalidValueError, match="a call sends text or messages"):
            await AsyncChatClient(model).call(wrong)
        assert not model.prompts

    async def test_several_messages_may_be_said(self) -> None:
        model = AsyncScriptedModel(["1"])
        said: list[Message] = [UserMessage("example"), AssistantMessage("answer"), UserMessage("hi")]
        await AsyncChatClient(model).call(said)
        assert model.prompts[0].messages == tuple(said)

    @pytest.mark.parametrize("wrong", [{"tools_at_once": 0}, {"output_retries": -1}, {"context": "s"}])
    async def test_options_are_checked(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(InvalidValueError):
            AsyncChatClient(AsyncScriptedModel([]), **wrong)

    async def test_an_advisor_wraps_something(self) -> None:
        """What has none of the three methods would be left out without a word."""
        wrong: Any = [object()]
        with pytest.raises(InvalidValueError, match="object is no advisor: it has none of around_turn"):
            AsyncChatClient(AsyncScriptedModel([]), advisors=wrong)
