"""From OpenAI's chat messages to ours."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Final

from turnlog.errors import InvalidValueError
from turnlog.formats.call_ids import IdRule
from turnlog.formats.json_fields import (
    array_at,
    as_array,
    as_object,
    is_array,
    is_object,
    object_at,
    optional_array_at,
    optional_object_at,
    optional_text_at,
    text_at,
)
from turnlog.formats.media import decode_base64
from turnlog.formats.openai_chat.content import is_image, read_content
from turnlog.formats.reading import Reading, made
from turnlog.formats.reply import ParsedReply, all_present, present, usage_of
from turnlog.log.messages import (
    AssistantMessage,
    MediaPart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolResult,
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
    reading, role = _read(data, where)
    return made(reading, role, reading.native(FORMAT, data, where))[0]


def parse_messages(messages: Any, *, where: str = "messages") -> list[Message]:
    """The messages that a list of them says; errors as in :func:`parse`."""
    return [parse(data, f"{where}[{index}]") for index, data in enumerate(as_array(messages, where))]


def parse_reply(data: Any, where: str = "reply") -> ParsedReply:
    """The message of a whole answer's first choice, with its usage."""
    fields = as_object(data, where)
    choices = array_at(fields, "choices", where)
    if not choices:
        raise InvalidValueError(f"{where}.choices is empty")
    place = f"{where}.choices[0]"
    choice = as_object(choices[0], place)
    message = _sendable(object_at(choice, "message", place))
    reading, _ = _read(message, f"{place}.message")
    reading.is_own = True
    native = reading.native(FORMAT, message, f"{place}.message")
    usage = optional_object_at(fields, "usage", where)
    return ParsedReply(
        message=AssistantMessage(reading.content(), tool_calls=reading.calls, native=native),
        usage=usage_of(usage, ("prompt_tokens",), ("completion_tokens",), f"{where}.usage"),
        model=optional_text_at(fields, "model", where),
        finish_reason=optional_text_at(choice, "finish_reason", place),
    )


def _sendable(said: dict[str, Any]) -> dict[str, Any]:
    """A reply's message as it is taken back: without empty keys, and with content where there is nothing else."""
    message = {key: value for key, value in present(said).items() if value != []}
    if is_array(message.get("tool_calls")):
        message["tool_calls"] = _sendable_calls(all_present(message["tool_calls"]))
    is_silent = not message.keys() & {"tool_calls", "refusal", "audio", "function_call"}
    return {"content": "" if is_silent else None} | message | {"role": "assistant"}


def _sendable_calls(calls: list[Any]) -> list[Any]:
    """The calls with what some services leave out: an id, the type, and the arguments of a function without any."""
    ids = {call["id"] for call in calls if is_object(call) and type(call.get("id")) is str}
    free = (call_id for number in count(1) if (call_id := f"call_{number}") not in ids)
    sendable: list[Any] = []
    for call in calls:
        if is_object(call) and is_object(call.get("function")):
            function = {"arguments": ""} | present(call["function"])
            sendable.append({"type": "function"} | call | {"id": call.get("id") or next(free), "function": function})
        else:
            sendable.append(call)
    return sendable


def read(data: Any) -> tuple[Reading, str]:
    """What one message of theirs says, and who says it."""
    return _read(data, "message")


def missing(data: Any) -> list[tuple[str, str]]:
    """Places within an original, and names, of what our message does not say."""
    reading, _ = _read(data, "")
    return reading.missing()


def _read(data: Any, where: str) -> tuple[Reading, str]:
    fields = as_object(data, where)
    role = text_at(fields, "role", where)
    reader = _ROLES.get(role)
    if reader is None:
        raise InvalidValueError(f"{where}.role is {role[:40]!a}, not one of {', '.join(_ROLES)}")
    reading = Reading()
    reader(fields, where, reading)
    return reading, "system" if role == "developer" else role


_SAID_KEYS: Final = frozenset({"role", "content"})
_TOOL_KEYS: Final = frozenset({"role", "content", "tool_call_id", "name"})


def _said(fields: dict[str, Any], where: str, reading: Reading) -> None:
    reading.beyond(fields, _SAID_KEYS, where)
    _content(fields, where, reading)
    if reading.has(TextPart):
        reading.layout()  # only a model refuses


def _developer(fields: dict[str, Any], where: str, reading: Reading) -> None:
    reading.layout()
    _said(fields, where, reading)


