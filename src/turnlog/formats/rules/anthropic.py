"""The rules of Anthropic's messages API, on Bedrock and Vertex too where its own body is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from turnlog.errors import InvalidValueError
from turnlog.formats.json_fields import is_array, json_name, object_at, text_at
from turnlog.formats.rules.models import refuses_prefill
from turnlog.formats.rules.problem import ProblemLevel
from turnlog.formats.rules.reading import Block, Message, Turn, joined, model_of, objects, required, text_or_null
from turnlog.formats.rules.rule import Finding

_ID: Final = re.compile(r"[a-zA-Z0-9_-]+", re.ASCII)
_THINKING: Final = frozenset({"thinking", "redacted_thinking"})
#: Calls of the provider's own tools: call and result stand side by side in an assistant message.
_SERVER_CALLS: Final = ("server_tool_use", "mcp_tool_use")
MOST_MESSAGES: Final = 100_000


class Anthropic(Struct, frozen=True):
    """A request. ``thinking`` is the type under that key, None where it is left out."""

    model: str | None
    thinking: str | None
    messages: tuple[Message, ...]
    turns: tuple[Turn, ...]


def read(request: dict[str, Any]) -> Anthropic:
    """The request; raises :class:`InvalidValueError` for what no rule can be asked about."""
    messages = objects(required(request, "messages"), "messages")
    read_messages = tuple(_message(place, fields) for place, fields in messages)
    thinking = None
    if request.get("thinking") is not None:
        thinking = text_at(object_at(request, "thinking", "request"), "type", "request.thinking")
    return Anthropic(model_of(request, "model"), thinking, read_messages, joined(read_messages))


def _message(place: str, fields: dict[str, Any]) -> Message:
    role = text_at(fields, "role", place)
    content = fields.get("content")
    where = f"{place}.content"
    if isinstance(content, str):
        # What is empty says nothing, in whichever form.
        blocks = (Block(where, place, "text", {"type": "text", "text": content}),) if content else ()
        return Message(place, role, blocks)
    if not is_array(content):
        raise InvalidValueError(f"{where} must be a string or an array of blocks, not {json_name(content)}")
    return Message(place, role, tuple(_block(at, place, block) for at, block in objects(content, where)))


def _block(place: str, message: str, fields: dict[str, Any]) -> Block:
    kind = text_at(fields, "type", place)
    if kind == "text":
        text_at(fields, "text", place)
    elif kind == "tool_use":
        text_at(fields, "id", place)
        text_at(fields, "name", place)
        object_at(fields, "input", place)
    elif kind == "tool_result":
        text_at(fields, "tool_use_id", place)
        _check_result_content(fields.get("content"), f"{place}.content")
    elif kind == "thinking":
        text_at(fields, "thinking", place)
        text_or_null(fields, "signature", place)
    return Block(place, message, kind, fields)


def _check_result_content(content: object, place: str) -> None:
    if content is not None and not isinstance(content, str):
        for where, fields in objects(content, place):
            text_at(fields, "type", where)


def _is_server_block(block: Block) -> bool:
    return block.kind in _SERVER_CALLS or _is_server_result(block)


def _is_server_result(block: Block) -> bool:
    return block.kind.endswith("_tool_result")


def _calls(turn: Turn | None) -> list[Block]:
    if turn is None or turn.role != "assistant":
        return []
    return [block for block in turn.blocks if block.kind == "tool_use"]


def _results(turn: Turn | None) -> list[Block]:
    if turn is None or turn.role != "user":
        return []
    return [block for block in turn.blocks if block.kind == "tool_result"]


def _steps(request: Anthropic) -> Iterator[tuple[Turn | None, Turn | None]]:
    """Each turn with the one before it, the first and the last with nothing."""
    return zip((None, *request.turns), (*request.turns, None), strict=True)


def empty(request: Anthropic) -> Iterator[Finding]:
    """No message at all."""
    if not request.messages:
        yield Finding("messages")


def too_many(request: Anthropic) -> Iterator[Finding]:
    """More messages than are taken."""
    if len(request.messages) > MOST_MESSAGES:
        yield Finding("messages", {"count": len(request.messages)})


def wrong_role(request: Anthropic) -> Iterator[Finding]:
    """Roles of other providers."""
    for message in request.messages:
        if message.role not in {"user", "assistant", "system"}:
            yield Finding(f"{message.place}.role", {"role": message.role[:40]})


def system_role(request: Anthropic) -> Iterator[Finding]:
    """System messages among the others."""
    for message in request.messages:
        if message.role == "system":
            yield Finding(f"{message.place}.role", {"role": message.role})


def unanswered(request: Anthropic) -> Iterator[Finding]:
    """Calls without a result in the turn behind."""
    for turn, after in _steps(request):
        answered = {result.fields["tool_use_id"] for result in _results(after)}
        for call in _calls(turn):
            if call.fields["id"] not in answered:
                yield Finding(call.place, {"id": call.fields["id"], "index": _index(call.message)})


def unexpected(request: Anthropic) -> Iterator[Finding]:
    """Results without a call in the turn before."""
    for before, turn in _steps(request):
        asked = {call.fields["id"] for call in _calls(before)}
        for result in _results(turn):
            if result.fields["tool_use_id"] not in asked:
                yield Finding(result.place, {"id": result.fields["tool_use_id"]})


def misplaced_result(request: Anthropic) -> Iterator[Finding]:
    """Results in messages that are not the user's."""
    for message in request.messages:
        if message.role != "user":
            yield from _in_wrong_role(message, "tool_result")


