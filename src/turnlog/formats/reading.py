"""What reading one message of a provider gathers, and whether ours say all of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from turnlog.errors import UnstorableError
from turnlog.formats.text import is_blank
from turnlog.log.messages import (
    AssistantMessage,
    Message,
    Native,
    Part,
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
        self.parts: list[Part] = []
        self.calls: list[ToolCall] = []
        self.results: list[ToolResult] = []
        self.odd: list[tuple[str, str]] = []
        self.is_own = False

    def text(self, text: str) -> None:
        """Add text. Blank text is not sent by us, so that the original has to be kept."""
        self.parts.append(TextPart(text))
        if is_blank(text):
            self.layout()

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
                self.odd.append((f"{where}.{key}", key) if value or value == 0 else _LAYOUT)

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


def from_user(reading: Reading, native: Native | None) -> list[Message]:
    """Our messages for a user's turn: results of tools first, the rest as the user's words."""
    if not reading.results:
        return [UserMessage(reading.parts or None, native=native)]
    messages: list[Message] = [ToolMessage(reading.results, native=native)]
    if reading.parts:
        messages.append(UserMessage(reading.parts))
    return messages


def from_assistant(reading: Reading, native: Native | None) -> list[Message]:
    """Our message for a model's turn."""
    return [AssistantMessage(reading.parts or None, tool_calls=reading.calls, native=native)]


def all_kept(format_: str, pieces: Iterable[Any], where: str) -> Native:
    """Several originals that stand for one message of ours."""
    return kept(format_, list(pieces), where)
