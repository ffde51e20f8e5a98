"""Messages: what was said, as immutable values without identity (V-1).

Two messages are equal when their content is; ``metadata`` and ``native`` take no part. ``content`` is None, a string,
or parts; one plain text part is the same as its string, and None is not the same as ``""``. Parts, calls and results
may be given as any sequence and are kept as a tuple.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, Final, Self, TypeAlias

from msgspec import Struct, field
from msgspec.structs import force_setattr

from turnlog.errors import InvalidValueError
from turnlog.log.json_values import storable, storable_dict


class MessageType(StrEnum):
    """Who speaks. The value is what is stored and sent."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class ToolStatus(StrEnum):
    """How a tool call ended. An ``INTERIM`` result does not answer its call."""

    OK = "ok"
    ERROR = "error"
    INTERIM = "interim"
    NOT_RUN = "not_run"


class MessageMetadata:
    """The keys of a message's metadata that turnlog itself reads and writes."""

    #: What the provider reported of the call that made the message: ``{"input_tokens": …, "output_tokens": …}``.
    USAGE: Final = "turnlog.usage"


class TextPart(Struct, frozen=True, tag_field="type", tag="text", omit_defaults=True):
    """Text; ``refusal`` marks words with which a model declines."""

    text: str
    refusal: bool = False

    def __post_init__(self) -> None:
        if type(self.text) is not str or type(self.refusal) is not bool:
            _require(self.text, str, "text")
            _require(self.refusal, bool, "refusal")

    def __repr__(self) -> str:
        return f"TextPart({_shortened(self.text)!r}{', refusal=True' if self.refusal else ''})"


class MediaPart(Struct, frozen=True, tag_field="type", tag="media", omit_defaults=True, kw_only=True):
    """An image, sound, or file: its bytes, or a URL, or a provider's file id; exactly one of the three."""

    media_type: str | None = None
    data: bytes | None = None
    url: str | None = None
    file_id: str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        _require(self.data, bytes, "data", optional=True)
        for what in ("media_type", "url", "file_id", "name"):
            _require(getattr(self, what), str, what, optional=True)
        if (self.data is not None) + (self.url is not None) + (self.file_id is not None) != 1:
            raise InvalidValueError("a media part has exactly one of data, url, file_id")

    def __repr__(self) -> str:
        held = f"{len(self.data)} bytes" if self.data is not None else repr(_shortened(self.url or self.file_id or ""))
        return f"MediaPart({_shortened(self.media_type or '')!r}, {held})"


class ReasoningPart(Struct, frozen=True, tag_field="type", tag="reasoning", omit_defaults=True, kw_only=True):
    """What a model thought.

    ``signature`` (or ``data``, where the text is withheld) goes back to its provider untouched.
    """

    text: str | None = None
    signature: str | None = None
    data: str | None = None

    def __post_init__(self) -> None:
        for what in ("text", "signature", "data"):
            _require(getattr(self, what), str, what, optional=True)

    def __repr__(self) -> str:
        return f"ReasoningPart({_shortened(self.text or '')!r})"


#: One part of a message's content.
Part: TypeAlias = TextPart | MediaPart | ReasoningPart
Content: TypeAlias = str | Sequence[TextPart | MediaPart | ReasoningPart] | None


class ToolCall(Struct, frozen=True):
    """A call the model asks for; ``arguments`` is the JSON text as the model wrote it, valid or not."""

    id: str
    name: str
    arguments: str = "{}"

    def __post_init__(self) -> None:
        if type(self.id) is type(self.name) is type(self.arguments) is str:
            return  # nearly always, and a log that is read makes many
        for what in ("id", "name", "arguments"):
            _require(getattr(self, what), str, what)

    def __repr__(self) -> str:
        return f"ToolCall({_shortened(self.id)!r}, {_shortened(self.name)!r}, {_shortened(self.arguments)!r})"


