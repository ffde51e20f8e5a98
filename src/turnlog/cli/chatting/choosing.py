"""Which model a chat is held with: a provider's, a small one on this machine, or none."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from turnlog.chat.replay import replay_tools
from turnlog.chat.tools import Tool
from turnlog.cli.chatting.example import example_messages
from turnlog.cli.chatting.local_server import CONTEXT, INSTALL, local_server, model_file
from turnlog.cli.terminal import say
from turnlog.errors import InvalidValueError, ModelUnavailableError
from turnlog.log.messages import UserMessage
from turnlog.models.anthropic import AnthropicModel
from turnlog.models.openai_chat import OpenAIChatModel
from turnlog.models.openai_responses import OpenAIResponsesModel
from turnlog.models.protocol import ChatModel, Prompt, Reply, StreamItem
from turnlog.models.recording import turns_of
from turnlog.models.replay import ReplayModel
from turnlog.models.sdk import sdk


class Provider(StrEnum):
    """What ``--provider`` takes."""

    OPENAI = "openai"
    RESPONSES = "responses"
    ANTHROPIC = "anthropic"
    LOCAL = "local"
    EXAMPLE = "example"


class Wanted(Struct, frozen=True):
    """What the options say of the model."""

    provider: Provider | None = None
    model: str | None = None
    base_url: str | None = None


class Chosen(Struct, frozen=True):
    """A model to talk with. ``requests`` are what the user's side of a recorded conversation says."""

    model: ChatModel
    name: str
    provider: Provider
    tools: Sequence[Tool] = ()
    requests: Sequence[Sequence[UserMessage]] = ()
    #: Instructions, where the user gives none.
    system: str | None = None
    #: Tokens that a view may have before it is compacted, where the model takes few.
    budget: int | None = None


#: An answer of the small model ends before it runs in circles for long; it is least wrong when it is told little.
_LOCAL_OPTIONS: Final[dict[str, Any]] = {"max_tokens": 200, "temperature": 0}
_LOCAL_SYSTEM: Final = "You are a helpful assistant."
_CLASSES: Final = {
    Provider.OPENAI: ("openai", "OpenAIError", OpenAIChatModel),
    Provider.RESPONSES: ("openai", "OpenAIError", OpenAIResponsesModel),
    Provider.ANTHROPIC: ("anthropic", "AnthropicError", AnthropicModel),
}
#: What the SDKs speak HTTP by, the newer and the older.
_HTTP_LIBRARIES: Final = ("httpx2", "httpx")
_NO_MODEL: Final = (
    "no model: a recorded example answers, whatever you say. For a model name one (--provider, --model, --base-url, "
    f"OPENAI_API_KEY, ANTHROPIC_API_KEY), or install a small one: {INSTALL}"
)


@contextmanager
def chosen_model(wanted: Wanted) -> Generator[Chosen]:
    """The model that the options and the environment name, open until the block ends."""
    provider = wanted.provider or _provider_of_environment(wanted)
    if provider is Provider.EXAMPLE:
        if wanted.provider is None:
            say(_NO_MODEL)
        yield _example()
        return
    with ExitStack() as stack:
        if provider is Provider.LOCAL:
            yield _local(stack)
            return
        name = wanted.model or _only_model(provider, wanted.base_url)
        model = _CLASSES[provider][2](name, base_url=wanted.base_url)
        stack.callback(model.close)
        yield Chosen(ReportingModel(model, provider), name, provider)


class ReportingModel:
    """A model whose provider's errors are turnlog's: one line for whoever sits at the terminal."""

    def __init__(self, model: ChatModel, provider: Provider) -> None:
        package, root, _ = _CLASSES[provider]
        self._model = model
        self._provider = provider
        # A connection that breaks in the middle of a stream is an error of the SDK's HTTP library.
        transports = [sys.modules[name].HTTPError for name in _HTTP_LIBRARIES if name in sys.modules]
        self._errors: tuple[type[Exception], ...] = (getattr(sdk(package), root), *transports)

    def generate(self, prompt: Prompt) -> Reply:
        """Answer the prompt."""
        with self._reporting():
            return self._model.generate(prompt)

    def stream(self, prompt: Prompt) -> Iterator[StreamItem]:
        """Answer in pieces."""
        with self._reporting():
            yield from self._model.stream(prompt)

    @contextmanager
    def _reporting(self) -> Generator[None]:
        try:
            yield
        except self._errors as error:
            raise ModelUnavailableError(f"{self._provider.value}: {error}") from error


def _provider_of_environment(wanted: Wanted) -> Provider:
    if wanted.base_url or os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
        return Provider.OPENAI
    if os.environ.get("ANTHROPIC_API_KEY"):
        return Provider.ANTHROPIC
    if wanted.model:
        raise InvalidValueError(
            f"--model {wanted.model}: say where it is, by --provider, --base-url, OPENAI_API_KEY or ANTHROPIC_API_KEY"
        )
    return Provider.EXAMPLE if model_file() is None else Provider.LOCAL


def _only_model(provider: Provider, base_url: str | None) -> str:
    """The model that a server of one's own has; providers have many, and one has to be named."""
    url = base_url or (os.environ.get("OPENAI_BASE_URL") if provider is not Provider.ANTHROPIC else None)
    if provider is Provider.ANTHROPIC or url is None:
        raise InvalidValueError(f"which model of {provider.value}? Name it: --model NAME")
    openai = sdk("openai")
    with openai.OpenAI(base_url=url, api_key=os.environ.get("OPENAI_API_KEY") or "none", max_retries=0) as client:
        try:
            names = [model.id for model in client.models.list()]
        except openai.OpenAIError as error:
            raise ModelUnavailableError(f"{url}: {error}") from error
    if len(names) != 1:
        raise InvalidValueError(f"which model of {url}? Name one, as in --model {names[0] if names else 'NAME'}")
    name: str = names[0]
    return name


def _local(stack: ExitStack) -> Chosen:
    path = model_file()
    if path is None:
        raise ModelUnavailableError(f"the local model is not installed: {INSTALL}")
    say("starting a small model on this machine; it is quick to answer, and often wrong")
    url = stack.enter_context(local_server(path))
    model = OpenAIChatModel("smollm2", base_url=url, options=_LOCAL_OPTIONS)
    stack.callback(model.close)
    reporting = ReportingModel(model, Provider.OPENAI)
    return Chosen(reporting, "SmolLM2-135M", Provider.LOCAL, system=_LOCAL_SYSTEM, budget=CONTEXT // 2)


def _example() -> Chosen:
    messages = example_messages()
    return Chosen(
        ReplayModel(messages, strict=False),
        "a recorded example",
        Provider.EXAMPLE,
        tools=replay_tools(messages),
        requests=turns_of(messages).requests,
    )
