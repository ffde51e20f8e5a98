"""Stored JSON: how the body of an event becomes bytes and comes back, exactly (R-9).

A row keeps its format number beside the bytes: the version of the layout, and whether the text is escaped. JSON readers
disagree about lone surrogates and join pairs of them, so a body that holds any is written with an escape of our own;
all others (nearly all) are plain JSON and read at full speed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias, cast

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from turnlog.log.events import EventFields, SessionEvent
from turnlog.log.messages import (
    AssistantFields,
    AssistantMessage,
    Message,
    MessageFields,
    Part,
    SystemMessage,
    ToolCall,
    ToolFields,
    ToolMessage,
    ToolResult,
    UserMessage,
)

StoredContent: TypeAlias = str | tuple[Part, ...] | None

#: Layout 1. The next layout takes 2 and 3, and an upcaster from each older one.
PLAIN: Final = 0
ESCAPED: Final = 1
FORMATS: Final = (PLAIN, ESCAPED)


class Body(Struct, frozen=True, omit_defaults=True):
    """What a row keeps as JSON; everything that is filtered or ordered by has a column of its own."""

    message: Message | None = None
    payload: dict[str, Any] | None = None
    metadata: dict[str, Any] = {}  # msgspec copies an empty default


# Bodies are read much more often than written, and were checked when their events were made. So they are decoded into
# classes that check nothing, and each message then becomes one of the class that callers know: the layout is the same.


class _StoredSystem(MessageFields, frozen=True, eq=False, tag="system"):
    content: StoredContent = None


class _StoredUser(MessageFields, frozen=True, eq=False, tag="user"):
    content: StoredContent = None


class _StoredAssistant(AssistantFields, frozen=True, eq=False, tag="assistant"):
    content: StoredContent = None
    tool_calls: tuple[ToolCall, ...] = ()


class _StoredTool(ToolFields, frozen=True, eq=False, tag="tool"):
    results: tuple[ToolResult, ...]


class _CheckedEvent(EventFields, frozen=True, kw_only=True):
    session_id: str = ""
    id: str = ""
    timestamp: datetime = datetime(1970, 1, 1, tzinfo=UTC)


class _StoredEvent(_CheckedEvent, frozen=True, kw_only=True):
    message: _StoredSystem | _StoredUser | _StoredAssistant | _StoredTool | None = None  # type: ignore[assignment]  # pyright: ignore[reportIncompatibleVariableOverride]


_MESSAGE_CLASS_OF: Final[dict[type, type[Message]]] = {
    _StoredSystem: SystemMessage,
    _StoredUser: UserMessage,
    _StoredAssistant: AssistantMessage,
    _StoredTool: ToolMessage,
}

_encoder = msgspec.json.Encoder()
_object_decoder = msgspec.json.Decoder(dict[str, Any])
_event_decoder: msgspec.json.Decoder[EventFields] = msgspec.json.Decoder(_StoredEvent)
_canonical = msgspec.json.Encoder(order="sorted")
_body_decoder: msgspec.json.Decoder[Body] = msgspec.json.Decoder(Body)

_ESCAPE = "\x10"
_SPECIAL = re.compile("[\x10\ud800-\udfff]")
_ESCAPED_CHARACTER = re.compile("\x10([0-9a-f]{4})")


def encode(value: Any) -> tuple[int, bytes]:
    """Format and bytes of any value that msgspec can write, surrogates included."""
    try:
        return PLAIN, _encoder.encode(value)
    except UnicodeEncodeError:
        return ESCAPED, _encoder.encode(_mapped(msgspec.to_builtins(value), _escape))


def encode_body(event: SessionEvent) -> tuple[int, bytes]:
    """Format and bytes of an event's body."""
    return encode(Body(event.message, event.payload, event.metadata))


def decode_body(format_: int, data: bytes) -> Body:
    """The body back; raises ``ValueError`` (a format we do not know, damaged JSON, a message of no known role)."""
    if format_ == PLAIN:
        try:
            return _body_decoder.decode(data)
        except (msgspec.ValidationError, RecursionError):
            pass  # decode() tries again, and says why it cannot be read
    body: Body = decode(format_, data, Body)
    return body


def decode_events(formats: Sequence[int], bodies: Sequence[bytes]) -> list[EventFields]:
    """The events of many bodies, with nothing in the fields that no body holds; raises as ``decode_body`` does."""
    if any(formats):
        return [decode(format_, data, _CheckedEvent) for format_, data in zip(formats, bodies, strict=True)]
    try:
        events: list[EventFields] = list(map(_event_decoder.decode, bodies))
    except (msgspec.ValidationError, RecursionError):
        return [decode(PLAIN, data, _CheckedEvent) for data in bodies]  # as in decode_body()
    for event in events:
        if event.message is not None:
            force_setattr(event.message, "__class__", _MESSAGE_CLASS_OF[type(event.message)])
    return events


def decode_object(format_: int, data: bytes) -> dict[str, Any]:
    """A JSON object back; raises ``ValueError``."""
    if format_ == PLAIN:
        try:
            return _object_decoder.decode(data)
        except (msgspec.ValidationError, RecursionError):
            pass  # as in decode_body()
    decoded: dict[str, Any] = decode(format_, data, dict[str, Any])
    return decoded


def decode(format_: int, data: bytes, kind: Any) -> Any:
    """A value of type ``kind`` back from :func:`encode`; raises ``ValueError``."""
    if format_ not in FORMATS:
        raise ValueError(f"format {format_} is not known to this version of turnlog")
    try:
        if format_ == ESCAPED:
            return msgspec.convert(_mapped(_parsed(data), _unescape), kind)
        try:
            return msgspec.json.decode(data, type=kind)
        except msgspec.ValidationError:
            return msgspec.convert(_parsed(data), kind)
    except RecursionError as error:
        raise ValueError("nested deeper than anything that was ever stored") from error


def _parsed(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.ValidationError:
        # msgspec counts the sign as a digit, and so refuses a negative integer of 4,300 digits, which it has written.
        import json  # here, as it is hardly ever needed

        return json.loads(data.decode())


def content_key(event: SessionEvent) -> bytes:
    """The content by which a replay is recognised (R-4): type, branch, and message or payload in canonical form.

    ``metadata`` and ``native`` of the message, the timestamp, the position and the event's metadata are not content.
    """
    message = event.message
    if message is not None and (message.metadata or message.native):
        message = message.replace(metadata={}, native=None)
    content = (event.type.name, event.branch, message, event.payload)
    try:
        return _canonical.encode(content)
    except UnicodeEncodeError:
        return _ESCAPE.encode() + _canonical.encode(_mapped(msgspec.to_builtins(content), _escape))


def _escape(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"{_ESCAPE}{ord(found[0]):04x}", text)


def _unescape(text: str) -> str:
    return _ESCAPED_CHARACTER.sub(lambda found: chr(int(found[1], 16)), text) if _ESCAPE in text else text


def _mapped(value: Any, change: Any) -> Any:
    """``value`` with every string in it, keys included, changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value)
        return {change(key): _mapped(item, change) for key, item in entries.items()}
    if isinstance(value, (list, tuple)):
        return [_mapped(item, change) for item in cast("list[Any]", value)]
    return value
