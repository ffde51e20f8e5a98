"""What reading one message of a provider gathers, and whether ours say all of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from turnlog.errors import UnstorableError
from turnlog.formats.json_fields import is_object
from turnlog.log.messages import (
    AssistantMessage,
    Content,
    MediaPart,
    Message,
    Native,
    Part,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)

#: Something is laid out in another way than we would write it, but nothing of it is missing in our message.
_LAYOUT: Final = ("", "")


class Reading:
    """The parts, calls and results of one message as they are found.

    ``odd`` lists what they do not say; where it is not empty the original has to be kept beside our message.
    ``is_own``: something in them means nothing to another provider (reasoning, the id of a file), so that the message
    must say whose it is.
    """

    __slots__ = ("calls", "is_own", "odd", "parts", "results")

    def __init__(self) -> None:
        #: Plain text is a string here.
        self.parts: list[str | Part] = []
        self.calls: list[ToolCall] = []
        self.results: list[ToolResult] = []
        self.odd: list[tuple[str, str]] = []
        self.is_own = False

    def text(self, text: str) -> None:
        """Add text. Blank text is not sent by us, so that the original has to be kept."""
        self.parts.append(text)
        if not text or text.isspace():
            self.layout()

    def content(self) -> Content:
        """The parts as a message or a result has them."""
        parts = self.parts
        if len(parts) < 2:  # noqa: PLR2004 - one or none
            return (parts[0] if isinstance(parts[0], str) else (parts[0],)) if parts else None
        return tuple(TextPart(part) if isinstance(part, str) else part for part in parts)

    def has(self, kind: type[MediaPart | TextPart]) -> bool:
        """Whether there are parts of that kind: media, or text that is a refusal."""
        return any(isinstance(part, kind) for part in self.parts)

    def layout(self) -> None:
        """Note that the original is laid out in another way than ours."""
        self.odd.append(_LAYOUT)

    def unknown(self, where: str, what: str) -> None:
        """Note something that our message has no place for."""
        self.odd.append((where, what))

    def beyond(self, fields: dict[str, Any], known: frozenset[str], where: str) -> None:
        """Note the keys beside the known ones; empty values say nothing."""
        if fields.keys() <= known:
            return
        for key, value in fields.items():
            if key not in known:
                self.odd.append((f"{where}.{key}", key) if value or type(value) in (int, float) else _LAYOUT)

    def missing(self) -> list[tuple[str, str]]:
        """Places and names of what our message does not say."""
        return [found for found in self.odd if found != _LAYOUT]

    def native(self, format_: str, data: Any, where: str) -> Native | None:
        """The original, where it says more than ours; the provider's name alone, where that has to be known."""
        if self.odd:
            return kept(format_, data, where)
        return Native(format_, None) if self.is_own else None


def kept(format_: str, data: Any, where: str) -> Native:
    """A copy of the original; :class:`UnstorableError` that begins with ``where`` for what is no JSON value."""
    try:
        return Native(format_, data)
    except UnstorableError as error:
        raise UnstorableError(where + error.path.removeprefix("native.data"), error.reason) from None


def made(reading: Reading, role: str, native: Native | None) -> list[Message]:
    """Our messages for what was read: results of tools first, the rest as the words of ``role``."""
    if role == "assistant":
        return [AssistantMessage(reading.content(), tool_calls=reading.calls, native=native)]
    if role == "system":
        return [SystemMessage(reading.content(), native=native)]
    if not reading.results:
        return [UserMessage(reading.content(), native=native)]
    messages: list[Message] = [ToolMessage(reading.results, native=native)]
    if reading.parts:
        whose = Native(native.format, None) if native is not None and reading.is_own else None
        messages.append(UserMessage(reading.content(), native=whose))
    return messages


def says(reading: Reading, role: str, messages: Sequence[Message], index: int) -> int:
    """How many messages from ``index`` on are what :func:`made` would make; 0 where they are something else."""
    message = messages[index]
    if role == "assistant":
        if not isinstance(message, AssistantMessage) or tuple(reading.calls) != message.tool_calls:
            return 0
        return 1 if reading.content() == message.content else 0
    if role == "system":
        return 1 if isinstance(message, SystemMessage) and reading.content() == message.content else 0
    if not reading.results:
        return 1 if isinstance(message, UserMessage) and reading.content() == message.content else 0
    if not isinstance(message, ToolMessage) or tuple(reading.results) != message.results:
        return 0
    if not reading.parts:
        return 1
    behind = messages[index + 1] if index + 1 < len(messages) else None
    return 2 if isinstance(behind, UserMessage) and reading.content() == behind.content else 0


def all_kept(format_: str, pieces: list[tuple[Any, str]]) -> Native:
    """Copies of several originals, each with its place, that stand for one message of ours."""
    try:
        return Native(format_, [data for data, _ in pieces])
    except UnstorableError:
        for data, where in pieces:
            kept(format_, data, where)
        raise


def standing_apart(messages: list[Any], model: str) -> set[int]:
    """Which messages of a provider we would join with their neighbours, or put one before, as we write turns."""
    apart: set[int] = set()
    before: object = None
    for index, data in enumerate(messages):
        role = data.get("role", "user") if is_object(data) else None
        if role == before:
            apart |= {index - 1, index}
        elif not index and role == model:
            apart.add(0)
        before = role
    return apart


def is_plain_text(data: Any, key: str) -> bool:
    """Whether a block has two keys at most, and under ``key`` a text that is not blank: what most blocks are."""
    if not is_object(data) or len(data) > 2:  # noqa: PLR2004 - the text and its type
        return False
    text = data.get(key)
    return type(text) is str and text != "" and not text.isspace()