class ToolResult(Struct, frozen=True, omit_defaults=True):
    """What came of the call ``id``."""

    id: str
    content: Content = None
    status: ToolStatus = ToolStatus.OK
    name: str | None = None

    def __post_init__(self) -> None:
        if type(self.id) is not str or type(self.status) is not ToolStatus or self.name is not None:
            _require(self.id, str, "id")
            _require(self.status, ToolStatus, "status")
            _require(self.name, str, "name", optional=True)
        if type(self.content) is not str and self.content is not None:
            force_setattr(self, "content", _content(self.content))

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return _text(self.content)

    def __repr__(self) -> str:
        return f"ToolResult({_shortened(self.id)!r}, {_shortened(self.text)!r}, {self.status.value})"


class Native(Struct, frozen=True):
    """What a provider or framework sent, kept untouched to be handed back to the same one."""

    format: str
    data: Any

    def __post_init__(self) -> None:
        _require(self.format, str, "format")
        force_setattr(self, "data", storable(self.data, "native.data"))

    def __repr__(self) -> str:
        return f"Native({_shortened(self.format)!r}, {type(self.data).__name__})"


class MessageFields(Struct, frozen=True, eq=False, omit_defaults=True, tag_field="role"):
    """What every message but a tool's holds, not checked: the classes that callers know check, and hold no more."""

    content: Content = None
    metadata: dict[str, Any] = field(default_factory=dict)
    native: Native | None = None

    def _check(self) -> None:
        if type(self.content) is not str and self.content is not None:
            force_setattr(self, "content", _content(self.content))
        # Also where it is empty: what the caller puts into its dict later must not reach the message.
        force_setattr(self, "metadata", storable_dict(self.metadata, "message.metadata"))
        if self.native is not None:
            _require(self.native, Native, "native")

    @property
    def text(self) -> str:
        """The text parts, joined; ``""`` where there are none."""
        return _text(self.content)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The content as parts, whichever way it was given."""
        if self.content is None:
            return ()
        return (TextPart(self.content),) if isinstance(self.content, str) else tuple(self.content)

    def replace(self, **changes: Any) -> Self:
        """A changed copy, validated again."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return type(self)(**fields | changes)

    def _identity(self) -> tuple[object, ...]:
        return (self.content,)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._identity() == other._identity()

    def __ne__(self, other: object) -> bool:
        # Struct has one of its own, which compares identities.
        return not self == other

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._identity()))

    def __repr__(self) -> str:
        if self.content is None or isinstance(self.content, str):
            return f"{type(self).__name__}({self.content and _shortened(self.content)!r})"
        return f"{type(self).__name__}({_shortened(', '.join(map(repr, self.content)))})"


class SystemMessage(MessageFields, frozen=True, eq=False, omit_defaults=True, tag_field="role", tag="system"):
    """Instructions to the model (``developer`` messages among them)."""

    def __post_init__(self) -> None:
        self._check()

    @property
    def type(self) -> MessageType:
        """:attr:`MessageType.SYSTEM`."""
        return MessageType.SYSTEM


class UserMessage(MessageFields, frozen=True, eq=False, omit_defaults=True, tag_field="role", tag="user"):
    """What the user said: ``UserMessage("hi")``."""

    def __post_init__(self) -> None:
        self._check()

    @property
    def type(self) -> MessageType:
        """:attr:`MessageType.USER`."""
        return MessageType.USER


class AssistantFields(MessageFields, frozen=True, eq=False, omit_defaults=True, tag_field="role"):
    """What an assistant's message holds, not checked."""

    tool_calls: Sequence[ToolCall] = ()


