"""OpenAI's chat completions, and the many services that speak the same API, as models (H-1)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from turnlog.errors import InvalidReplyError
from turnlog.formats.json_fields import is_object
from turnlog.formats.openai_chat import FORMAT, parse_reply
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
from turnlog.models.sdk import AsyncClientOwner, ClientOwner, made_client, sdk

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

#: Where services that show a model's reasoning put it; OpenAI itself does not show it in this API.
_REASONING: Final = ("reasoning_content", "reasoning")
#: What a chunk's pieces are put together wrongly by, where a service does not keep to the API.
_UNFIT: Final = (AssertionError, AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError)


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
                yield from assembly.add(chunk)
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
                for delta in assembly.add(chunk):
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


class ChatAssembly:
    """A stream's chunks on their way to a reply, put together by the SDK."""

    def __init__(self) -> None:
        self._state: Any = sdk("openai.lib.streaming.chat").ChatCompletionStreamState()
        self._calls = _CallNumbers()
        self._is_empty = True

    def add(self, chunk: Any) -> Iterator[Delta]:
        """Take a chunk in; what it says of the first choice."""
        if getattr(chunk, "object", None) not in {"chat.completion.chunk", "", None}:
            return  # some services send notes of their own in between
        try:
            for choice in chunk.choices:
                if not choice.index and choice.delta is not None:
                    self._calls.number(choice.delta.tool_calls or ())
            self._state.handle_chunk(chunk)
        except _UNFIT as error:
            raise InvalidReplyError(f"the provider's stream cannot be put together: {error}") from error
        self._is_empty = False
        for choice in chunk.choices:
            delta = choice.delta
            if choice.index or delta is None:
                continue
            extra: dict[str, Any] = delta.model_extra or {}
            thoughts = [extra[key] for key in _REASONING if isinstance(extra.get(key), str)]
            said = Delta(text=delta.content or "", reasoning="".join(thoughts[:1]))
            if said.text or said.reasoning:
                yield said

    def reply(self) -> Reply:
        """The whole reply; :class:`InvalidReplyError` where the stream was cut off."""
        if self._is_empty:
            raise cut_off("it was empty")
        completion: dict[str, Any] = self._state.current_completion_snapshot.to_dict(warnings=False)
        choices: list[dict[str, Any]] = completion.get("choices") or []
        if not choices:
            raise cut_off("it had no choice")
        if not choices[0].get("finish_reason"):
            raise cut_off("it gave no finish reason")
        return reply_of(parse_reply, completion | {"choices": [_as_sent(choices[0])]})


class _CallNumbers:
    """Numbers the calls of a stream where a service leaves that out, or gives all of them the same number."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._by_number: dict[int | None, int] = {}

    def number(self, pieces: Iterable[Any]) -> None:
        """Set the number of each piece: a new id begins a call, and what has no id goes on with one."""
        for piece in pieces:
            if not piece.id:
                piece.index = self._by_number.get(piece.index, len(self._ids) - 1)
                continue
            if piece.id in self._ids:
                place = self._ids.index(piece.id)
                piece.id = None  # pieces of a text are joined, and so would the id be
            else:
                place = len(self._ids)
                self._ids.append(piece.id)
            self._by_number[piece.index] = place
            piece.index = place


def _as_sent(choice: dict[str, Any]) -> dict[str, Any]:
    """The choice as an answer in one piece has it: ``index`` of a call, and what the SDK parses, belong to streams."""
    message: dict[str, Any] = choice["message"]
    calls = [_call_as_sent(call) for call in message.get("tool_calls") or ()]
    kept = {key: value for key, value in message.items() if key not in {"parsed", "tool_calls"}}
    return choice | {"message": kept | {"tool_calls": calls} if calls else kept}


def _call_as_sent(call: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in call.items() if key != "index"}
    function = kept.get("function")
    if is_object(function):
        kept["function"] = {key: value for key, value in function.items() if key != "parsed_arguments"}
    return kept
