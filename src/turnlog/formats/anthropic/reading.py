"""From Anthropic's messages to ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from turnlog.errors import InvalidValueError
from turnlog.formats.anthropic.media import read_document, read_image
from turnlog.formats.arguments import arguments_text
from turnlog.formats.call_ids import WORD, IdRule
from turnlog.formats.json_fields import (
    array_at,
    as_array,
    as_object,
    is_array,
    is_object,
    json_name,
    object_at,
    optional_object_at,
    optional_text_at,
    text_at,
)
from turnlog.formats.reading import Reading, is_plain_text, kept, made, standing_apart
from turnlog.formats.reply import ParsedReply, all_present, usage_of
from turnlog.formats.text import is_blank
from turnlog.log.messages import (
    AssistantMessage,
    Content,
    Message,
    ReasoningPart,
    SystemMessage,
    ToolCall,
    ToolResult,
    ToolStatus,
)

#: ``Native.format`` of what is kept here.
FORMAT: Final = "anthropic"
#: What a ``tool_use`` id may be.
IDS: Final = IdRule(64, WORD)

_ROLES: Final = ("user", "assistant", "system")


def parse(messages: Any, *, system: Any = None, where: str = "messages") -> list[Message]:
    """The messages that ``messages`` and ``system`` say; a user's turn with results of tools becomes two.

    Raises :class:`InvalidValueError` that begins with the place (``messages[0].content[1].text must be…``).
    """
    parsed = read_system(system)
    found = as_array(messages, where)
    apart = standing_apart(found, "assistant")
    for index, data in enumerate(found):
        place = f"{where}[{index}]"
        reading, role = _read(data, place)
        if index in apart:
            reading.layout()
        parsed += made(reading, role, reading.native(FORMAT, data, place))
    return parsed


def parse_reply(data: Any, where: str = "reply") -> ParsedReply:
    """The message of a whole answer, with its usage."""
    fields = as_object(data, where)
    message = {"role": "assistant", "content": all_present(array_at(fields, "content", where))}
    reading, _ = _read(message, where)
    reading.is_own = True
    native = reading.native(FORMAT, message, where)
    usage = usage_of(
        optional_object_at(fields, "usage", where),
        ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
        ("output_tokens",),
        f"{where}.usage",
    )
    return ParsedReply(
        message=AssistantMessage(reading.content(), tool_calls=reading.calls, native=native),
        usage=usage,
        model=optional_text_at(fields, "model", where),
        finish_reason=optional_text_at(fields, "stop_reason", where),
    )


def read(data: Any) -> tuple[Reading, str]:
    """What one message of theirs says, and who says it."""
    return _read(data, "message")


def read_system(system: Any) -> list[Message]:
    """The message that the ``system`` of a request says; none where it is absent, or an empty list."""
    if system is None or system == []:
        return []
    if isinstance(system, str):
        return [SystemMessage(system, native=kept(FORMAT, {"system": system}, "system") if is_blank(system) else None)]
    reading = _read_system(system)
    native = kept(FORMAT, {"system": system}, "system") if reading.odd or len(system) == 1 else None
    return [SystemMessage(reading.content(), native=native)]


def missing(data: Any) -> list[tuple[str, str]]:
    """Places within an original, and names, of what our message does not say."""
    if is_object(data) and "system" in data and "content" not in data:
        return [] if isinstance(data["system"], str) else _read_system(data["system"]).missing()
    reading, _ = _read(data, "")
    return reading.missing()


def _read_system(system: Any) -> Reading:
    reading = Reading()
    if not is_array(system):
        raise InvalidValueError(f"system must be a string, an array of blocks, or null, not {json_name(system)}")
    _blocks(system, _SYSTEM_BLOCKS, reading, "system")
    return reading


def _read(data: Any, where: str) -> tuple[Reading, str]:
    fields = as_object(data, where)
    role = text_at(fields, "role", where)
    if role not in _ROLES:
        raise InvalidValueError(f"{where}.role is {role[:40]!a}, not one of {', '.join(_ROLES)}")
    reading = Reading()
    reading.beyond(fields, _MESSAGE_KEYS, where)
    content = fields.get("content")
    if isinstance(content, str):
        reading.text(content)
        reading.layout()
    elif is_array(content):
        _blocks(content, _BLOCKS[role], reading, f"{where}.content")
        if not content:
            reading.layout()
    else:
        what = json_name(content) if "content" in fields else "absent"
        raise InvalidValueError(f"{where}.content must be a string or an array of blocks, not {what}")
    if role == "system":
        reading.layout()  # ours stands at the top of a request
    return reading, role


_Reader = Callable[[dict[str, Any], str, Reading], None]


def _blocks(blocks: list[Any], readers: dict[str, _Reader], reading: Reading, where: str) -> None:
    for index, data in enumerate(blocks):
        if is_plain_text(data, "text") and data.get("type") == "text" and not reading.calls:
            reading.parts.append(data["text"])
            continue
        place = f"{where}[{index}]"
        fields = as_object(data, place)
        kind = text_at(fields, "type", place)
        reader = readers.get(kind)
        if reader is None:
            reading.unknown(place, kind)
        else:
            reader(fields, place, reading)


_MESSAGE_KEYS: Final = frozenset({"role", "content"})
_TEXT_KEYS: Final = frozenset({"type", "text"})
_THINKING_KEYS: Final = frozenset({"type", "thinking", "signature"})
_REDACTED_KEYS: Final = frozenset({"type", "data"})
_CALL_KEYS: Final = frozenset({"type", "id", "name", "input"})
_RESULT_KEYS: Final = frozenset({"type", "tool_use_id", "content", "is_error"})


def _text(fields: dict[str, Any], where: str, reading: Reading) -> None:
    reading.beyond(fields, _TEXT_KEYS, where)
    if reading.calls:
        reading.layout()  # ours has its calls last
    reading.text(text_at(fields, "text", where))


def _thinking(fields: dict[str, Any], where: str, reading: Reading) -> None:
    reading.is_own = True
    reading.beyond(fields, _THINKING_KEYS, where)
    signature = optional_text_at(fields, "signature", where)
    if reading.calls or not signature:
        reading.layout()
    reading.parts.append(ReasoningPart(text=text_at(fields, "thinking", where), signature=signature))


def _redacted(fields: dict[str, Any], where: str, reading: Reading) -> None:
    reading.is_own = True
    reading.beyond(fields, _REDACTED_KEYS, where)
    if reading.calls:
        reading.layout()
    reading.parts.append(ReasoningPart(data=text_at(fields, "data", where)))


def _call(fields: dict[str, Any], where: str, reading: Reading) -> None:
    call_id = text_at(fields, "id", where)
    reading.beyond(fields, _CALL_KEYS, where)
    if not IDS.accepts(call_id):
        reading.layout()
    arguments = arguments_text(object_at(fields, "input", where), f"{where}.input")
    reading.calls.append(ToolCall(call_id, text_at(fields, "name", where), arguments))


def _result(fields: dict[str, Any], where: str, reading: Reading) -> None:
    call_id = text_at(fields, "tool_use_id", where)
    is_error = fields.get("is_error", False)
    if type(is_error) is not bool:
        raise InvalidValueError(f"{where}.is_error must be a boolean, not {json_name(is_error)}")
    reading.beyond(fields, _RESULT_KEYS, where)
    if reading.parts or not IDS.accepts(call_id) or is_error != ("is_error" in fields):
        reading.layout()
    content = _result_content(fields, where, reading)
    status = ToolStatus.ERROR if is_error else ToolStatus.OK
    reading.results.append(ToolResult(call_id, content, status=status))


def _result_content(fields: dict[str, Any], where: str, reading: Reading) -> Content:
    content = fields.get("content")
    if content is None:
        reading.layout()
        return None
    if isinstance(content, str):
        return content
    inner = Reading()
    found = as_array(content, f"{where}.content")
    _blocks(found, _RESULT_BLOCKS, inner, f"{where}.content")
    reading.odd += inner.odd
    reading.is_own |= inner.is_own
    if not found or (len(found) == 1 and found[0]["type"] == "text"):
        reading.layout()
    return inner.content()


_MEDIA: Final[dict[str, _Reader]] = {"image": read_image, "document": read_document}
_SYSTEM_BLOCKS: Final[dict[str, _Reader]] = {"text": _text}
_RESULT_BLOCKS: Final[dict[str, _Reader]] = {"text": _text, **_MEDIA}
_BLOCKS: Final[dict[str, dict[str, _Reader]]] = {
    "user": {"text": _text, "tool_result": _result, **_MEDIA},
    "assistant": {"text": _text, "thinking": _thinking, "redacted_thinking": _redacted, "tool_use": _call},
    "system": _SYSTEM_BLOCKS,
}
