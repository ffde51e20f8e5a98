"""The models that ask a provider, in both colours behind one face, so that a test is written once for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec import Struct

from turnlog import AsyncSessionService, Message, SessionService
from turnlog.chat import (
    AsyncChatClient,
    AsyncSessionAdvisors,
    ChatClient,
    ChatResult,
    SessionAdvisors,
)
from turnlog.models import Delta, Prompt, Reply
from turnlog.models.anthropic import AnthropicModel, AsyncAnthropicModel
from turnlog.models.openai_chat import AsyncOpenAIChatModel, OpenAIChatModel
from turnlog.models.openai_responses import AsyncOpenAIResponsesModel, OpenAIResponsesModel

Asked = Reply | ChatResult


class Provider(Struct, frozen=True):
    """One API: ``form`` is the name of its format, ``server`` that of the provider in a stand-in's words."""

    form: str
    server: str
    model: Callable[..., Any]
    async_model: Callable[..., Any]
    name: str


PROVIDERS = (
    Provider("openai-chat", "openai", OpenAIChatModel, AsyncOpenAIChatModel, "gpt-5"),
    Provider("openai-responses", "openai", OpenAIResponsesModel, AsyncOpenAIResponsesModel, "gpt-5"),
    Provider("anthropic", "anthropic", AnthropicModel, AsyncAnthropicModel, "claude-opus-4-1"),
)


class Way(Struct, frozen=True):
    """How a model is asked: in which colour, and whether in pieces."""

    is_async: bool
    is_streamed: bool

    def __str__(self) -> str:
        return f"{'async' if self.is_async else 'sync'}-{'stream' if self.is_streamed else 'whole'}"


WAYS = tuple(Way(is_async, is_streamed) for is_async in (False, True) for is_streamed in (False, True))

each_provider = pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.form)
each_way = pytest.mark.parametrize("way", WAYS, ids=str)


class Answer(Struct, frozen=True):
    """What came of one question: the reply or the result, and the deltas on the way."""

    said: Any
    deltas: list[Delta]

    @property
    def text(self) -> str:
        """The deltas' text."""
        return "".join(delta.text for delta in self.deltas)

    @property
    def reasoning(self) -> str:
        """The deltas' reasoning."""
        return "".join(delta.reasoning for delta in self.deltas)


@contextmanager
def asked(provider: Provider, way: Way, **arguments: Any) -> Generator[Callable[[Prompt], Answer]]:
    """A function that asks the model, which is made with these arguments and closed at the end."""
    make = provider.async_model if way.is_async else provider.model
    model = make(arguments.pop("name", provider.name), **arguments)
    if not way.is_async:
        with model:
            yield lambda prompt: _ask(model, prompt, way)
        return
    with asyncio.Runner() as runner:
        yield lambda prompt: runner.run(_ask_async(model, prompt, way))
        runner.run(model.close())


def _ask(model: Any, prompt: Prompt, way: Way) -> Answer:
    if not way.is_streamed:
        return Answer(model.generate(prompt), [])
    *deltas, reply = model.stream(prompt)
    return Answer(reply, deltas)


async def _ask_async(model: Any, prompt: Prompt, way: Way) -> Answer:
    if not way.is_streamed:
        return Answer(await model.generate(prompt), [])
    *deltas, reply = [item async for item in model.stream(prompt)]
    return Answer(reply, deltas)


class Chat:
    """Calls on the session ``s`` of a store in memory, through a client with the session advisors."""

    def __init__(self, provider: Provider, way: Way, store: str, **model: Any) -> None:
        self._way = way
        self._store = store
        self._make = (provider.async_model if way.is_async else provider.model, provider.name, model)

    def say(self, said: str, tools: Sequence[Any] = (), **call: Any) -> Answer:
        """One call."""
        if self._way.is_async:
            return asyncio.run(self._say_async(said, tools, call))
        make, name, arguments = self._make
        with make(name, **arguments) as model, SessionService.open(self._store) as service:
            client = ChatClient(model, advisors=SessionAdvisors(service), tools=tools)
            if not self._way.is_streamed:
                return Answer(client.call(said, session_id="s", **call), [])
            with client.stream(said, session_id="s", **call) as stream:
                deltas = list(stream)
                return Answer(stream.result(), deltas)

    async def _say_async(self, said: str, tools: Sequence[Any], call: dict[str, Any]) -> Answer:
        make, name, arguments = self._make
        async with make(name, **arguments) as model, AsyncSessionService.open(self._store) as service:
            client = AsyncChatClient(model, advisors=AsyncSessionAdvisors(service), tools=tools)
            if not self._way.is_streamed:
                return Answer(await client.call(said, session_id="s", **call), [])
            async with client.stream(said, session_id="s", **call) as stream:
                deltas = [delta async for delta in stream]
                return Answer(await stream.result(), deltas)

    def begin(self, said: str) -> str:
        """One call whose stream is left behind the first words; which these are."""
        if self._way.is_async:
            return asyncio.run(self._begin_async(said))
        make, name, arguments = self._make
        with make(name, **arguments) as model, SessionService.open(self._store) as service:
            client = ChatClient(model, advisors=SessionAdvisors(service))
            with client.stream(said, session_id="s") as stream:
                return next(stream).text

    async def _begin_async(self, said: str) -> str:
        make, name, arguments = self._make
        async with make(name, **arguments) as model, AsyncSessionService.open(self._store) as service:
            client = AsyncChatClient(model, advisors=AsyncSessionAdvisors(service))
            async with client.stream(said, session_id="s") as stream:
                async for delta in stream:
                    return delta.text
        return ""

    def log(self) -> list[Message]:
        """All that is stored."""
        with SessionService.open(self._store) as service:
            return [event.content for event in service.events("s")]
