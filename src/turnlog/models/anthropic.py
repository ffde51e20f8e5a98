"""Anthropic's messages API as a model (H-1)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from turnlog.errors import InvalidReplyError
from turnlog.formats.anthropic import FORMAT, parse_reply
from turnlog.formats.json_fields import is_object
from turnlog.formats.reply import Usage, all_present
from turnlog.log.windows import check_count
from turnlog.models.protocol import Delta, Prompt, Reply, StreamItem
from turnlog.models.provider_request import (
    ProviderSettings,
    arguments_of,
    cut_call,
    cut_off,
    reply_of,
    request_body,
    settings,
)
from turnlog.models.sdk import AsyncClientOwner, ClientOwner, made_client, sdk

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic

#: The API asks for a bound on each reply; every model takes this one.
_MAX_TOKENS: Final = 4_096
#: What a reply stops for in the middle of whatever it says. The SDK completes the JSON of a call that is cut off.
_CUT_SHORT: Final = ("max_tokens", "model_context_window_exceeded", "refusal")
_CALLS: Final = ("tool_use", "server_tool_use", "mcp_tool_use")
#: What the SDK raises over events that do not fit together.
_UNFIT: Final = (AssertionError, AttributeError, LookupError, TypeError, ValueError)
#: How often one turn is gone on with: it is the provider that decides to pause.
_MOST_PAUSES: Final = 10


class AnthropicModel(ClientOwner):
    """A model behind Anthropic's messages API, by the ``anthropic`` package (``turnlog[anthropic]``). For threads.

    ``client`` is yours to configure and close; without one it is made from ``api_key`` and ``base_url`` or the
    environment (``ANTHROPIC_API_KEY``, ``ANTHROPIC_BASE_URL``). ``options`` are sent with each prompt, unless its own
    replace them; ``max_tokens`` bounds a reply where they do not. ``native_output=False`` asks for structured output in
    words, for models without it. A turn that the provider pauses, as tools of its own take long, is gone on with. The
    SDK's errors are raised as they are; an answer that is none is an :class:`InvalidReplyError`.
    """

    def __init__(
        self,
        model: str,
        *,
        client: Anthropic | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        options: Mapping[str, Any] | None = None,
        max_tokens: int = _MAX_TOKENS,
        native_output: bool = True,
    ) -> None:
        self._settings = anthropic_settings(model, options, max_tokens, native_output=native_output)
        self._client: Any = client or made_client("anthropic", "Anthropic", api_key, base_url)
        self._is_own_client = client is None

    def generate(self, prompt: Prompt) -> Reply:
        """Answer the prompt."""
        create, answers = self._client.messages.create, AnthropicAnswers(self._settings, prompt)
        while not answers.are_complete:
            answer = create(**arguments_of(create, answers.body()))
            answers.add(answer.to_dict(warnings=False))
        return answers.reply()

    def stream(self, prompt: Prompt) -> Iterator[StreamItem]:
        """Answer in pieces; the last item is the whole reply."""
        start, answers = self._client.messages.stream, AnthropicAnswers(self._settings, prompt)
        while not answers.are_complete:
            has_ended = False
            with start(**arguments_of(start, answers.body())) as events:
                with fitting():
                    for event in events:
                        has_ended = has_ended or event.type == "message_stop"
                        yield from deltas_of(event)
                answers.add(streamed_answer(events, has_ended=has_ended))
        yield answers.reply()


class AsyncAnthropicModel(AsyncClientOwner):
    """:class:`AnthropicModel` for tasks."""

    def __init__(
        self,
        model: str,
        *,
        client: AsyncAnthropic | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        options: Mapping[str, Any] | None = None,
        max_tokens: int = _MAX_TOKENS,
        native_output: bool = True,
    ) -> None:
        self._settings = anthropic_settings(model, options, max_tokens, native_output=native_output)
        self._client: Any = client or made_client("anthropic", "AsyncAnthropic", api_key, base_url)
        self._is_own_client = client is None

    async def generate(self, prompt: Prompt) -> Reply:
        """Answer the prompt."""
        create, answers = self._client.messages.create, AnthropicAnswers(self._settings, prompt)
        while not answers.are_complete:
            answer = await create(**arguments_of(create, answers.body()))
            answers.add(answer.to_dict(warnings=False))
        return answers.reply()

    async def stream(self, prompt: Prompt) -> AsyncIterator[StreamItem]:
        """Answer in pieces; the last item is the whole reply."""
        start, answers = self._client.messages.stream, AnthropicAnswers(self._settings, prompt)
        while not answers.are_complete:
            has_ended = False
            async with start(**arguments_of(start, answers.body())) as events:
                with fitting():
                    async for event in events:
                        has_ended = has_ended or event.type == "message_stop"
                        for delta in deltas_of(event):
                            yield delta
                answers.add(streamed_answer(events, has_ended=has_ended))
        yield answers.reply()


def anthropic_settings(
    model: str, options: Mapping[str, Any] | None, max_tokens: int, *, native_output: bool
) -> ProviderSettings:
    """Checked settings."""
    bound = {"max_tokens": check_count("max_tokens", max_tokens, least=1)}
    return settings(FORMAT, model, bound | dict(options or {}), native_output=native_output)


def anthropic_body(settings: ProviderSettings, prompt: Prompt) -> dict[str, Any]:
    """The request."""
    return request_body(settings, prompt, settings.options_for(prompt), _output_options)


class AnthropicAnswers:
    """The answers that make one reply: a turn that tools of the provider's own make long is paused, and gone on with.

    What was paused is no reply to store: a request that holds it, and goes on with anything else, is refused.
    """

    def __init__(self, settings: ProviderSettings, prompt: Prompt) -> None:
        self._body = anthropic_body(settings, prompt)
        self._last: dict[str, Any] = {}
        self._content: list[Any] = []
        self._usage: Usage | None = None
        self._pauses = 0
        self.are_complete = False

    def body(self) -> dict[str, Any]:
        """The request for the next answer."""
        if not self._content:
            return self._body
        said = {"role": "assistant", "content": all_present(self._content)}
        container = self._last.get("container")
        place = {"container": container["id"]} if is_object(container) and "id" in container else {}
        return place | self._body | {"messages": [*self._body["messages"], said]}

    def add(self, answer: dict[str, Any]) -> None:
        """Take an answer in."""
        usage = message_reply(answer).usage
        if usage is not None:
            self._usage = usage if self._usage is None else self._usage + usage
        self._last = answer
        self._content += answer["content"]
        self.are_complete = answer.get("stop_reason") != "pause_turn"
        self._pauses += not self.are_complete
        if self._pauses > _MOST_PAUSES:
            raise InvalidReplyError(f"the provider has paused the turn more than {_MOST_PAUSES} times")

    def reply(self) -> Reply:
        """The whole reply."""
        return replace(message_reply(self._last | {"content": self._content}), usage=self._usage)


def message_reply(data: dict[str, Any]) -> Reply:
    """The reply that an answer says; a call whose input may be cut off is not to be run."""
    reply = reply_of(parse_reply, data)
    if reply.finish_reason in _CUT_SHORT and data["content"] and data["content"][-1]["type"] in _CALLS:
        raise cut_call(reply.finish_reason)
    return reply


@contextmanager
def fitting() -> Generator[None]:
    """The SDK puts the events of a stream together, and takes them to be what the API documents."""
    try:
        yield
    except _UNFIT as error:
        raise InvalidReplyError(f"the provider's stream cannot be put together: {error}") from error


def streamed_answer(events: Any, *, has_ended: bool) -> dict[str, Any]:
    """The answer that the SDK has put together of a stream; :class:`InvalidReplyError` where it was cut off."""
    if not has_ended:
        raise cut_off("it gave no message_stop")
    with fitting():
        answer: dict[str, Any] = events.current_message_snapshot.to_dict(warnings=False)
    return answer


def deltas_of(event: Any) -> Iterator[Delta]:
    """What an event says."""
    if event.type == "text":
        yield Delta(text=event.text)
    elif event.type == "thinking":
        yield Delta(reasoning=event.thinking)


def _output_options(schema: dict[str, Any]) -> dict[str, Any]:
    accepted: dict[str, Any] = sdk("anthropic").transform_schema(schema)
    return {"output_config": {"format": {"type": "json_schema", "schema": accepted}}}
