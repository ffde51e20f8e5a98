"""From items of the Responses API to our messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct

from turnlog.errors import InvalidValueError
from turnlog.formats.call_ids import WORD, IdRule
from turnlog.formats.json_fields import (
    array_at,
    as_array,
    as_object,
    is_array,
    is_object,
    json_name,
    optional_array_at,
    optional_object_at,
    optional_text_at,
    text_at,
)
from turnlog.formats.openai_responses.content import read_content
from turnlog.formats.reading import Reading, all_kept, kept, made
from turnlog.formats.reply import ParsedReply, all_present, usage_of
from turnlog.formats.text import is_blank
from turnlog.log.messages import (
    AssistantMessage,
    MediaPart,
    Message,
    Native,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
)

#: ``Native.format`` of what is kept here.
FORMAT: Final = "openai-responses"
#: What a ``call_id`` may be.
IDS: Final = IdRule(64, WORD, is_unique=True)

_ROLES: Final = ("user", "assistant", "system", "developer")
_WHOSE: Final = {"user": "user", "system": "system", "developer": "system"}
#: Items that have no role, and whose they are.
_MADE: Final = {
    "function_call": "assistant",
    "custom_tool_call": "assistant",
    "reasoning": "assistant",
    "function_call_output": "tool",
    "custom_tool_call_output": "tool",
}


class Piece(Struct, frozen=True):
    """An item, where it stands, and whose it is: a role, ``tool``, or ``assistant`` for all that a model makes."""

    fields: dict[str, Any]
    place: str
    kind: str
    role: str


def parse(items: Any, *, system: Any = None, where: str = "input") -> list[Message]:
    """The messages that ``items`` and the instructions (``system``) say; the items of one reply become one message.

    ``items`` may be a string, which is what the user says. Raises :class:`InvalidValueError` that begins with the place
    (``input[0].content[1].text must be…``).
    """
    parsed = read_instructions(system)
    if isinstance(items, str):
        return [*parsed, UserMessage(items, native=kept(FORMAT, items, where))]
    if not is_array(items):
        raise InvalidValueError(f"{where} must be a string or an array of items, not {json_name(items)}")
    for group in _groups(items, where):
        reading = _read(group)
        first = group[0]
        if not parsed and first.role == "system":
            reading.layout()  # ours becomes the instructions
        parsed += made(reading, first.role, _native(group, reading))
    return parsed


def parse_reply(data: Any, where: str = "reply") -> ParsedReply:
    """The message of a whole answer, with its usage."""
    fields = as_object(data, where)
    output = _sendable(array_at(fields, "output", where))
    group = [_piece(item, f"{where}.output[{index}]") for index, item in enumerate(output)]
    reading = _read(group)
    reading.is_own = True
    for piece in group:
        if piece.role != "assistant":
            raise InvalidValueError(f"{piece.place}.role is {piece.role[:40]!a}, which no reply has")
    status = optional_text_at(fields, "status", where)
    incomplete = optional_object_at(fields, "incomplete_details", where)
    return ParsedReply(
        message=AssistantMessage(reading.content(), tool_calls=reading.calls, native=_native(group, reading)),
        usage=usage_of(
            optional_object_at(fields, "usage", where), ("input_tokens",), ("output_tokens",), f"{where}.usage"
        ),
        model=optional_text_at(fields, "model", where),
        finish_reason=status
        if not incomplete
        else optional_text_at(incomplete, "reason", f"{where}.incomplete_details"),
    )


def _sendable(output: list[Any]) -> list[Any]:
    """A reply's items as they are taken back: without empty keys, in their parts too."""
    items = all_present(output)
    for item in items:
        if is_object(item) and is_array(item.get("content")):
            item["content"] = all_present(item["content"])
    return items


def read(items: list[Any]) -> tuple[Reading, str]:
    """What the items of one message say, and who says it."""
    groups = list(_groups(items, "items"))
    if len(groups) != 1:
        raise InvalidValueError("the items of one message make several")
    return _read(groups[0]), groups[0][0].role


def read_instructions(system: Any) -> list[Message]:
    """The message that a request's ``instructions`` say; none where they are absent."""
    if system is None:
        return []
    if not isinstance(system, str):
        raise InvalidValueError(f"instructions must be a string or null, not {json_name(system)}")
    native = kept(FORMAT, {"instructions": system}, "instructions") if is_blank(system) else None
    return [SystemMessage(system, native=native)]


def missing(data: Any) -> list[tuple[str, str]]:
    """Places within an original, and names, of what our message does not say."""
    if isinstance(data, str) or is_object(data):
        return []
    return [found for group in _groups(as_array(data, "items"), "") for found in _read(group).missing()]


def _native(group: list[Piece], reading: Reading) -> Native | None:
    if not reading.odd:
        return Native(FORMAT, None) if reading.is_own else None
    return all_kept(FORMAT, [(piece.fields, piece.place) for piece in group])


def _groups(items: list[Any], where: str) -> Iterator[list[Piece]]:
    """The items that make one message of ours each: what a model made in a row, and any other item alone."""
    group: list[Piece] = []
    for index, data in enumerate(items):
        piece = _piece(data, f"{where}[{index}]")
        if piece.role == "assistant" and not (piece.kind == "message" and "id" not in piece.fields):
            group.append(piece)
            continue
        if group:
            yield group
        # A reply that somebody wrote down by hand has no id, and is no part of the reply before it.
        group = [piece]
        if piece.role != "assistant":
            yield group
            group = []
    if group:
        yield group


