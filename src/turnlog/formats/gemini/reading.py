"""From Gemini's contents to ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from turnlog.errors import InvalidValueError
from turnlog.formats.arguments import arguments_text
from turnlog.formats.call_ids import IdRule
from turnlog.formats.gemini.keys import in_camel_case, respelled
from turnlog.formats.gemini.media import read_file, read_inline
from turnlog.formats.gemini.responses import read_response
from turnlog.formats.json_fields import (
    array_at,
    as_array,
    as_object,
    is_object,
    object_at,
    optional_array_at,
    optional_object_at,
    optional_text_at,
    text_at,
)
from turnlog.formats.reading import Reading, is_plain_text, kept, made, standing_apart
from turnlog.formats.reply import ParsedReply, all_present, as_json, present, usage_of
from turnlog.log.messages import AssistantMessage, Message, ReasoningPart, SystemMessage, ToolCall

#: ``Native.format`` of what is kept here.
FORMAT: Final = "gemini"
#: Ids are the caller's affair; older models send none.
IDS: Final = IdRule(256)
#: Calls without an id are told apart by name and number within their turn, as are their results.
_NUMBERED: Final = "function:"

#: Where the system instruction stands in a request.
SYSTEM: Final = "systemInstruction"
SYSTEM_KEYS: Final = frozenset({SYSTEM, "system_instruction"})

_ROLES: Final = ("user", "model")


def parse(contents: Any, *, system: Any = None, where: str = "contents") -> list[Message]:
    """The messages that ``contents`` and a system instruction say; a user's turn with results of tools becomes two.

    Raises :class:`InvalidValueError` that begins with the place (``contents[0].parts[1].text must be…``).
    """
    parsed = read_system(system)
    found = as_array(contents, where)
    apart = standing_apart(found, "model")
    for index, data in enumerate(found):
        place = f"{where}[{index}]"
        reading, role = _read(data, place)
        if index in apart:
            reading.layout()
        parsed += made(reading, role, reading.native(FORMAT, data, place))
    return parsed


def parse_reply(data: Any, where: str = "reply") -> ParsedReply:
    """The message of a whole answer's first candidate, with its usage. Keys in snake case, as SDKs dump them, too."""
    fields = _camel(as_object(as_json(data, where), where))
    candidates = array_at(fields, "candidates", where)
    if not candidates:
        raise InvalidValueError(f"{where}.candidates is empty")
    place = f"{where}.candidates[0]"
    candidate = _camel(as_object(candidates[0], place))
    content = optional_object_at(candidate, "content", place) or {}
    parts = all_present(optional_array_at(content, "parts", f"{place}.content"))
    message = {"role": "model", "parts": [_without_nulls_inside(part) if is_object(part) else part for part in parts]}
    reading, _ = _read(message, f"{place}.content")
    reading.is_own = True
    usage = optional_object_at(fields, "usageMetadata", where)
    return ParsedReply(
        message=AssistantMessage(
            reading.content(),
            tool_calls=reading.calls,
            native=reading.native(FORMAT, message, f"{place}.content"),
        ),
        usage=usage_of(
            usage and _camel(usage),
            ("promptTokenCount", "toolUsePromptTokenCount"),
            ("candidatesTokenCount", "thoughtsTokenCount"),
            f"{where}.usageMetadata",
        ),
        model=optional_text_at(fields, "modelVersion", where),
        finish_reason=optional_text_at(candidate, "finishReason", place),
    )


def _without_nulls_inside(part: dict[str, Any]) -> dict[str, Any]:
    """A part whose call, data and so on have no empty keys; the arguments of a call are left alone."""
    return {key: present(value) if is_object(value) else value for key, value in part.items()}


def read(data: Any) -> tuple[Reading, str]:
    """What one content of theirs says, and who says it."""
    return _read(data, "content")


def read_system(system: Any, key: str = SYSTEM) -> list[Message]:
    """The message that a request's system instruction says; none where it is absent. ``key`` is how it was spelled."""
    if system is None:
        return []
    reading = _read_system(system)
    native = kept(FORMAT, {key: system}, key) if reading.odd or key != SYSTEM else None
    return [SystemMessage(reading.content(), native=native)]


def missing(data: Any) -> list[tuple[str, str]]:
    """Places within an original, and names, of what our message does not say."""
    if is_object(data):
        for key in SYSTEM_KEYS & data.keys():
            return _read_system(data[key]).missing()
    reading, _ = _read(data, "")
    return reading.missing()


def _read_system(system: Any) -> Reading:
    where = "systemInstruction"
    fields = as_object(system, where)
    reading = Reading()
    if "role" in fields:
        reading.layout()
    reading.beyond(fields, _CONTENT_KEYS, where)
    parts = array_at(fields, "parts", where)
    if not parts:
        reading.layout()
    _parts(parts, _SYSTEM_PARTS, reading, f"{where}.parts")
    return reading


