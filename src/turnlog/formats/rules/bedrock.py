"""The rules of Bedrock's Converse API."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from turnlog.formats.json_fields import as_object, text_at
from turnlog.formats.rules.problem import ProblemLevel
from turnlog.formats.rules.reading import Block, Message, Turn, joined, model_of, objects, required, text_or_null
from turnlog.formats.rules.rule import Finding

_WORD: Final = re.compile(r"[a-zA-Z0-9_.:-]{1,64}", re.ASCII)
#: Families that take results and something else in one user turn.
_MIXING: Final = ("anthropic", "amazon")


class Bedrock(Struct, frozen=True):
    """A request. A block's kind is its one key; ``id`` of calls and results is under ``toolUseId``."""

    model: str | None
    messages: tuple[Message, ...]
    turns: tuple[Turn, ...]
    has_tools: bool


def read(request: dict[str, Any]) -> Bedrock:
    """The request; raises :class:`InvalidValueError` for what no rule can be asked about."""
    messages = tuple(_message(place, fields) for place, fields in objects(required(request, "messages"), "messages"))
    has_tools = request.get("toolConfig") is not None
    return Bedrock(model_of(request, "modelId", "model"), messages, joined(messages), has_tools)


def _message(place: str, fields: dict[str, Any]) -> Message:
    role = text_at(fields, "role", place)
    blocks = objects(required(fields, "content") if "content" in fields else [], f"{place}.content")
    return Message(place, role, tuple(_block(at, place, block) for at, block in blocks))


def _block(place: str, message: str, fields: dict[str, Any]) -> Block:
    kind = next((key for key, value in fields.items() if value is not None), "")
    if kind == "text":
        text_at(fields, "text", place)
        return Block(place, message, kind, fields)
    if kind not in {"toolUse", "toolResult"}:
        return Block(place, message, kind, fields)
    held = as_object(fields[kind], f"{place}.{kind}")
    text_at(held, "toolUseId", f"{place}.{kind}")
    text_or_null(held, "status", f"{place}.{kind}")
    text_or_null(held, "type", f"{place}.{kind}")
    if kind == "toolUse":
        text_at(held, "name", f"{place}.{kind}")
    elif held.get("content") is not None:
        objects(held["content"], f"{place}.{kind}.content")
    return Block(place, message, kind, held)


def _of_kind(turn: Turn | None, role: str, kind: str) -> list[Block]:
    """Calls or results. A call with a type is one of the provider's own tools, which answers it itself."""
    if turn is None or turn.role != role:
        return []
    return [block for block in turn.blocks if block.kind == kind and block.fields.get("type") is None]


def _calls(turn: Turn | None) -> list[Block]:
    return _of_kind(turn, "assistant", "toolUse")


def _results(turn: Turn | None) -> list[Block]:
    return _of_kind(turn, "user", "toolResult")


def _id(block: Block) -> str:
    id_: str = block.fields["toolUseId"]
    return id_


def _steps(request: Bedrock) -> Iterator[tuple[Turn | None, Turn | None]]:
    return zip((None, *request.turns), (*request.turns, None), strict=True)


def wrong_role(request: Bedrock) -> Iterator[Finding]:
    """Roles of other providers."""
    for message in request.messages:
        if message.role not in {"user", "assistant"}:
            yield Finding(f"{message.place}.role", {"role": message.role[:40]})


def no_user(request: Bedrock) -> Iterator[Finding]:
    """No message of the user's at the start."""
    if not request.messages:
        yield Finding("messages", level=ProblemLevel.ERROR)
    elif request.messages[0].role == "assistant":
        yield Finding(request.messages[0].place)


def two_in_a_row(request: Bedrock) -> Iterator[Finding]:
    """Neighbours of one role."""
    for turn in request.turns:
        yield from (Finding(message.place) for message in turn.messages[1:])


def unanswered(request: Bedrock) -> Iterator[Finding]:
    """Calls without a result in the turn behind."""
    for turn, after in _steps(request):
        answered = {_id(result) for result in _results(after)}
        for call in _calls(turn):
            if _id(call) not in answered:
                yield Finding(call.place, {"id": _id(call), "index": _next_index(call.message)})


def unexpected(request: Bedrock) -> Iterator[Finding]:
    """Results without a call in the turn before."""
    for before, turn in _steps(request):
        asked = {_id(call) for call in _calls(before)}
        for result in _results(turn):
            if _id(result) not in asked:
                yield Finding(result.place, {"id": _id(result), "index": _index(result.message)})


def second_result(request: Bedrock) -> Iterator[Finding]:
    """Calls that are answered twice."""
    for turn in request.turns:
        yield from _repeated(_results(turn))


def second_call(request: Bedrock) -> Iterator[Finding]:
    """Calls of one turn with one id."""
    for turn in request.turns:
        yield from _repeated(_calls(turn))


def _repeated(blocks: list[Block]) -> Iterator[Finding]:
    seen = Counter[str]()
    for block in blocks:
        seen[_id(block)] += 1
        if seen[_id(block)] > 1:
            yield Finding(block.place, {"id": _id(block), "index": _index(block.message)})


def wrong_id(request: Bedrock) -> Iterator[Finding]:
    """Ids that are too long, empty, or of other characters."""
    for message in request.messages:
        for block in message.blocks:
            if block.kind in {"toolUse", "toolResult"} and not _WORD.fullmatch(_id(block)):
                yield Finding(f"{block.place}.{block.kind}.toolUseId", {"id": _id(block)[:80]})


def no_tools(request: Bedrock) -> Iterator[Finding]:
    """Calls or results in a request without tools."""
    blocks = (block for message in request.messages for block in message.blocks)
    first = next((block for block in blocks if block.kind in {"toolUse", "toolResult"}), None)
    if first is not None and not request.has_tools:
        yield Finding(first.place)


def mixed(request: Bedrock) -> Iterator[Finding]:
    """Results and something else in one user turn."""
    if request.model is not None and any(family in request.model for family in _MIXING):
        return
    for turn in request.turns:
        if _results(turn):
            others = (block for block in turn.blocks if block.kind not in {"toolResult", "cachePoint"})
            yield from (Finding(block.place, {"index": _index(block.message)}) for block in others)


def empty_message(request: Bedrock) -> Iterator[Finding]:
    """Messages without content."""
    for message in request.messages:
        if not message.blocks:
            yield Finding(f"{message.place}.content", {"index": _index(message.place)})


def blank_text(request: Bedrock) -> Iterator[Finding]:
    """Text of spaces, or of nothing."""
    for message in request.messages:
        for block in message.blocks:
            if block.kind == "text" and not block.fields["text"].strip():
                yield Finding(block.place)


def empty_error(request: Bedrock) -> Iterator[Finding]:
    """Results that are errors and say nothing."""
    for message in request.messages:
        for block in message.blocks:
            if block.kind == "toolResult" and block.fields.get("status") == "error" and not block.fields.get("content"):
                yield Finding(block.place)


def lone_document(request: Bedrock) -> Iterator[Finding]:
    """Documents without a text beside them."""
    for turn in request.turns:
        kinds = {block.kind for block in turn.blocks}
        if turn.role == "user" and "document" in kinds and not kinds & {"text", "toolResult"}:
            first = next(block for block in turn.blocks if block.kind == "document")
            yield Finding(first.place)


def _index(message: str) -> int:
    return int(message.removeprefix("messages[").removesuffix("]"))


def _next_index(message: str) -> int:
    return _index(message) + 1