def _piece(data: Any, where: str) -> Piece:
    fields = as_object(data, where)
    kind, role = fields.get("type"), fields.get("role")
    # Nearly all are one of these two.
    if role is None and type(kind) is str and kind in _MADE:
        return Piece(fields, where, kind, _MADE[kind])
    if (kind is None or kind == "message") and type(role) is str and role in _ROLES:
        return Piece(fields, where, "message", _WHOSE.get(role, "assistant"))
    role = optional_text_at(fields, "role", where)
    kind = optional_text_at(fields, "type", where) or ("message" if role is not None else "item_reference")
    if kind == "item_reference":
        text_at(fields, "id", where)
    if kind == "message" and role not in _ROLES:
        said = "null" if role is None else ascii(role[:40])
        raise InvalidValueError(f"{where}.role is {said}, not one of {', '.join(_ROLES)}")
    return Piece(fields, where, kind, _MADE.get(kind) or _WHOSE.get(role or "", "assistant"))


def _read(group: list[Piece]) -> Reading:
    reading = Reading()
    for piece in group:
        reader = _ITEMS.get(piece.kind)
        if reader is None:
            reading.unknown(piece.place, piece.kind)
        else:
            reader(piece.fields, piece.place, reading)
    return reading


_MESSAGE_KEYS: Final = frozenset({"role", "content"})
_KNOWN_MESSAGE_KEYS: Final = frozenset({"role", "content", "type", "id", "status"})
_CALL_KEYS: Final = frozenset({"type", "call_id", "name", "arguments"})
_KNOWN_CALL_KEYS: Final = frozenset({"type", "call_id", "name", "arguments", "input", "id", "status"})
_OUTPUT_KEYS: Final = frozenset({"type", "call_id", "output"})
_KNOWN_OUTPUT_KEYS: Final = frozenset({"type", "call_id", "output", "id", "status"})
_REASONING_KEYS: Final = frozenset({"type", "id", "summary", "content", "encrypted_content", "status"})


def _said(fields: dict[str, Any], where: str, reading: Reading) -> None:
    if "content" not in fields:
        raise InvalidValueError(f"{where} has no 'content'")
    role = fields["role"]
    if fields.keys() != _MESSAGE_KEYS or role == "developer" or reading.calls or reading.parts:
        reading.layout()
        reading.beyond(fields, _KNOWN_MESSAGE_KEYS, where)
    content = fields["content"]
    read_content(content, f"{where}.content", reading)
    if isinstance(content, str) and is_blank(content):
        reading.layout()
    if reading.has(MediaPart if role == "assistant" else TextPart):
        reading.layout()  # models send no media, and only they refuse


def _call(fields: dict[str, Any], where: str, reading: Reading) -> None:
    is_custom = fields["type"] == "custom_tool_call"
    call_id = text_at(fields, "call_id", where)
    if fields.keys() != _CALL_KEYS or is_custom or not IDS.accepts(call_id):
        reading.layout()
        reading.beyond(fields, _KNOWN_CALL_KEYS, where)
    arguments = text_at(fields, "input" if is_custom else "arguments", where)
    reading.calls.append(ToolCall(call_id, text_at(fields, "name", where), arguments))


def _output(fields: dict[str, Any], where: str, reading: Reading) -> None:
    call_id = text_at(fields, "call_id", where)
    if fields.keys() != _OUTPUT_KEYS or fields["type"] != "function_call_output" or not IDS.accepts(call_id):
        reading.layout()
        reading.beyond(fields, _KNOWN_OUTPUT_KEYS, where)
    if "output" not in fields:
        raise InvalidValueError(f"{where} has no 'output'")
    inner = Reading()
    read_content(fields["output"], f"{where}.output", inner)
    if inner.has(TextPart):
        inner.layout()
    reading.odd += inner.odd
    reading.is_own |= inner.is_own
    reading.results.append(ToolResult(call_id, inner.content()))


def _reasoning(fields: dict[str, Any], where: str, reading: Reading) -> None:
    reading.layout()
    reading.is_own = True
    reading.beyond(fields, _REASONING_KEYS, where)
    texts = [_thought(fields, key, where) for key in ("summary", "content")]
    text = texts[0] or texts[1]
    encrypted = optional_text_at(fields, "encrypted_content", where)
    reading.parts.append(ReasoningPart(text=text or None, signature=encrypted))


def _thought(fields: dict[str, Any], key: str, where: str) -> str:
    texts: list[str] = []
    for index, data in enumerate(optional_array_at(fields, key, where)):
        place = f"{where}.{key}[{index}]"
        texts.append(text_at(as_object(data, place), "text", place))
    return "\n\n".join(texts)


_ITEMS: Final[dict[str, Callable[[dict[str, Any], str, Reading], None]]] = {
    "message": _said,
    "function_call": _call,
    "custom_tool_call": _call,
    "function_call_output": _output,
    "custom_tool_call_output": _output,
    "reasoning": _reasoning,
}