def _assistant(fields: dict[str, Any], where: str, reading: Reading) -> None:
    if fields.get("content") is not None:
        _content(fields, where, reading)
        if reading.has(MediaPart):
            reading.layout()
    elif "content" not in fields or not (fields.get("tool_calls") or fields.get("refusal")):
        # Without content there have to be calls, or a refusal, for the API to take it.
        reading.layout()
    if not fields.keys() <= _SAID_KEYS:
        _other_words(fields, where, reading)
        _calls(fields, where, reading)


def _tool(fields: dict[str, Any], where: str, reading: Reading) -> None:
    call_id = text_at(fields, "tool_call_id", where)
    name = optional_text_at(fields, "name", where)
    reading.beyond(fields, _TOOL_KEYS, where)
    if not IDS.accepts(call_id) or (name is None and "name" in fields):
        reading.layout()
    _result(call_id, name, fields, where, reading)


def _function(fields: dict[str, Any], where: str, reading: Reading) -> None:
    reading.layout()
    name = text_at(fields, "name", where)
    reading.beyond(fields, _TOOL_KEYS, where)
    _result(_FUNCTION_ID + name, name, fields, where, reading)


def _result(call_id: str, name: str | None, fields: dict[str, Any], where: str, reading: Reading) -> None:
    _content(fields, where, reading)
    if reading.has(TextPart) or not all(isinstance(part, str) or is_image(part) for part in reading.parts):
        reading.layout()
    reading.results.append(ToolResult(call_id, reading.content(), name=name))
    reading.parts = []


_ROLES: Final[dict[str, Callable[[dict[str, Any], str, Reading], None]]] = {
    "system": _said,
    "developer": _developer,
    "user": _said,
    "assistant": _assistant,
    "tool": _tool,
    "function": _function,
}


def _content(fields: dict[str, Any], where: str, reading: Reading) -> None:
    content = fields.get("content")
    if type(content) is str:
        reading.parts.append(content)
    elif content is None:
        reading.layout()
    else:
        read_content(content, f"{where}.content", reading)


#: Not in OpenAI's own API; the first is DeepSeek's, the second OpenRouter's, and many follow them.
_REASONING: Final = ("reasoning_content", "reasoning")
_KNOWN: Final = frozenset({"role", "content", "tool_calls", "function_call", "refusal", "audio", *_REASONING})


def _other_words(fields: dict[str, Any], where: str, reading: Reading) -> None:
    """What an assistant message says outside of its content: reasoning, a refusal, speech."""
    reading.beyond(fields, _KNOWN, where)
    is_silent = not reading.parts or reading.parts == [""]
    thoughts = _thoughts(fields, where, reading)
    if thoughts:
        reading.parts = [*map(_thought, thoughts), *reading.parts]
    refusal = optional_text_at(fields, "refusal", where)
    if refusal is not None:
        if reading.parts or fields.get("tool_calls"):
            reading.layout()
        reading.parts.append(TextPart(refusal, refusal=True))
    elif "refusal" in fields:
        reading.layout()
    if "audio" in fields:
        reading.layout()
    if fields.get("audio") is not None:
        reading.is_own = True
        reading.parts += _audio(fields["audio"], silent=is_silent, where=f"{where}.audio")


def _thought(text: str) -> ReasoningPart:
    return ReasoningPart(text=text)


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


def _audio(data: object, *, silent: bool, where: str) -> list[str | MediaPart]:
    """What was spoken, and its transcript where the message has no text of its own."""
    fields = as_object(data, where)
    file_id = text_at(fields, "id", where)
    encoded = optional_text_at(fields, "data", where)
    transcript = optional_text_at(fields, "transcript", where)
    sound = None if encoded is None else decode_base64(encoded)
    part = MediaPart(media_type="audio/*", file_id=file_id if sound is None else None, data=sound)
    return [transcript, part] if transcript and silent else [part]


def _calls(fields: dict[str, Any], where: str, reading: Reading) -> None:
    calls = optional_array_at(fields, "tool_calls", where)
    if not calls and "tool_calls" in fields:
        reading.layout()
    for index, call in enumerate(calls):
        reading.calls.append(_call(call, f"{where}.tool_calls[{index}]", reading))
    if "function_call" in fields:
        reading.layout()
    if fields.get("function_call") is not None:
        place = f"{where}.function_call"
        function = object_at(fields, "function_call", where)
        name = text_at(function, "name", place)
        reading.calls.append(ToolCall(_FUNCTION_ID + name, name, text_at(function, "arguments", place)))


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