class AssistantMessage(AssistantFields, frozen=True, eq=False, omit_defaults=True, tag_field="role", tag="assistant"):
    """A model's reply: content, tool calls, or both."""

    def __post_init__(self) -> None:
        self._check()
        if self.tool_calls != ():
            force_setattr(self, "tool_calls", _tuple_of(self.tool_calls, ToolCall, "tool_calls"))

    @property
    def type(self) -> MessageType:
        """:attr:`MessageType.ASSISTANT`."""
        return MessageType.ASSISTANT

    def _identity(self) -> tuple[object, ...]:
        return (self.content, self.tool_calls)

    def __repr__(self) -> str:
        calls = ", ".join(call.name for call in self.tool_calls)
        return f"{super().__repr__()[:-1]}, calls {_shortened(calls)})" if calls else super().__repr__()


class ToolFields(Struct, frozen=True, eq=False, omit_defaults=True, tag_field="role"):
    """What a tool message holds, not checked."""

    results: Sequence[ToolResult]
    metadata: dict[str, Any] = field(default_factory=dict)
    native: Native | None = None


class ToolMessage(ToolFields, frozen=True, eq=False, omit_defaults=True, tag_field="role", tag="tool"):
    """The results of one or more tool calls."""

    def __post_init__(self) -> None:
        if isinstance(self.results, ToolResult):
            force_setattr(self, "results", (self.results,))
        else:
            force_setattr(self, "results", _tuple_of(self.results, ToolResult, "results"))
        # Also where it is empty: what the caller puts into its dict later must not reach the message.
        force_setattr(self, "metadata", storable_dict(self.metadata, "message.metadata"))
        if self.native is not None:
            _require(self.native, Native, "native")

    @property
    def type(self) -> MessageType:
        """:attr:`MessageType.TOOL`."""
        return MessageType.TOOL

    @property
    def text(self) -> str:
        """A tool message has no text of its own, only results."""
        return ""

    @property
    def parts(self) -> tuple[Part, ...]:
        """Always empty: the parts are those of the results."""
        return ()

    def replace(self, **changes: Any) -> Self:
        """A changed copy, validated again."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return type(self)(**fields | changes)

    def __eq__(self, other: object) -> bool:
        return self.results == other.results if isinstance(other, ToolMessage) else NotImplemented

    def __ne__(self, other: object) -> bool:
        # As in the other messages.
        return not self == other

    def __hash__(self) -> int:
        return hash(("ToolMessage", self.results))

    def __repr__(self) -> str:
        return f"ToolMessage({_shortened(', '.join(map(repr, self.results)))})"


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage
MESSAGE_CLASSES = (SystemMessage, UserMessage, AssistantMessage, ToolMessage)

#: Characters of one text that a ``repr`` shows.
LONGEST_SHOWN = 60


def _require(value: object, kind: type, what: str, *, optional: bool = False) -> None:
    if type(value) is not kind and not (optional and value is None):
        raise InvalidValueError(f"{what} must be {kind.__name__}, not {type(value).__name__}")


def _content(content: Iterable[object]) -> Content:
    """Parts as a tuple; none at all is None, and one plain text is its string, so that equal content is equal."""
    if not isinstance(content, Sequence) or isinstance(content, (str, bytes)):
        raise InvalidValueError(f"content must be a string, parts, or None, not {type(content).__name__}")
    parts: list[Part] = []
    for part in content:
        if not isinstance(part, (TextPart, MediaPart, ReasoningPart)):
            raise InvalidValueError(
                f"content parts are TextPart, MediaPart or ReasoningPart, not {type(part).__name__}"
            )
        parts.append(part)
    if len(parts) == 1 and isinstance(parts[0], TextPart) and not parts[0].refusal:
        return parts[0].text
    return tuple(parts) or None


def _tuple_of(values: object, kind: type, what: str) -> tuple[Any, ...]:
    if not isinstance(values, Sequence) or isinstance(values, (str, bytes)):
        raise InvalidValueError(f"{what} must be a sequence of {kind.__name__}, not {type(values).__name__}")
    for value in values:
        _require(value, kind, f"an element of {what}")
    return tuple(values)


def _text(content: Content) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.text for part in content or () if isinstance(part, TextPart))


def _shortened(text: str) -> str:
    # A repr lands in logs and tracebacks: it must never print megabytes (V-1).
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"
