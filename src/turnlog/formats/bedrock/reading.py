"""From Bedrock's messages to ours."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from turnlog.errors import InvalidValueError
from turnlog.formats.arguments import arguments_text
from turnlog.formats.bedrock.media import read_media
from turnlog.formats.call_ids import WORD, IdRule
from turnlog.formats.json_fields import (
    array_at,
    as_array,
    as_object,
    is_object,
    json_name,
    object_at,
    optional_object_at,
    optional_text_at,
    text_at,
)
from turnlog.formats.reading import Reading, is_plain_text, kept, made, standing_apart
from turnlog.formats.reply import ParsedReply, as_json, usage_of
from turnlog.log.messages import (
    AssistantMessage,
    MediaPart,
    Message,
    ReasoningPart,
    SystemMessage,
    ToolCall,
    ToolResult,
    ToolStatus,
)

#: ``Native.format`` of what is kept here.
FORMAT: Final = "bedrock"
#: What a ``toolUseId`` may be.
IDS: Final = IdRule(64, WORD)

_ROLES: Final = ("user", "assistant")
_STATUSES: Final = {"success": ToolStatus.OK, "error": ToolStatus.ERROR}


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
    fields = as_object(as_json(data, where), where)
    output = object_at(fields, "output", where)
    message = object_at(output, "message", f"{where}.output")
    place = f"{where}.output.message"
    reading, _ = _read(message | {"role": "assistant"}, place)
    reading.is_own = True
    usage = usage_of(
        optional_object_at(fields, "usage", where),
        ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"),
        ("outputTokens",),
        f"{where}.usage",
    )
    native = reading.native(FORMAT, message | {"role": "assistant"}, place)
    return ParsedReply(
        message=AssistantMessage(reading.content(), tool_calls=reading.calls, native=native),
        usage=usage,
        finish_reason=optional_text_at(fields, "stopReason", where),
    )


def read(data: Any) -> tuple[Reading, str]:
    """What one message of theirs says, and who says it."""
    return _read(data, "message")


def read_system(system: Any) -> list[Message]:
    """The message that the ``system`` of a request says; none where it is absent, or empty."""
    if system is None or system == []:
        return []
    reading = _read_system(system)
    native = kept(FORMAT, {"system": system}, "system") if reading.odd else None
    return [SystemMessage(reading.content(), native=native)]


def missing(data: Any) -> list[tuple[str, str]]:
    """Places within an original, and names, of what our message does not say."""
    if is_object(data) and "system" in data and "content" not in data:
        return _read_system(data["system"]).missing()
    reading, _ = _read(data, "")
    return reading.missing()


def _read_system(system: Any) -> Reading:
    reading = Reading()
    _blocks(as_array(system, "system"), _SYSTEM_BLOCKS, reading, "system")
    return reading


def _read(data: Any, where: str) -> tuple[Reading, str]:
    fields = as_object(data, where)
    role = text_at(fields, "role", where)
    if role not in _ROLES:
        raise InvalidValueError(f"{where}.role is {role[:40]!a}, not one of {', '.join(_ROLES)}")
    reading = Reading()
    reading.beyond(fields, _MESSAGE_KEYS, where)
    content = array_at(fields, "content", where)
    if not content:
        reading.layout()
    _blocks(content, _USER_BLOCKS if role == "user" else _ASSISTANT_BLOCKS, reading, f"{where}.content")
    if role == "assistant" and reading.has(MediaPart):
        reading.layout()  # ours sends media to models only
    return reading, role


_Reader = Callable[[dict[str, Any], str, Reading], None]


def _blocks(blocks: list[Any], readers: dict[str, _Reader], reading: Reading, where: str) -> None:
    for index, data in enumerate(blocks):
        if is_plain_text(data, "text") and len(data) == 1 and not reading.calls:
            reading.parts.append(data["text"])
            continue
        place = f"{where}[{index}]"
        fields = as_object(data, place)
        kind = next(iter(fields), None)
        if kind is None:
            raise InvalidValueError(f"{place} is an empty object, not a block")
        reader = readers.get(kind)
        if reader is None or len(fields) != 1:
            reading.unknown(place, kind)
        else:
            reader(fields, place, reading)


_MESSAGE_KEYS: Final = frozenset({"role", "content"})
_CALL_KEYS: Final = frozenset({"toolUseId", "name", "input"})
_RESULT_KEYS: Final = frozenset({"toolUseId", "content", "status"})


def _text(fields: dict[str, Any], where: str, reading: Reading) -> None:
    if reading.calls:
        reading.layout()  # ours has its calls last
    reading.text(text_at(fields, "text", where))


def _json(fields: dict[str, Any], where: str, reading: Reading) -> None:
    reading.layout()
    reading.text(arguments_text(fields["json"], f"{where}.json"))


def _medium(kind: str, fields: dict[str, Any], where: str, reading: Reading) -> None:
    read_media(kind, object_at(fields, kind, where), f"{where}.{kind}", reading)


def _reasoning(fields: dict[str, Any], where: str, reading: Reading) -> None:
    reading.is_own = True
    where = f"{where}.reasoningContent"
    content = as_object(fields["reasoningContent"], where)
    if reading.calls or len(content) != 1:
        reading.layout()
    if "reasoningText" in content:
        where = f"{where}.reasoningText"
        thought = as_object(content["reasoningText"], where)
        reading.beyond(thought, frozenset({"text", "signature"}), where)
        signature = optional_text_at(thought, "signature", where)
        if signature is None:
            reading.layout()
        reading.parts.append(ReasoningPart(text=text_at(thought, "text", where), signature=signature))
    elif "redactedContent" in content:
        reading.parts.append(ReasoningPart(data=text_at(content, "redactedContent", where)))
    else:
        reading.unknown(where, "reasoningContent")


def _call(fields: dict[str, Any], where: str, reading: Reading) -> None:
    where = f"{where}.toolUse"
    call = as_object(fields["toolUse"], where)
    if "type" in call:
        reading.unknown(where, "call of a server's tool")
        return
    call_id = text_at(call, "toolUseId", where)
    reading.beyond(call, _CALL_KEYS, where)
    value = object_at(call, "input", where)
    if not IDS.accepts(call_id):
        reading.layout()
    reading.calls.append(ToolCall(call_id, text_at(call, "name", where), arguments_text(value, f"{where}.input")))


def _result(fields: dict[str, Any], where: str, reading: Reading) -> None:
    where = f"{where}.toolResult"
    result = as_object(fields["toolResult"], where)
    call_id = text_at(result, "toolUseId", where)
    status = optional_text_at(result, "status", where)
    reading.beyond(result, _RESULT_KEYS, where)
    inner = Reading()
    _blocks(array_at(result, "content", where), _RESULT_BLOCKS, inner, f"{where}.content")
    reading.odd += inner.odd
    if status not in _STATUSES or reading.parts or not IDS.accepts(call_id):
        reading.layout()
    found = _STATUSES.get(status or "success")
    if found is None:
        raise InvalidValueError(f"{where}.status is {json_name(status)} other than 'success' and 'error'")
    reading.results.append(ToolResult(call_id, inner.content(), status=found))


_MEDIA: Final[dict[str, _Reader]] = {kind: partial(_medium, kind) for kind in ("image", "document", "video")}
_SYSTEM_BLOCKS: Final[dict[str, _Reader]] = {"text": _text}
_RESULT_BLOCKS: Final[dict[str, _Reader]] = {"text": _text, "json": _json, **_MEDIA}
_USER_BLOCKS: Final[dict[str, _Reader]] = {"text": _text, "toolResult": _result, **_MEDIA}
_ASSISTANT_BLOCKS: Final[dict[str, _Reader]] = {
    "text": _text,
    "reasoningContent": _reasoning,
    "toolUse": _call,
    **_MEDIA,
}