def _read(data: Any, where: str) -> tuple[Reading, str]:
    fields = as_object(data, where)
    reading = Reading()
    role = optional_text_at(fields, "role", where)
    if role is None:
        reading.layout()
    elif role not in _ROLES:
        raise InvalidValueError(f"{where}.role is {role[:40]!a}, not one of {', '.join(_ROLES)}")
    reading.beyond(fields, _CONTENT_KEYS, where)
    parts = array_at(fields, "parts", where)
    if not parts:
        reading.layout()
    _parts(parts, _MODEL_PARTS if role == "model" else _USER_PARTS, reading, f"{where}.parts")
    return reading, "assistant" if role == "model" else "user"


_Reader = Callable[[dict[str, Any], str, Reading], None]


def _parts(parts: list[Any], readers: dict[str, _Reader], reading: Reading, where: str) -> None:
    for index, data in enumerate(parts):
        if is_plain_text(data, "text") and len(data) == 1 and not reading.calls:
            reading.parts.append(data["text"])
            continue
        place = f"{where}[{index}]"
        fields = in_camel_case(as_object(data, place), reading)
        kind = next((key for key in fields if key in readers), None)
        if kind is not None:
            try:
                readers[kind](fields, place, reading)
            except InvalidValueError as error:
                raise respelled(error, data) from None
        elif fields:
            reading.unknown(place, next((key for key in fields if key not in _BESIDE), "part"))
        else:
            raise InvalidValueError(f"{place} is an empty object, not a part")


def _camel(fields: dict[str, Any]) -> dict[str, Any]:
    return in_camel_case(fields, Reading())


_CONTENT_KEYS: Final = frozenset({"role", "parts"})
_BESIDE: Final = frozenset({"thought", "thoughtSignature"})
_TEXT_KEYS: Final = frozenset({"text"})
_THOUGHT_KEYS: Final = frozenset({"text", "thought", "thoughtSignature"})
_CALL_KEYS: Final = frozenset({"functionCall"})
_RESPONSE_KEYS: Final = frozenset({"functionResponse"})
_INNER_CALL_KEYS: Final = frozenset({"id", "name", "args"})


def _text(fields: dict[str, Any], where: str, reading: Reading) -> None:
    text = text_at(fields, "text", where)
    if reading.calls:
        reading.layout()  # ours has its calls last
    if fields.get("thought") is True:
        reading.is_own = True
        reading.beyond(fields, _THOUGHT_KEYS, where)
        reading.parts.append(ReasoningPart(text=text, signature=optional_text_at(fields, "thoughtSignature", where)))
        return
    reading.beyond(fields, _TEXT_KEYS, where)
    reading.text(text)


def _call(fields: dict[str, Any], where: str, reading: Reading) -> None:
    reading.is_own = True
    reading.beyond(fields, _CALL_KEYS, where)
    where = f"{where}.functionCall"
    call = object_at(fields, "functionCall", where.removesuffix(".functionCall"))
    reading.beyond(call, _INNER_CALL_KEYS, where)
    name = text_at(call, "name", where)
    call_id = optional_text_at(call, "id", where)
    if not call_id or not IDS.accepts(call_id) or call.get("args") is None:
        reading.layout()
    arguments = arguments_text(optional_object_at(call, "args", where), f"{where}.args")
    same = sum(other.name == name for other in reading.calls)
    reading.calls.append(ToolCall(call_id or numbered(name, same), name, arguments))


def _response(fields: dict[str, Any], where: str, reading: Reading) -> None:
    reading.beyond(fields, _RESPONSE_KEYS, where)
    if reading.parts:
        reading.layout()
    response = object_at(fields, "functionResponse", where)
    place = f"{where}.functionResponse"
    name = text_at(response, "name", place)
    call_id = optional_text_at(response, "id", place)
    if not call_id or not IDS.accepts(call_id):
        reading.layout()
        same = sum(other.name == name for other in reading.results)
        call_id = call_id or numbered(name, same)
    if not name:
        reading.layout()
    reading.results.append(read_response(response, call_id, name, place, reading))


def numbered(name: str, number: int) -> str:
    """The id of a call that came without one; ``number`` counts the calls of that name before it in its turn."""
    return f"{_NUMBERED}{name}:{number + 1}" if number else f"{_NUMBERED}{name}"


_MEDIA: Final[dict[str, _Reader]] = {"inlineData": read_inline, "fileData": read_file}
_SYSTEM_PARTS: Final[dict[str, _Reader]] = {"text": _text}
_USER_PARTS: Final[dict[str, _Reader]] = {"text": _text, "functionResponse": _response, **_MEDIA}
_MODEL_PARTS: Final[dict[str, _Reader]] = {"text": _text, "functionCall": _call, **_MEDIA}
