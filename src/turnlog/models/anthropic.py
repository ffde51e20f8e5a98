"""Anthropic's messages API as a model (H-1)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from turnlog.formats.anthropic import FORMAT, parse_reply
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


class AnthropicModel(ClientOwner):
    """A model behind Anthropic's messages API, by the ``anthropic`` package (``turnlog[anthropic]``). For threads.

    ``client`` is yours to configure and close; without one it is made from ``api_key`` and ``base_url`` or the
    environment (``ANTHROPIC_API_KEY``, ``ANTHROPIC_BASE_URL``). ``options`` are sent with each prompt, unless its own
    replace them; ``max_tokens`` bounds a reply where they do not. ``native_output=False`` asks for structured output in
    words, for models without it. The SDK's errors are raised as they are; an answer that is none is an
    :class:`InvalidReplyError`.
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
        create = self._client.messages.create
        answer = create(**arguments_of(create, anthropic_body(self._settings, prompt)))
        return message_reply(answer.to_dict(warnings=False))

    def stream(self, prompt: Prompt) -> Iterator[StreamItem]:
        """Answer in pieces; the last item is the whole reply."""
        start = self._client.messages.stream
        has_ended = False
        with start(**arguments_of(start, anthropic_body(self._settings, prompt))) as events:
            for event in events:
                has_ended = has_ended or event.type == "message_stop"
                yield from deltas_of(event)
            yield streamed_reply(events, has_ended=has_ended)


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
        create = self._client.messages.create
        answer = await create(**arguments_of(create, anthropic_body(self._settings, prompt)))
        return message_reply(answer.to_dict(warnings=False))

    async def stream(self, prompt: Prompt) -> AsyncIterator[StreamItem]:
        """Answer in pieces; the last item is the whole reply."""
        start = self._client.messages.stream
        has_ended = False
        async with start(**arguments_of(start, anthropic_body(self._settings, prompt))) as events:
            async for event in events:
                has_ended = has_ended or event.type == "message_stop"
                for delta in deltas_of(event):
                    yield delta
            yield streamed_reply(events, has_ended=has_ended)


def anthropic_settings(
    model: str, options: Mapping[str, Any] | None, max_tokens: int, *, native_output: bool
) -> ProviderSettings:
    """Checked settings."""
    bound = {"max_tokens": check_count("max_tokens", max_tokens, least=1)}
    return settings(FORMAT, model, bound | dict(options or {}), native_output=native_output)


def anthropic_body(settings: ProviderSettings, prompt: Prompt) -> dict[str, Any]:
    """The request."""
    return request_body(settings, prompt, settings.options_for(prompt), _output_options)


def message_reply(data: dict[str, Any]) -> Reply:
    """The reply that an answer says; a call whose input may be cut off is not to be run."""
    reply = reply_of(parse_reply, data)
    if reply.finish_reason in _CUT_SHORT and data["content"] and data["content"][-1]["type"] == "tool_use":
        raise cut_call(reply.finish_reason)
    return reply


def streamed_reply(events: Any, *, has_ended: bool) -> Reply:
    """The reply that the SDK has put together of a stream; :class:`InvalidReplyError` where it was cut off."""
    if not has_ended:
        raise cut_off("it gave no message_stop")
    return message_reply(events.current_message_snapshot.to_dict(warnings=False))


def deltas_of(event: Any) -> Iterator[Delta]:
    """What an event says."""
    if event.type == "text":
        yield Delta(text=event.text)
    elif event.type == "thinking":
        yield Delta(reasoning=event.thinking)


def _output_options(schema: dict[str, Any]) -> dict[str, Any]:
    accepted: dict[str, Any] = sdk("anthropic").transform_schema(schema)
    return {"output_config": {"format": {"type": "json_schema", "schema": accepted}}}
