"""H-1, P-1: the official SDKs against a server that somebody else wrote; what is sent passes the provider's rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from llmock.scenarios import Reply as Say
from llmock.scenarios import StreamFault, ToolCall
from llmock.testing import LLMockServer
from msgspec import Struct

from tests.models.providers import PROVIDERS, WAYS, Chat, Provider, Way, asked, each_provider, each_way
from turnlog import AssistantMessage, SystemMessage, ToolMessage, ToolResult, UserMessage
from turnlog.chat import Outcome
from turnlog.errors import InvalidReplyError
from turnlog.formats import ProblemLevel, parse_request, problems
from turnlog.log.messages import Message
from turnlog.models import Prompt, Usage

Chats = Callable[[Provider, Way], Chat]


def weather(city: str) -> str:
    """The weather of a city."""
    return f"{city}: rain"


def bodies(stand_in: LLMockServer) -> list[dict[str, Any]]:
    """The bodies of all requests so far."""
    return [record.body for record in stand_in.state.journal.records(wait=5)]


def faults(body: dict[str, Any], form: str) -> list[str]:
    """The rules that a request breaks."""
    return [problem.rule for problem in problems(body, form) if problem.level is ProblemLevel.ERROR]


@each_provider
@each_way
def test_a_turn_with_parallel_calls_is_held_stored_and_gone_on_with(
    provider: Provider, way: Way, stand_in: LLMockServer, chat: Chats
) -> None:
    calls = (ToolCall("weather", {"city": "Oslo"}), ToolCall("weather", {"city": "Rome"}))
    stand_in.state.scenarios.add(Say(text="Let me look.", tool_calls=calls), Say(text="Rain."), Say(text="Still rain."))
    talk = chat(provider, way)

    first = talk.say("What is the weather?", [weather], system="Be brief.")
    second = talk.say("And now?", [weather], system="Be brief.")

    assert (first.said.text, first.said.outcome, first.said.rounds) == ("Rain.", Outcome.REPLY, 2)
    assert second.said.text == "Still rain."
    if way.is_streamed:
        assert first.text == "Let me look.Rain."
    assert isinstance(first.said.usage, Usage)
    assert first.said.usage.input_tokens > 0
    assert first.said.usage.output_tokens > 0
    assert first.said.model == provider.name
    asking, *_ = (message for message in talk.log() if isinstance(message, AssistantMessage))
    ids = [call.id for call in asking.tool_calls]
    assert talk.log() == [
        UserMessage("What is the weather?"),
        asking,
        ToolMessage((ToolResult(ids[0], "Oslo: rain", name="weather"),)),
        ToolMessage((ToolResult(ids[1], "Rome: rain", name="weather"),)),
        AssistantMessage("Rain."),
        UserMessage("And now?"),
        AssistantMessage("Still rain."),
    ]
    sent = bodies(stand_in)
    assert [faults(body, provider.form) for body in sent] == [[], [], []]
    assert [bool(body.get("stream")) for body in sent] == [way.is_streamed] * 3
    read = parse_request(sent[-1], provider.form)
    assert [tool.name for tool in read.tools] == ["weather"]
    assert spoken(read.messages) == spoken((SystemMessage("Be brief."), *talk.log()[:-1]))


def spoken(messages: tuple[Message, ...]) -> list[tuple[str, str]]:
    """Who said what; a provider's turns may hold several results at once."""
    said: list[tuple[str, str]] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            said += (("tool", result.text) for result in message.results)
        else:
            said.append((message.type.value, message.text))
    return said


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_session_goes_on_at_another_provider(way: Way, stand_in: LLMockServer, chat: Chats) -> None:
    call = ToolCall("weather", {"city": "Oslo"})
    for provider in PROVIDERS * 2:
        stand_in.state.scenarios.add(Say(text="Let me look.", tool_calls=(call,)), Say(text=provider.form))
        assert chat(provider, way).say("The weather?", [weather]).said.text == provider.form
        assert [faults(body, provider.form) for body in bodies(stand_in)[-2:]] == [[], []]
    assert len(chat(PROVIDERS[0], way).log()) == 6 * 4


