"""The rules of OpenAI's chat completions API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from turnlog.errors import InvalidValueError
from turnlog.formats.json_fields import as_object, is_array, json_name, object_at, optional_array_at, text_at
from turnlog.formats.rules.models import openai_or_unsure
from turnlog.formats.rules.problem import ProblemLevel
from turnlog.formats.rules.reading import Block, model_of, objects, required
from turnlog.formats.rules.rule import Finding, Rule

_ROLES: Final = ("system", "developer", "user", "assistant", "tool", "function")
_LONGEST_ID: Final = 40
_LONGEST_TEXT: Final = 1_048_576
_TOOL_PARTS: Final = ("text", "image_url")


class Call(Struct, frozen=True):
    """A call that an assistant message asks for."""

    place: str
    id: str


class ChatMessage(Struct, frozen=True):
    """A message. ``calls`` is None where there is no ``tool_calls``; ``answers`` is the id in a tool message."""

    place: str
    role: str
    content: str | None
    parts: tuple[Block, ...]
    calls: tuple[Call, ...] | None
    answers: str | None
    says_something: bool


class Chat(Struct, frozen=True):
    """A request."""

    model: str | None
    messages: tuple[ChatMessage, ...]


def read(request: dict[str, Any]) -> Chat:
    """The request; raises :class:`InvalidValueError` for what no rule can be asked about."""
    messages = objects(required(request, "messages"), "messages")
    return Chat(model_of(request, "model"), tuple(_message(place, fields) for place, fields in messages))


def _message(place: str, fields: dict[str, Any]) -> ChatMessage:
    role = text_at(fields, "role", place)
    content = fields.get("content")
    calls = None if fields.get("tool_calls") is None else _calls(fields, place)
    elsewhere = calls or any(fields.get(key) is not None for key in ("function_call", "refusal", "audio"))
    return ChatMessage(
        place=place,
        role=role,
        content=content if isinstance(content, str) else None,
        parts=_parts(content, f"{place}.content"),
        calls=calls,
        answers=text_at(fields, "tool_call_id", place) if role == "tool" else None,
        says_something=content is not None or (role == "assistant" and bool(elsewhere)),
    )


def _parts(content: object, place: str) -> tuple[Block, ...]:
    if content is None or isinstance(content, str):
        return ()
    if not is_array(content):
        raise InvalidValueError(f"{place} must be a string, an array of parts, or null, not {json_name(content)}")
    return tuple(_part(where, place, fields) for where, fields in objects(content, place))


def _part(place: str, content: str, fields: dict[str, Any]) -> Block:
    kind = "" if "type" not in fields else text_at(fields, "type", place)
    if kind == "text":
        text_at(fields, "text", place)
    return Block(place, content.removesuffix(".content"), kind, fields)


def _calls(fields: dict[str, Any], place: str) -> tuple[Call, ...]:
    calls = optional_array_at(fields, "tool_calls", place)
    return tuple(_call(call, f"{place}.tool_calls[{index}]") for index, call in enumerate(calls))


def _call(data: object, place: str) -> Call:
    fields = as_object(data, place)
    for kind, text in (("function", "arguments"), ("custom", "input")):
        if kind in fields:
            called = object_at(fields, kind, place)
            text_at(called, "name", f"{place}.{kind}")
            text_at(called, text, f"{place}.{kind}")
            break
    else:
        raise InvalidValueError(f"{place} has neither 'function' nor 'custom'")
    return Call(place, text_at(fields, "id", place))


class Step(Struct, frozen=True):
    """A run of tool messages, and the message right before it (None at the start of the request)."""

    head: ChatMessage | None
    results: list[ChatMessage]

    @property
    def calls(self) -> tuple[Call, ...]:
        """What the message before the run asks for."""
        return () if self.head is None else self.head.calls or ()


def _steps(chat: Chat) -> Iterator[Step]:
    step = Step(None, [])
    for message in chat.messages:
        if message.role == "tool":
            step.results.append(message)
        else:
            yield step
            step = Step(message, [])
    yield step


def _empty(chat: Chat) -> Iterator[Finding]:
    if not chat.messages:
        yield Finding("messages")


def _wrong_role(chat: Chat) -> Iterator[Finding]:
    for message in chat.messages:
        if message.role not in _ROLES:
            yield Finding(f"{message.place}.role", {"role": message.role[:40]})


def _role_of_o1_mini(chat: Chat) -> Iterator[Finding]:
    if chat.model is None or not chat.model.startswith(("o1-mini", "o1-preview")):
        return
    for message in chat.messages:
        if message.role in {"system", "developer"}:
            yield Finding(f"{message.place}.role", {"role": message.role}, ProblemLevel.ERROR)


def _unanswered(chat: Chat) -> Iterator[Finding]:
    for step in _steps(chat):
        answered = {result.answers for result in step.results}
        yield from (Finding(call.place, {"id": call.id}) for call in step.calls if call.id not in answered)


def _unexpected(chat: Chat) -> Iterator[Finding]:
    for step in _steps(chat):
        if not step.calls:
            yield from (Finding(result.place) for result in step.results)


def _unknown(chat: Chat) -> Iterator[Finding]:
    for step in _steps(chat):
        asked = {call.id for call in step.calls}
        for result in step.results:
            if asked and result.answers not in asked:
                yield Finding(f"{result.place}.tool_call_id", {"id": result.answers or ""})


def _second_result(chat: Chat) -> Iterator[Finding]:
    for step in _steps(chat):
        seen = set[str | None]()
        for result in step.results:
            if result.answers in seen:
                yield Finding(f"{result.place}.tool_call_id", {"id": result.answers or ""})
            seen.add(result.answers)


def _second_call(chat: Chat) -> Iterator[Finding]:
    for message in chat.messages:
        seen = set[str]()
        for call in message.calls or ():
            if call.id in seen:
                yield Finding(f"{call.place}.id", {"id": call.id})
            seen.add(call.id)


def _no_calls(chat: Chat) -> Iterator[Finding]:
    level = openai_or_unsure(chat.model)
    for message in chat.messages:
        if message.calls == ():
            yield Finding(f"{message.place}.tool_calls", level=level)


def _long_id(chat: Chat) -> Iterator[Finding]:
    level = openai_or_unsure(chat.model)
    for message in chat.messages:
        named = [(f"{call.place}.id", call.id) for call in message.calls or ()]
        if message.answers is not None:
            named.append((f"{message.place}.tool_call_id", message.answers))
        for place, id_ in named:
            if len(id_) > _LONGEST_ID:
                yield Finding(place, {"length": len(id_)}, level)


def _long_text(chat: Chat) -> Iterator[Finding]:
    for message in chat.messages:
        if message.content is not None and len(message.content) > _LONGEST_TEXT:
            yield Finding(f"{message.place}.content", {"length": len(message.content)})


def _says_nothing(chat: Chat) -> Iterator[Finding]:
    for message in chat.messages:
        if not message.says_something and message.role in _ROLES:
            yield Finding(f"{message.place}.content")


def _no_type(chat: Chat) -> Iterator[Finding]:
    for message in chat.messages:
        yield from (Finding(f"{part.place}.type") for part in message.parts if not part.kind)


def _tool_part(chat: Chat) -> Iterator[Finding]:
    for message in chat.messages:
        for part in message.parts:
            if message.role == "tool" and part.kind and part.kind not in _TOOL_PARTS:
                yield Finding(part.place, {"message": message.place, "kind": part.kind[:40]})


def _sound(chat: Chat) -> Iterator[Finding]:
    """Of the models that take sound, all have it in their name."""
    if chat.model is not None and openai_or_unsure(chat.model) is not ProblemLevel.ERROR:
        return
    level = ProblemLevel.ERROR if chat.model else ProblemLevel.BY_MODEL
    for message in chat.messages:
        for part in message.parts:
            if part.kind == "input_audio" and message.role != "tool" and "audio" not in (chat.model or ""):
                yield Finding(part.place, {"message": message.place}, level)


_EMPTY_ARRAY: Final = (
    "Invalid '{place}': empty array. Expected an array with minimum length 1, but got an empty array instead."
)
_TOO_LONG: Final = (
    "Invalid '{place}': string too long. Expected a string with maximum length %d, "
    "but got a string with length {length} instead."
)

RULES: Final[tuple[Rule[Chat], ...]] = (
    Rule(
        id="openai-chat.messages-empty",
        demand="There is at least one message.",
        message="there are no messages: send at least one",
        says=_EMPTY_ARRAY,
        find=_empty,
    ),
    Rule(
        id="openai-chat.role",
        demand="A role is one of system, developer, user, assistant, tool, function.",
        message="no message has the role {role!a}: it is one of system, developer, user, assistant, tool, function",
        says="Invalid value: '{role}'. Supported values are: "
        "'system', 'assistant', 'user', 'function', 'tool', and 'developer'.",
        find=_wrong_role,
    ),
    Rule(
        id="openai-chat.role-of-model",
        level=ProblemLevel.BY_MODEL,
        demand="o1-mini and o1-preview get no system and no developer messages.",
        message="this model takes no {role} message: put the text into the first user message",
        says="Unsupported value: '{place}' does not support '{role}' with this model.",
        find=_role_of_o1_mini,
    ),
    Rule(
        id="openai-chat.tool-call-unanswered",
        demand="Every call is answered by a tool message in the run right after its assistant message.",
        message="call {id!a} has no result: put its tool message right after this message, or leave the message out",
        says="An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        "'tool_call_id'. The following tool_call_ids did not have response messages: {id}",
        find=_unanswered,
    ),
    Rule(
        id="openai-chat.tool-result-unexpected",
        demand="A tool message stands right after an assistant message with calls, or after a tool message that does.",
        message="this tool message follows no assistant message with calls: leave it out, or bring the message back",
        says="Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
        "'tool_calls'.",
        find=_unexpected,
    ),
    Rule(
        id="openai-chat.tool-result-unknown",
        demand="A tool message names one of the calls of the assistant message before it.",
        message="the assistant message before has no call {id!a}: leave this result out, or put it after its call",
        says="Invalid parameter: 'tool_call_id' of '{id}' not found in 'tool_calls' of previous message.",
        find=_unknown,
    ),
    Rule(
        id="openai-chat.tool-result-duplicate",
        demand="A call is answered once.",
        message="call {id!a} has a second result: keep the last one",
        says="Duplicate value for 'tool_call_id' of {id} in {place}",
        find=_second_result,
    ),
    Rule(
        id="openai-chat.tool-call-duplicate",
        demand="The calls of one assistant message have different ids; later messages may use an id again.",
        message="the id {id!a} stands in two calls of one message: give each call its own",
        says="Duplicate value for 'tool_call_id' of {id} in {place}",
        find=_second_call,
    ),
    Rule(
        id="openai-chat.tool-calls-empty",
        demand="`tool_calls` is left out where there are none. (Models of others: by model; Mistral takes it.)",
        message="tool_calls is an empty array: leave the key out",
        says=_EMPTY_ARRAY,
        find=_no_calls,
    ),
    Rule(
        id="openai-chat.tool-call-id-too-long",
        demand="A call's id has at most 40 characters. (Models of others: by model.)",
        message="the id has {length} characters, 40 are allowed: shorten it in the call and in its result",
        says=_TOO_LONG % _LONGEST_ID,
        find=_long_id,
    ),
    Rule(
        id="openai-chat.content-too-long",
        level=ProblemLevel.BY_MODEL,
        demand="A content string has at most 1,048,576 characters.",
        message="the content has {length} characters, 1,048,576 are allowed: shorten it, or send it in parts",
        says=_TOO_LONG % _LONGEST_TEXT,
        find=_long_text,
    ),
    Rule(
        id="openai-chat.content-missing",
        demand="Only an assistant message with calls (or a refusal, or audio) goes without content.",
        message="the message has no content: send a string, an empty one if need be, or leave the message out",
        says="Invalid value for 'content': expected a string, got null.",
        find=_says_nothing,
    ),
    Rule(
        id="openai-chat.part-type-missing",
        demand="Every part of a content array says its type.",
        message="the part does not say what it is: add 'type'",
        says="Missing required parameter: '{place}'.",
        find=_no_type,
    ),
    Rule(
        id="openai-chat.tool-part",
        demand="The parts of a tool message are text, or images.",
        message="a tool message cannot hold {kind!a}: send it in a user message behind the results",
        says="Invalid '{message}'. Content blocks are expected to be either text or image_url type.",
        find=_tool_part,
    ),
    Rule(
        id="openai-chat.audio",
        level=ProblemLevel.BY_MODEL,
        demand="Sound goes to models that take it (of OpenAI's, those with audio in their name: for others an error).",
        message="this part is sound, which only models for audio take: send a transcript, or use such a model",
        says="Invalid '{message}'. Content blocks are expected to be either text or image_url type.",
        find=_sound,
    ),
)
