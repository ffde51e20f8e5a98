"""OpenAI's Responses API as a model (H-1)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from turnlog.errors import InvalidReplyError, InvalidValueError
from turnlog.formats.json_fields import integer_at, is_object, object_at, text_at
from turnlog.formats.openai_responses import FORMAT, parse_reply
from turnlog.models.protocol import Delta, Prompt, Reply, StreamItem
from turnlog.models.provider_request import (
    ProviderSettings,
    arguments_of,
    cut_off,
    reply_of,
    request_body,
    settings,
)
from turnlog.models.schemas import SCHEMA_NAME, strict_schema
from turnlog.models.sdk import AsyncClientOwner, ClientOwner, made_client

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

#: Models that reason; others refuse to be asked for their encrypted reasoning.
_REASONS: Final = re.compile(r"(?:.*/)?(?:ft:)?(?:o\d|gpt-(?:[5-9]|\d\d)|codex)(?!.*-chat)")
_ENCRYPTED: Final = "reasoning.encrypted_content"


class OpenAIResponsesModel(ClientOwner):
    """A model behind the Responses API, by the ``openai`` package (``turnlog[openai]``). For threads.

    Nothing is kept by the provider (``store`` is false unless an option says otherwise): the session is the memory, and
    a model's reasoning comes and goes back encrypted. Arguments and errors are those of
    :class:`turnlog.models.OpenAIChatModel`; an option ``max_tokens`` is sent as ``max_output_tokens``.
    """

    def __init__(
        self,
        model: str,
        *,
        client: OpenAI | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        options: Mapping[str, Any] | None = None,
        native_output: bool = True,
    ) -> None:
        self._settings = settings(FORMAT, model, options, native_output=native_output)
        self._client: Any = client or made_client("openai", "OpenAI", api_key, base_url)
        self._is_own_client = client is None

    def generate(self, prompt: Prompt) -> Reply:
        """Answer the prompt."""
        create = self._client.responses.create
        answer = create(**arguments_of(create, responses_body(self._settings, prompt)))
        return response_reply(answer.to_dict(warnings=False))

    def stream(self, prompt: Prompt) -> Iterator[StreamItem]:
        """Answer in pieces; the last item is the whole reply."""
        create = self._client.responses.create
        assembly = ResponseAssembly()
        with create(**arguments_of(create, responses_body(self._settings, prompt) | {"stream": True})) as events:
            for event in events:
                yield from assembly.add(event.to_dict(warnings=False))
        yield assembly.reply()


class AsyncOpenAIResponsesModel(AsyncClientOwner):
    """:class:`OpenAIResponsesModel` for tasks."""

    def __init__(
        self,
        model: str,
        *,
        client: AsyncOpenAI | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        options: Mapping[str, Any] | None = None,
        native_output: bool = True,
    ) -> None:
        self._settings = settings(FORMAT, model, options, native_output=native_output)
        self._client: Any = client or made_client("openai", "AsyncOpenAI", api_key, base_url)
        self._is_own_client = client is None

    async def generate(self, prompt: Prompt) -> Reply:
        """Answer the prompt."""
        create = self._client.responses.create
        answer = await create(**arguments_of(create, responses_body(self._settings, prompt)))
        return response_reply(answer.to_dict(warnings=False))

    async def stream(self, prompt: Prompt) -> AsyncIterator[StreamItem]:
        """Answer in pieces; the last item is the whole reply."""
        create = self._client.responses.create
        body = responses_body(self._settings, prompt) | {"stream": True}
        assembly = ResponseAssembly()
        async with await create(**arguments_of(create, body)) as events:
            async for event in events:
                for delta in assembly.add(event.to_dict(warnings=False)):
                    yield delta
        yield assembly.reply()


def responses_body(settings: ProviderSettings, prompt: Prompt) -> dict[str, Any]:
    """The request; with ``store`` false, reasoning comes encrypted, so that it can be handed back."""
    options = {"store": False} | settings.options_for(prompt)
    if "max_tokens" in options:
        options.setdefault("max_output_tokens", options.pop("max_tokens"))
    if options["store"] is False and ("reasoning" in options or _REASONS.match(settings.model)):
        options.setdefault("include", [_ENCRYPTED])
    return request_body(settings, prompt, options, _output_options)


def response_reply(data: dict[str, Any]) -> Reply:
    """The reply that a response holds; :class:`InvalidReplyError` for one that failed."""
    if data.get("status") in ("failed", "cancelled"):
        error = data.get("error")
        why = error.get("message", "") if is_object(error) else ""
        raise InvalidReplyError(f"the provider says that the response {data['status']}: {why}")
    return reply_of(parse_reply, data)


def _output_options(schema: dict[str, Any]) -> dict[str, Any]:
    strict = strict_schema(schema)
    described: dict[str, Any] = {"type": "json_schema", "name": SCHEMA_NAME, "schema": schema}
    if strict is not None:
        described |= {"schema": strict, "strict": True}
    return {"text": {"format": described}}


class ResponseAssembly:
    """A stream's events; its last one holds the whole response."""

    def __init__(self) -> None:
        self._items: dict[int, dict[str, Any]] = {}
        self._response: dict[str, Any] | None = None

    def add(self, event: dict[str, Any]) -> Iterator[Delta]:
        """Take an event in; what it says."""
        if event.get("type") == "error":
            raise InvalidReplyError(f"the provider's stream failed: {event.get('message', '')}")
        try:
            yield from self._add(event)
        except InvalidValueError as error:
            raise InvalidReplyError(f"the provider's stream cannot be put together: {error}") from error

    def _add(self, event: dict[str, Any]) -> Iterator[Delta]:
        match event.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                yield Delta(text=text_at(event, "delta", "event"))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                yield Delta(reasoning=text_at(event, "delta", "event"))
            case "response.output_item.done":
                self._items[integer_at(event, "output_index", "event")] = object_at(event, "item", "event")
            case "response.completed" | "response.incomplete" | "response.failed":
                self._response = object_at(event, "response", "event")
            case _:
                pass

    def reply(self) -> Reply:
        """The whole reply; :class:`InvalidReplyError` where the stream was cut off, or the response failed."""
        if self._response is None:
            raise cut_off("it gave no whole response")
        output = self._response.get("output") or [self._items[index] for index in sorted(self._items)]
        return response_reply(self._response | {"output": output})