@each_provider
@each_way
def test_options_are_sent_by_the_providers_own_names(provider: Provider, way: Way, stand_in: LLMockServer) -> None:
    """What the SDK has no parameter for is sent too, as services know options of their own."""
    stand_in.state.scenarios.add(Say(text="Yes."))
    with asked(
        provider, way, base_url=stand_in.base_url(provider.server), api_key="k", options={"top_p": 0.5, "min_p": 0.1}
    ) as ask:
        ask(Prompt(messages=(UserMessage("Well?"),), options={"top_p": 0.25, "temperature": 0.0}))
    (body,) = bodies(stand_in)
    assert (body["top_p"], body["min_p"], body["temperature"]) == (0.25, 0.1, 0.0)


class City(Struct, frozen=True):
    """A place and how it is there."""

    name: str
    degrees: float
    rainy: bool = False


@each_provider
@each_way
@pytest.mark.parametrize("native", [True, False], ids=["native", "in words"])
def test_a_wanted_type_is_asked_for_and_read(
    provider: Provider,
    way: Way,
    native: bool,  # noqa: FBT001 - a case
    stand_in: LLMockServer,
    chat: Chats,
) -> None:
    answer = '{"name": "Oslo", "degrees": 4.5, "rainy": true}'
    stand_in.state.scenarios.add(Say(text=answer))
    talk = chat(provider, way)
    talk._make[2]["native_output"] = native

    assert talk.say("The weather?", output_type=City).said.output == City("Oslo", 4.5, rainy=True)

    (body,) = bodies(stand_in)
    assert not faults(body, provider.form)
    asks_natively = bool(body.keys() & {"response_format", "text", "output_config"})
    instructions = str(body.get("messages", "")) + str(body.get("system", "")) + str(body.get("instructions", ""))
    assert (asks_natively, "degrees" in instructions) == (native, not native)


@each_provider
@pytest.mark.parametrize("way", [way for way in WAYS if way.is_streamed], ids=str)
@pytest.mark.parametrize("kind", ["truncate", "disconnect"])
def test_a_stream_that_breaks_off_is_no_reply_and_the_next_turn_goes_on(
    provider: Provider, way: Way, kind: Any, stand_in: LLMockServer, chat: Chats
) -> None:
    """H-7: a stream that ends early without an error must not be taken for a whole reply."""
    stand_in.state.scenarios.add(Say(text="Half of this is lost on the way to you."), StreamFault(kind, after_chunks=4))
    stand_in.state.scenarios.add(Say(text="Here I am."))
    talk = chat(provider, way)
    broken = (InvalidReplyError, openai.APIError, anthropic.APIError, httpx2.TransportError)
    with pytest.raises(broken):
        talk.say("Tell me.")
    assert talk.log() == [UserMessage("Tell me.")]
    assert talk.say("Again.").said.text == "Here I am."
    assert not faults(bodies(stand_in)[-1], provider.form)


@each_provider
@pytest.mark.parametrize("way", [way for way in WAYS if way.is_streamed], ids=str)
def test_a_stream_that_is_left_ends_its_connection_and_the_next_turn_goes_on(
    provider: Provider, way: Way, stand_in: LLMockServer, chat: Chats
) -> None:
    """H-7: the provider is in the middle of its answer, and would be for a minute."""
    stand_in.state.scenarios.add(Say(text="Half of this is never read by you."), Say(text="Here I am."))
    stand_in.state.scenarios.add(StreamFault("stall", after_chunks=6, stall_seconds=60))
    talk = chat(provider, way)
    assert talk.begin("Tell me.")
    assert talk.log() == [UserMessage("Tell me.")]
    assert talk.say("Again.").said.text == "Here I am."
    assert not faults(bodies(stand_in)[-1], provider.form)
