"""From OpenAI's chat messages to ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from turnlog.errors import InvalidValueError
from turnlog.formats.call_ids import IdRule
from turnlog.formats.json_fields import (
    array_at,
    as_array,
    as_object,
    object_at,
    optional_array_at,
    optional_object_at,
    optional_text_at,
    text_at,
)
from turnlog.formats.media import decode_base64
from turnlog.formats.openai_chat.content import read_content
from turnlog.formats.reading import Reading
from turnlog.formats.reply import ParsedReply, usage_of, without_nulls
from turnlog.log.messages import (
    AssistantMessage,
    Content,
    MediaPart,
    Message,
    Native,
    Part,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)

#: ``Native.format`` of what is kept here.
FORMAT: Final = "openai-chat"
#: What the id of a call may be.
IDS: Final = IdRule(40)

#: The legacy API gave calls no id: call and result belong together by the function's name.
_FUNCTION_ID: Final = "function:"


def parse(data: Any, where: str = "message") -> Message:
    """The message that ``data``, a JSON object, says.

    Raises :class:`InvalidValueError` that begins with the place (``message.content[0].text must be…``), and
    :class:`UnstorableError` for what is no JSON value (R-9).
    """
    reading = Reading()
    fields = as_object(data, where)
    make = _read(fields, where, reading)
    return make(reading.native(FORMAT, fields, where))


def parse_messages(messages: Any, *, where: str = "messages") -> list[Message]:
    """The messages that a list of them says; errors as in :func:`parse`."""
    return [parse(data, f"{where}[{index}]") for index, data in enumerate(as_array(messages, where))]


def parse_reply(data: Any, where: str = "reply") -> ParsedReply:
    """The message of a whole answer's first choice, with its usage."""
    fields = as_object(without_nulls(data), where)
    choices = array_at(fields, "choices", where)
    if not choices:
        raise InvalidValueError(f"{where}.choices is empty")
    place = f"{where}.choices[0]"
    choice = as_object(choices[0], place)
    said = object_at(choice, "message", place)
    message: dict[str, Any] = {"role": "assistant", "content": None}
    message |= {key: value for key, value in said.items() if value != []}
    reading = Reading()
    reading.is_own = True
    make = _read(message | {"role": "assistant"}, f"{place}.message", reading)
    reply = make(reading.native(FORMAT, message, f"{place}.message"))
    if not isinstance(reply, AssistantMessage):
        raise InvalidValueError(f"{place}.message is no assistant's")
    usage = optional_object_at(fields, "usage", where)
    return ParsedReply(
        message=reply,
        usage=usage_of(usage, ("prompt_tokens",), ("completion_tokens",), f"{where}.usage"),
        model=optional_text_at(fields, "model", where),
        finish_reason=optional_text_at(choice, "finish_reason", place),
    )


def read(data: Any) -> list[Message]:
    """What one message of theirs says, in ours, without the original."""
    return [_read(as_object(data, "message"), "message", Reading())(None)]


def missing(data: Any) -> list[tuple[str, str]]:
    """Places within an original, and names, of what our message does not say."""
    reading = Reading()
    _read(as_object(data, ""), "", reading)
    return reading.missing()


_Make = Callable[[Native | None], Message]


def _read(fields: dict[str, Any], where: str, reading: Reading) -> _Make:
    """Gather what the message says; what is returned makes ours of it, with the original where it has to be kept."""
    role = text_at(fields, "role", where)
    reader = _ROLES.get(role)
    if reader is None:
        raise InvalidValueError(f"{where}.role is {role[:40]!a}, not one of {', '.join(_ROLES)}")
    return reader(fields, where, reading)


_SAID_KEYS: Final = frozenset({"role", "content"})
_ASSISTANT_KEYS: Final = frozenset({"role", "content", "tool_calls", "function_call", "refusal"})
_TOOL_KEYS: Final = frozenset({"role", "content", "tool_call_id", "name"})


def _system(fields: dict[str, Any], where: str, reading: Reading) -> _Make:
    content = _said(fields, where, reading)
    return lambda native: SystemMessage(content, native=native)


def _developer(fields: dict[str, Any], where: str, reading: Reading) -> _Make:
    reading.layout()
    return _system(fields, where, reading)


def _user(fields: dict[str, Any], where: str, reading: Reading) -> _Make:
    content = _said(fields, where, reading)
    return lambda native: UserMessage(content, native=native)


def _said(fields: dict[str, Any], where: str, reading: Reading) -> Content:
    reading.beyond(fields, _SAID_KEYS, where)
    return _content(fields, where, reading)


def _assistant(fields: dict[str, Any], where: str, reading: Reading) -> _Make:
    content = fields.get("content")
    if content is None:
        # Without content there have to be calls, or a refusal, for the API to take it.
        if "content" not in fields or not (fields.get("tool_calls") or fields.get("refusal")):
            reading.layout()
    else:
        content = _content(fields, where, reading)
    if fields.keys() - _SAID_KEYS:
        content = _with_other_words(fields, content, where, reading)
        calls = _calls(fields, where, reading)
        return lambda native: AssistantMessage(content, tool_calls=calls, native=native)
    return lambda native: AssistantMessage(content, native=native)