def misplaced_call(request: Anthropic) -> Iterator[Finding]:
    """Calls in messages that are not the assistant's."""
    for message in request.messages:
        if message.role != "assistant":
            yield from _in_wrong_role(message, "tool_use")


def _in_wrong_role(message: Message, kind: str) -> Iterator[Finding]:
    for block in message.blocks:
        if block.kind == kind:
            yield Finding(block.place, {"index": _index(message.place)})


def second_result(request: Anthropic) -> Iterator[Finding]:
    """Calls that are answered twice."""
    for turn in request.turns:
        yield from _repeated(_results(turn), "tool_use_id")


def second_call(request: Anthropic) -> Iterator[Finding]:
    """Calls of one turn with one id."""
    for turn in request.turns:
        yield from _repeated(_calls(turn), "id")


def _repeated(blocks: list[Block], key: str) -> Iterator[Finding]:
    seen = set[str]()
    for block in blocks:
        id_ = block.fields[key]
        if id_ in seen:
            yield Finding(block.place, {"id": id_})
        seen.add(id_)


def late_result(request: Anthropic) -> Iterator[Finding]:
    """Results behind something else in their turn."""
    for before, turn in _steps(request):
        callers = {call.fields["id"]: call.message for call in _calls(before)}
        is_late = False
        for block in () if turn is None or turn.role != "user" else turn.blocks:
            is_late = is_late or block.kind != "tool_result"
            caller = callers.get(block.fields["tool_use_id"]) if block.kind == "tool_result" else None
            if is_late and caller is not None:
                yield Finding(block.place, {"id": block.fields["tool_use_id"], "index": _index(caller)})


def after_calls(request: Anthropic) -> Iterator[Finding]:
    """What stands behind a call in its turn and is no call."""
    for turn in request.turns:
        call: Block | None = None
        for block in turn.blocks if turn.role == "assistant" else ():
            if block.kind == "tool_use":
                call = block
            elif call is not None and not _is_server_block(block):
                values = {"id": call.fields["id"], "index": _index(call.message), "kind": block.kind[:40]}
                yield Finding(block.place, values)


def server_result_without_call(request: Anthropic) -> Iterator[Finding]:
    """Results of the provider's own tools without their call before them; code that calls tools runs over turns."""
    asked = set[str]()
    for turn in request.turns:
        for block in turn.blocks if turn.role == "assistant" else ():
            id_ = block.fields.get("id")
            if block.kind in _SERVER_CALLS and isinstance(id_, str):
                asked.add(id_)
            answers = block.fields.get("tool_use_id")
            if _is_server_result(block) and isinstance(answers, str) and answers not in asked:
                yield Finding(block.place, {"id": answers, "kind": block.kind[:80]})


