"""OpenAI's chat completions, and the many services that speak the same API, as models (H-1)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from turnlog.formats.openai_chat import FORMAT, parse_reply
from turnlog.models.chat_chunks import ChatAssembly
from turnlog.models.protocol import Prompt, Reply, StreamItem
from turnlog.models.provider_request import ProviderSettings, arguments_of, reply_of, request_body, settings
from turnlog.models.schemas import SCHEMA_NAME, strict_schema
from turnlog.models.sdk import AsyncClientOwner, ClientOwner, made_client

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI


class OpenAIChatModel(ClientOwner):
    """A model behind the chat completions API, by the ``openai`` package (``turnlog[openai]``). For threads.

    ``client`` is yours to configure and close; without one it is made from ``api_key`` and ``base_url`` or the
    environment (``OPENAI_API_KEY``, ``OPENAI_BASE_URL``). ``options`` are sent with each prompt, unless its own replace
    them. ``native_output=False`` asks for structured output in words, for services that know no ``response_format``.
    The SDK's errors are raised as they are; an answer that is none is an :class:`InvalidReplyError`.
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
        create = self._client.chat.completions.create
        answer = create(**arguments_of(create, chat_body(self._settings, prompt, is_openai(self._client))))
        return reply_of(parse_reply, answer.to_dict(warnings=False))

    def stream(self, prompt: Prompt) -> Iterator[StreamItem]:
        """Answer in pieces; the last item is the whole reply."""
        create = self._client.chat.completions.create
        body = streamed(chat_body(self._settings, prompt, is_openai(self._client)))
        assembly = ChatAssembly()
        with create(**arguments_of(create, body)) as chunks:
            for chunk in chunks:
                yield from assembly.add(chunk.to_dict(warnings=False))
        yield assembly.reply()


class AsyncOpenAIChatModel(AsyncClientOwner):
    """:class:`OpenAIChatModel` for tasks."""

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
        create = self._client.chat.completions.create
        answer = await create(**arguments_of(create, chat_body(self._settings, prompt, is_openai(self._client))))
        return reply_of(parse_reply, answer.to_dict(warnings=False))

    async def stream(self, prompt: Prompt) -> AsyncIterator[StreamItem]:
        """Answer in pieces; the last item is the whole reply."""
        create = self._client.chat.completions.create
        body = streamed(chat_body(self._settings, prompt, is_openai(self._client)))
        assembly = ChatAssembly()
        async with await create(**arguments_of(create, body)) as chunks:
            async for chunk in chunks:
                for delta in assembly.add(chunk.to_dict(warnings=False)):
                    yield delta
        yield assembly.reply()


def is_openai(client: Any) -> bool:
    """Whether the client speaks to OpenAI itself."""
    host = str(getattr(client.base_url, "host", ""))
    return host == "openai.com" or host.endswith(".openai.com")


def chat_body(settings: ProviderSettings, prompt: Prompt, at_openai: bool) -> dict[str, Any]:  # noqa: FBT001 - two cases
    """The request. OpenAI's newer models refuse ``max_tokens`` by that name; other services know no other."""
    options = settings.options_for(prompt)
    if at_openai and "max_tokens" in options:
        options.setdefault("max_completion_tokens", options.pop("max_tokens"))
    return request_body(settings, prompt, options, _output_options)


def streamed(body: dict[str, Any]) -> dict[str, Any]:
    """The request for a stream that ends with its usage; ``stream_options=None`` for services that do not know it."""
    body = {"stream_options": {"include_usage": True}} | body | {"stream": True}
    return body if body["stream_options"] is not None else {k: v for k, v in body.items() if k != "stream_options"}


def _output_options(schema: dict[str, Any]) -> dict[str, Any]:
    strict = strict_schema(schema)
    described: dict[str, Any] = {"name": SCHEMA_NAME, "schema": schema}
    if strict is not None:
        described |= {"schema": strict, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": described}}