def _tool(fields: dict[str, Any], where: str, reading: Reading) -> _Make:
    call_id = text_at(fields, "tool_call_id", where)
    name = optional_text_at(fields, "name", where)
    reading.beyond(fields, _TOOL_KEYS, where)
    if not IDS.accepts(call_id) or (name is None and "name" in fields):
        reading.layout()
    result = ToolResult(call_id, _content(fields, where, reading), name=name)
    return lambda native: ToolMessage((result,), native=native)


def _function(fields: dict[str, Any], where: str, reading: Reading) -> _Make:
    reading.layout()
    name = text_at(fields, "name", where)
    reading.beyond(fields, _TOOL_KEYS, where)
    result = ToolResult(_FUNCTION_ID + name, _content(fields, where, reading), name=name)
    return lambda native: ToolMessage((result,), native=native)


_ROLES: Final[dict[str, Callable[[dict[str, Any], str, Reading], _Make]]] = {
    "system": _system,
    "developer": _developer,
    "user": _user,
    "assistant": _assistant,
    "tool": _tool,
    "function": _function,
}


#: Not in OpenAI's own API; the first is DeepSeek's, the second OpenRouter's, and many follow them.
_REASONING: Final = ("reasoning_content", "reasoning")
_KNOWN: Final = _ASSISTANT_KEYS | {"audio", *_REASONING}


def _content(fields: dict[str, Any], where: str, reading: Reading) -> Content:
    content = fields.get("content")
    if type(content) is str:
        return content
    if content is None:
        reading.layout()
        return None
    return read_content(content, f"{where}.content", reading)


def _with_other_words(fields: dict[str, Any], content: Content, where: str, reading: Reading) -> Content:
    """The content with what an assistant message says outside of it: reasoning, a refusal, speech."""
    reading.beyond(fields, _KNOWN, where)
    before = [ReasoningPart(text=thought) for thought in _thoughts(fields, where, reading)]
    after: list[Part] = []
    refusal = optional_text_at(fields, "refusal", where)
    if refusal is not None:
        after.append(TextPart(refusal, refusal=True))
        if content is not None or fields.get("tool_calls"):
            reading.layout()
    elif "refusal" in fields:
        reading.layout()
    if fields.get("audio") is not None:
        reading.is_own = True
        after += _audio(fields["audio"], silent=not content, where=f"{where}.audio")
    if before or "audio" in fields:
        reading.layout()
    if not before and not after:
        return content
    parts = (TextPart(content),) if isinstance(content, str) else content or ()
    return (*before, *parts, *after)


def _thoughts(fields: dict[str, Any], where: str, reading: Reading) -> list[str]:
    thoughts: list[str] = []
    for key in _REASONING:
        thought = fields.get(key)
        if key not in fields:
            continue
        reading.layout()
        if type(thought) is str and thought:
            thoughts.append(thought)
        elif thought:
            reading.unknown(f"{where}.{key}", key)
    return thoughts


def _audio(data: object, *, silent: bool, where: str) -> list[Part]:
    """What was spoken, and its transcript where the message has no text of its own."""
    fields = as_object(data, where)
    file_id = text_at(fields, "id", where)
    encoded = optional_text_at(fields, "data", where)
    transcript = optional_text_at(fields, "transcript", where)
    sound = None if encoded is None else decode_base64(encoded)
    part = MediaPart(media_type="audio/*", file_id=file_id if sound is None else None, data=sound)
    return [TextPart(transcript), part] if transcript and silent else [part]


def _calls(fields: dict[str, Any], where: str, reading: Reading) -> tuple[ToolCall, ...]:
    calls = optional_array_at(fields, "tool_calls", where)
    if not calls and "tool_calls" in fields:
        reading.layout()
    parsed = [_call(call, f"{where}.tool_calls[{index}]", reading) for index, call in enumerate(calls)]
    if "function_call" in fields:
        reading.layout()
    if fields.get("function_call") is not None:
        place = f"{where}.function_call"
        function = object_at(fields, "function_call", where)
        name = text_at(function, "name", place)
        parsed.append(ToolCall(_FUNCTION_ID + name, name, text_at(function, "arguments", place)))
    return tuple(parsed)


_CALL_KEYS: Final = frozenset({"id", "type", "function"})
_FUNCTION_KEYS: Final = frozenset({"name", "arguments"})


def _call(data: object, where: str, reading: Reading) -> ToolCall:
    fields = as_object(data, where)
    call_id = text_at(fields, "id", where)
    if fields.keys() != _CALL_KEYS or fields["type"] != "function" or not IDS.accepts(call_id):
        reading.layout()
        reading.beyond(fields, _CALL_KEYS | {"custom", "index"}, where)
    # A custom tool takes free text where a function takes JSON; the keys differ, the meaning does not.
    for kind, text in (("function", "arguments"), ("custom", "input")):
        if kind in fields:
            called = object_at(fields, kind, where)
            place = f"{where}.{kind}"
            if called.keys() != _FUNCTION_KEYS:
                reading.layout()
                reading.beyond(called, _FUNCTION_KEYS | {"input"}, place)
            return ToolCall(call_id, text_at(called, "name", place), text_at(called, text, place))
    raise InvalidValueError(f"{where} has neither 'function' nor 'custom'")