def server_call_without_result(request: Anthropic) -> Iterator[Finding]:
    """Calls of the provider's own tools that it has not answered, where the user goes on all the same.

    A last turn goes on by itself, and one with calls of ours when those are answered.
    """
    blocks = [block for message in request.messages for block in message.blocks if _is_server_result(block)]
    answered = {id_ for block in blocks if isinstance(id_ := block.fields.get("tool_use_id"), str)}
    for turn in request.turns[:-1]:
        for block in () if turn.role != "assistant" or _calls(turn) else turn.blocks:
            id_ = block.fields.get("id")
            if block.kind == "server_tool_use" and isinstance(id_, str) and id_ not in answered:
                name = str(block.fields.get("name"))[:80]
                yield Finding(block.place, {"id": id_, "name": name, "index": _index(block.message)})


def wrong_id(request: Anthropic) -> Iterator[Finding]:
    """Ids of other characters."""
    for message in request.messages:
        for block in message.blocks:
            key = {"tool_use": "id", "tool_result": "tool_use_id"}.get(block.kind)
            if key is not None and not _ID.fullmatch(block.fields[key]):
                yield Finding(f"{block.place}.{key}", {"kind": block.kind, "key": key})


def empty_message(request: Anthropic) -> Iterator[Finding]:
    """Messages without content."""
    for number, message in enumerate(request.messages, 1):
        is_last_reply = message.role == "assistant" and number == len(request.messages)
        if not message.blocks and not is_last_reply:
            yield Finding(f"{message.place}.content", {"index": _index(message.place)})


def empty_text(request: Anthropic) -> Iterator[Finding]:
    """Text of no characters."""
    yield from (Finding(block.place) for block in _texts(request) if not block.fields["text"])


def blank_text(request: Anthropic) -> Iterator[Finding]:
    """Text of spaces."""
    for block in _texts(request):
        text = block.fields["text"]
        if text and not text.strip():
            yield Finding(block.place)


def _texts(request: Anthropic) -> Iterator[Block]:
    for message in request.messages:
        yield from (block for block in message.blocks if block.kind == "text")


def prefill(request: Anthropic) -> Iterator[Finding]:
    """A last message of the assistant's. What waits for the provider's own tools goes on by itself."""
    last = request.messages[-1] if request.messages else None
    if last is None or last.role != "assistant" or any(_is_server_block(block) for block in last.blocks[-1:]):
        return
    yield Finding(last.place, level=ProblemLevel.ERROR if refuses_prefill(request.model) else None)


def ends_with_thinking(request: Anthropic) -> Iterator[Finding]:
    """Assistant turns that end in thought."""
    for turn in request.turns:
        if turn.role == "assistant" and turn.blocks and turn.blocks[-1].kind in _THINKING:
            yield Finding(turn.blocks[-1].place, {"index": _index(turn.blocks[-1].message)})


def loop_without_thinking(request: Anthropic) -> Iterator[Finding]:
    """A tool loop none of whose assistant turns begins with a thought."""
    if request.thinking != "enabled":
        return
    loop = _open_loop(request.turns)
    if loop and not any(turn.blocks[0].kind in _THINKING for turn in loop):
        first = loop[-1].blocks[0]
        yield Finding(first.place, {"kind": first.kind[:40]})


def _open_loop(turns: tuple[Turn, ...]) -> list[Turn]:
    """The assistant turns since the user last said something, where the request ends in results."""
    loop: list[Turn] = []
    for turn in reversed(turns):
        if turn.role == "assistant" and _calls(turn):
            loop.insert(0, turn)
        elif turn.role != "user" or not _results(turn) or any(block.kind != "tool_result" for block in turn.blocks):
            break
    return loop


def thinking_disabled(request: Anthropic) -> Iterator[Finding]:
    """Thought in a last assistant message, where thinking is off."""
    last = request.messages[-1] if request.messages else None
    if last is None or last.role != "assistant" or request.thinking not in {None, "disabled"}:
        return
    yield from (Finding(block.place) for block in last.blocks if block.kind in _THINKING)


def unsigned(request: Anthropic) -> Iterator[Finding]:
    """Thought without its signature."""
    for message in request.messages:
        for block in message.blocks:
            if block.kind == "thinking" and not block.fields.get("signature"):
                yield Finding(block.place)


def first_not_user(request: Anthropic) -> Iterator[Finding]:
    """A first message that is not the user's."""
    if request.messages and request.messages[0].role == "assistant":
        yield Finding(request.messages[0].place)


def _index(message: str) -> int:
    return int(message.removeprefix("messages[").removesuffix("]"))
