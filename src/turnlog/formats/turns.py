"""Requests made of turns: messages in turn from a user and a model, each a list of blocks.

What is said in a row by the same role becomes one turn: results of tools first, as they follow their calls directly.
An original that stands in ``native`` is a turn of its own beside another original, as they came so from the provider.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec import Struct

from turnlog.formats.call_ids import IdRule
from turnlog.formats.json_fields import is_array, is_object
from turnlog.formats.loss import Notes
from turnlog.formats.reading import Reading
from turnlog.formats.writing import CONTINUE, Blocks, Writing, content_blocks, copied, count_same
from turnlog.log.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage


class TurnBlocks(Blocks, Protocol):
    """How a provider writes whole messages."""

    def assistant(self, message: AssistantMessage, writing: Writing, /) -> list[dict[str, Any]]:
        """The blocks of a model's message, with its calls."""
        ...

    def results(self, message: ToolMessage, writing: Writing, /) -> list[dict[str, Any]]:
        """The blocks of the results of tools."""
        ...


class TurnForm(Struct, frozen=True):
    """What is different from provider to provider. ``key`` is where a turn's blocks stand."""

    format: str
    key: str
    assistant: str
    ids: IdRule
    read: Callable[[dict[str, Any]], tuple[Reading, str]]
    #: What must not stand in the first turn, also where an original has it there.
    never_first: frozenset[str] = frozenset()


class Turn:
    """A turn on its way; ``is_whole``: an original is in it."""

    __slots__ = ("fields", "is_whole", "role")

    def __init__(self, role: str, fields: dict[str, Any], *, is_whole: bool = False) -> None:
        self.role = role
        self.fields = fields
        self.is_whole = is_whole


class RenderedTurns(Struct, frozen=True):
    """The turns, and the system messages with their indices, which stand elsewhere in the request."""

    turns: list[dict[str, Any]]
    systems: list[tuple[int, SystemMessage]]


class _Turns:
    def __init__(self, form: TurnForm, blocks: TurnBlocks) -> None:
        self.form = form
        self.blocks = blocks
        self.turns: list[Turn] = []

    def add(self, role: str, written: list[dict[str, Any]]) -> None:
        if not written:
            return
        if self.turns and self.turns[-1].role == role:
            self._join(self.turns[-1], written)
        else:
            self.turns.append(Turn(role, {"role": role, self.form.key: written}))

    def add_whole(self, fields: dict[str, Any]) -> None:
        role = fields.get("role", "user")
        last = self.turns[-1] if self.turns else None
        if last is None or last.role != role or last.is_whole:
            self.turns.append(Turn(role, fields, is_whole=True))
            return
        content = fields[self.form.key]
        self._join(last, [self.blocks.text(content)] if isinstance(content, str) else content)
        last.fields = fields | last.fields
        last.is_whole = True

    def _join(self, turn: Turn, written: list[dict[str, Any]]) -> None:
        content = turn.fields[self.form.key]
        if isinstance(content, str):
            turn.fields[self.form.key] = [self.blocks.text(content), *written]
        else:
            content.extend(written)

    def _needs_user(self, first: Turn) -> bool:
        # What was accepted once with a model's turn at its beginning goes back so.
        content = first.fields[self.form.key]
        kinds = {kind for block in content for kind in block} if is_array(content) else set[str]()
        return not first.is_whole or not self.form.never_first.isdisjoint(kinds)

    def finished(self) -> list[dict[str, Any]]:
        first = self.turns[0] if self.turns else None
        if first is None or (first.role == self.form.assistant and self._needs_user(first)):
            self.turns.insert(0, Turn("user", {"role": "user", self.form.key: [self.blocks.text(CONTINUE)]}))
        return [turn.fields for turn in self.turns]


def render_turns(
    messages: Sequence[Message], form: TurnForm, blocks: TurnBlocks, notes: Notes | None = None
) -> RenderedTurns:
    """The turns that the messages make."""
    writing = Writing(messages, (form.format,), form.ids, notes)
    turns = _Turns(form, blocks)
    systems: list[tuple[int, SystemMessage]] = []
    index = 0
    while index < len(messages):
        message = messages[index]
        writing.begin(index, message)
        count = _whole(messages, index, form, writing)
        if count:
            turns.add_whole(copied(message.native.data if message.native else None))
            writing.kept(count)
            index += count
            continue
        if isinstance(message, SystemMessage):
            systems.append((index, message))
        elif isinstance(message, AssistantMessage):
            turns.add(form.assistant, blocks.assistant(message, writing))
        elif isinstance(message, ToolMessage):
            turns.add("user", blocks.results(message, writing))
        else:
            turns.add("user", _user(message, blocks, writing))
        index += 1
    return RenderedTurns(turns.finished() if messages else [], systems)


def _user(message: UserMessage, blocks: TurnBlocks, writing: Writing) -> list[dict[str, Any]]:
    written = content_blocks(message.content, "user", ".content", blocks, writing)
    if not written and message.native is not None and not writing.is_own:
        return [blocks.text(f"(content that only {message.native.format} reads: left out)")]
    return written


def _whole(messages: Sequence[Message], index: int, form: TurnForm, writing: Writing) -> int:
    """For how many messages the original of this one stands, if it can be sent in their place."""
    message = messages[index]
    native = message.native
    data: object = None if native is None or not writing.is_own else native.data
    # What is empty is refused; a reply may be.
    if not is_object(data) or not data.get(form.key):
        return 0
    count = count_same(messages, index, data, form.read)
    if count and isinstance(message, ToolMessage):
        return count if all(writing.ids.is_kept(result.id) for result in message.results) else 0
    if isinstance(message, AssistantMessage):
        writing.ids.keep(message.tool_calls if count else ())
    return count
