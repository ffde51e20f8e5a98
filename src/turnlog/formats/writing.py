"""What writing a request needs to know on its way: whose message it is, the ids of its calls, what got lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, Protocol, TypeVar

import msgspec

from turnlog.errors import InvalidValueError
from turnlog.formats.arguments import WRAPPED, arguments_object
from turnlog.formats.call_ids import CallIds, IdRule
from turnlog.formats.loss import Notes
from turnlog.formats.reading import Reading, says
from turnlog.formats.text import is_blank
from turnlog.log.messages import (
    AssistantMessage,
    Content,
    MediaPart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolStatus,
)

#: Where media stands: a user's words, a model's, or the result of a tool.
Place = Literal["user", "assistant", "result"]

#: Said by the user where a provider wants a user's words and there are none.
CONTINUE: Final = "Continue the conversation."

copied: Callable[[Any], Any] = msgspec.to_builtins


class Writing:
    """One rendering. ``begin`` says which message comes next."""

    def __init__(
        self, messages: Sequence[Message], formats: Sequence[str], rule: IdRule, notes: Notes | None = None
    ) -> None:
        self.format = formats[0]
        self.ids = CallIds(messages, rule)
        self.notes = notes
        self._formats = formats
        self._index = 0
        #: Whether the message came from this provider.
        self.is_own = False
        #: Whether ids of files in the message can be this provider's.
        self.knows_files = True
        self._number = 0

    def begin(self, index: int, message: Message) -> None:
        """Turn to the next message."""
        native = message.native
        self._index = index
        self.is_own = native is not None and native.format == self.format
        self.knows_files = native is None or native.format in self._formats

    def lost(self, path: str, what: str, why: str) -> None:
        """Note that something of the message is left out."""
        if self.notes is not None:
            self.notes.lost(self._index, path, what, why)

    def next_number(self) -> int:
        """1, 2, 3… for names that have to be made up."""
        self._number += 1
        return self._number

    def kept(self, count: int) -> None:
        """Note that so many messages go back as they came."""
        if self.notes is not None:
            self.notes.keep(self._index, count)


class Blocks(Protocol):
    """How a provider writes the parts of a message. ``None``: it has no place for that."""

    def text(self, text: str, /) -> dict[str, Any]:
        """A block of text."""
        ...

    def refusal(self, text: str, place: Place, /) -> dict[str, Any] | None:
        """The words with which a model declined."""
        ...

    def media(self, part: MediaPart, place: Place, writing: Writing, /) -> dict[str, Any] | None:
        """An image, a sound, or a file."""
        ...

    def reasoning(self, part: ReasoningPart, /) -> dict[str, Any] | None:
        """What the provider's own model thought."""
        ...


def content_blocks(
    content: Content, place: Place, path: str, blocks: Blocks, writing: Writing, *, keep_blank: bool = False
) -> list[dict[str, Any]]:
    """The blocks of a message's or a result's content, without blank text unless a provider takes it."""
    if content is None:
        return []
    if isinstance(content, str):
        return [] if is_blank(content) else [blocks.text(content)]
    written: list[dict[str, Any]] = []
    left_out: list[MediaPart] = []
    for index, part in enumerate(content):
        if isinstance(part, TextPart):
            if keep_blank or not is_blank(part.text):
                written.append(_text_block(part, place, f"{path}[{index}]", blocks, writing))
            continue
        found = _other_block(part, place, blocks, writing)
        if found is not None:
            written.append(found)
            continue
        writing.lost(f"{path}[{index}]", name_of(part), reason_of(part, place, writing))
        if isinstance(part, MediaPart):
            left_out.append(part)
    if left_out and not written:
        written.append(blocks.text(f"({', '.join(map(name_of, left_out))}: left out)"))
    return written


def _text_block(part: TextPart, place: Place, path: str, blocks: Blocks, writing: Writing) -> dict[str, Any]:
    if not part.refusal:
        return blocks.text(part.text)
    refusal = blocks.refusal(part.text, place)
    if refusal is not None:
        return refusal
    writing.lost(path, "mark of a refusal", f"{writing.format} has none; the words are sent")
    return blocks.text(part.text)


def _other_block(
    part: MediaPart | ReasoningPart, place: Place, blocks: Blocks, writing: Writing
) -> dict[str, Any] | None:
    if isinstance(part, ReasoningPart):
        return blocks.reasoning(part) if writing.is_own else None
    if part.file_id is not None and not writing.knows_files:
        return None
    return blocks.media(part, place, writing)


def name_of(part: MediaPart | ReasoningPart) -> str:
    """What a part is called in a loss."""
    if isinstance(part, ReasoningPart):
        return "reasoning"
    kind = (part.media_type or "file").removesuffix("/*")
    return f"{kind} {part.name}" if part.name else kind


def reason_of(part: MediaPart | ReasoningPart, place: Place, writing: Writing) -> str:
    """Why a part is left out."""
    if isinstance(part, ReasoningPart):
        return f"it goes back to its own provider alone, not to {writing.format}"
    if part.file_id is not None and not writing.knows_files:
        return "the id of a file means nothing to another provider"
    where = {"user": "a user's message", "assistant": "a model's message", "result": "a tool's result"}[place]
    return f"{writing.format} has no place for it in {where}"


def final_results(message: ToolMessage) -> list[tuple[int, ToolResult]]:
    """The results that answer their calls, with their indices."""
    return [(index, result) for index, result in enumerate(message.results) if result.status is not ToolStatus.INTERIM]


Original = TypeVar("Original")


def count_same(
    messages: Sequence[Message], index: int, original: Original, read: Callable[[Original], tuple[Reading, str]]
) -> int:
    """How many messages from ``index`` on still say what the original says; 0 where they differ from it."""
    try:
        reading, role = read(original)
    except InvalidValueError:
        return 0  # somebody made it by hand
    return says(reading, role, messages, index)


def call_inputs(message: AssistantMessage, writing: Writing) -> list[tuple[ToolCall, str, dict[str, Any]]]:
    """Each call with the id to send, and its arguments as the object that a provider takes."""
    if not message.tool_calls:
        return []
    inputs: list[tuple[ToolCall, str, dict[str, Any]]] = []
    for index, (call, call_id) in enumerate(
        zip(message.tool_calls, writing.ids.calls(message.tool_calls), strict=True)
    ):
        value = arguments_object(call.arguments)
        if value is None:
            why = f"{writing.format} takes an object; they are sent as text in one"
            writing.lost(f".tool_calls[{index}].arguments", "arguments that are no JSON object", why)
            value = {WRAPPED: call.arguments}
        inputs.append((call, call_id, value))
    return inputs
