"""From lines of a session file to entries."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from turnlog.errors import InvalidValueError
from turnlog.formats import anthropic
from turnlog.formats.claude_code.survey import SPOKEN, Survey
from turnlog.formats.foreign import Entry, Line, OnFault, moment
from turnlog.formats.json_fields import as_object, is_array, is_object, object_at, optional_text_at, text_at
from turnlog.formats.pairing import results_next_to_calls
from turnlog.formats.reply import all_present
from turnlog.log.events import EventType
from turnlog.log.messages import AssistantMessage, Message, MessageMetadata

_META: Final = EventType.of("CLAUDE_CODE.META")
_SUMMARY: Final = EventType.of("CLAUDE_CODE.SUMMARY")
_BOUNDARY: Final = EventType.of("CLAUDE_CODE.COMPACT_BOUNDARY")
_SYSTEM: Final = EventType.of("CLAUDE_CODE.SYSTEM")
_QUEUE: Final = EventType.of("CLAUDE_CODE.QUEUE")
_API_ERROR: Final = EventType.of("CLAUDE_CODE.API_ERROR")
_LEFT_BEHIND: Final = EventType.of("CLAUDE_CODE.LEFT_BEHIND")

#: Where the words of a line stand.
_MESSAGE: Final = "message"
_ATTACHMENT: Final = "attachment"
#: How Claude Code calls what it says when a task in the background has ended.
_NOTIFICATION: Final = "task-notification"

#: What every line carries, and says nothing of its own.
_ENVELOPE: Final = frozenset(
    {
        *("uuid", "parentUuid", "logicalParentUuid", "sessionId", "isSidechain", "agentId", "userType", "timestamp"),
        *("type", "cwd", "version", "gitBranch", "slug", "entrypoint", "requestId", "isMeta", "toolUseResult"),
    }
)
_NO_SEGMENT: Final = re.compile(r"[^\w-]+")
_LONGEST_SEGMENT: Final = 100


class _Part(Struct, frozen=True):
    """A line of a message that may span several."""

    line: int
    fields: dict[str, Any]
    timestamp: datetime | None
    branch: str | None


class _Open(Struct):
    """A message whose lines are still coming, or an entry that waits behind one."""

    entry: Entry | None = None
    message_id: str | None = None
    parts: list[_Part] = []
    missing: int = 0


def read(lines: Iterable[Line], found: Survey, on_fault: OnFault) -> Iterator[Entry]:
    """The entries, results next to their calls. ``lines`` are those that ``found`` was made of.

    A wrong line is left out, and ``on_fault`` told of it with the path of what is wrong. What becomes no entry is
    counted in ``found.facts``.
    """
    found.facts.left_out.clear()
    entries = _Reader(found, on_fault).read(lines)
    yield from results_next_to_calls(entries, Counter(found.results), Counter(found.calls))


class _Reader:
    def __init__(self, found: Survey, on_fault: OnFault) -> None:
        self._found = found
        self._on_fault = on_fault
        self._queue = deque[_Open]()
        self._open: dict[str, _Open] = {}
        self._branches: dict[str, str] = {}
        self._unnamed = 0

    def read(self, lines: Iterable[Line]) -> Iterator[Entry]:
        """The entries in the order in which they begin."""
        for number, value in lines:
            try:
                self._take(number, value)
            except InvalidValueError as error:
                self._on_fault(number, _in_file(str(error)))
            except RecursionError:
                self._on_fault(number, "the line is nested too deep")
            yield from self._ready()
        for waiting in self._queue:
            waiting.missing = 0
        yield from self._ready()

    def _ready(self) -> Iterator[Entry]:
        while self._queue and not self._queue[0].missing:
            first = self._queue.popleft()
            if first.message_id is not None:
                del self._open[first.message_id]
            if first.parts:
                yield _joined(first.parts)
            elif first.entry is not None:
                yield first.entry

    def _take(self, number: int, value: object) -> None:
        fields = as_object(value, "the line")
        kind = text_at(fields, "type", "the line")
        branch = self._branch(fields)
        if number in self._found.repeated:
            self._leave_out("repeated")
        elif number in self._found.left_behind:
            self._note(number, fields, _LEFT_BEHIND, branch)
        elif kind in SPOKEN:
            self._take_spoken(number, fields, kind, branch)
        elif kind == "system":
            is_boundary = fields.get("subtype") == "compact_boundary"
            self._note(number, fields, _BOUNDARY if is_boundary else _SYSTEM, branch)
        elif kind == "attachment" and (queued := _queued(fields)) is not None:
            self._take_queued(number, fields, queued, branch)
        elif kind == "queue-operation" and type(fields.get("content")) is str:
            self._note(number, fields, _QUEUE, branch)
        else:
            self._leave_out(kind[:40])

    def _take_queued(self, number: int, fields: dict[str, Any], queued: dict[str, Any], branch: str | None) -> None:
        """What was typed while the model was at work, or what Claude Code told it then."""
        is_injected = queued.get("isMeta") is True or queued.get("commandMode") == _NOTIFICATION
        if is_injected or _is_notification(fields) or _is_notification(queued):
            self._note(number, fields, _META, branch)
        else:
            self._say(number, fields, _of_user(queued["prompt"], _ATTACHMENT), branch)

    def _take_spoken(self, number: int, fields: dict[str, Any], kind: str, branch: str | None) -> None:
        message = object_at(fields, "message", "the line")
        if fields.get("isCompactSummary") is True:
            self._note(number, fields, _SUMMARY, branch)
        elif fields.get("isMeta") is True or _is_notification(fields):
            self._note(number, fields, _META, branch)
        elif fields.get("isApiErrorMessage") is True:
            self._note(number, fields, _API_ERROR, branch)
        elif kind == "user":
            self._say(number, fields, _of_user(message.get("content"), _MESSAGE), branch)
        else:
            at = moment(fields.get("timestamp"), "timestamp")
            self._add_part(_Part(number, fields, at, branch), message)

    def _add_part(self, part: _Part, message: dict[str, Any]) -> None:
        message_id = optional_text_at(message, "id", "message")
        waiting = None if message_id is None else self._open.get(message_id)
        if waiting is None:
            lines = 1 if message_id is None else max(self._found.parts[message_id], 1)
            waiting = _Open(message_id=message_id, parts=[], missing=lines)
            self._queue.append(waiting)
            if message_id is not None:
                self._open[message_id] = waiting
        waiting.missing -= 1
        _reply([part.fields])  # a wrong line is left out alone
        waiting.parts.append(part)

    def _say(self, number: int, fields: dict[str, Any], messages: list[Message], branch: str | None) -> None:
        at = moment(fields.get("timestamp"), "timestamp")
        metadata = _about(fields)
        for message in messages:
            entry = Entry(line=number, message=message, timestamp=at, branch=branch, metadata=metadata)
            self._queue.append(_Open(entry=entry))

    def _note(self, number: int, fields: dict[str, Any], kind: EventType, branch: str | None) -> None:
        at = moment(fields.get("timestamp"), "timestamp")
        payload = {key: value for key, value in fields.items() if key not in _ENVELOPE}
        entry = Entry(line=number, type=kind, payload=payload, timestamp=at, branch=branch, metadata=_about(fields))
        self._queue.append(_Open(entry=entry))

    def _leave_out(self, kind: str) -> None:
        self._found.facts.left_out[kind] += 1

    def _branch(self, fields: dict[str, Any]) -> str | None:
        """A side chain has the name of its agent; older files give none, and its lines are known by their parents."""
        if fields.get("isSidechain") is not True or self._found.is_agent:
            return None
        agent = optional_text_at(fields, "agentId", "the line")
        parent = optional_text_at(fields, "parentUuid", "the line")
        uuid = optional_text_at(fields, "uuid", "the line")
        branch = self._branches.get(parent or "")
        if branch is None and agent:
            branch = f"agent-{_NO_SEGMENT.sub('_', agent)[:_LONGEST_SEGMENT]}"
        elif branch is None:
            self._unnamed += 1
            branch = f"sidechain-{self._unnamed}"
        if uuid is not None:
            self._branches[uuid] = branch
        return branch


def _joined(parts: list[_Part]) -> Entry:
    first = parts[0]
    message, metadata = _reply([part.fields for part in parts])
    return Entry(line=first.line, message=message, timestamp=first.timestamp, branch=first.branch, metadata=metadata)


def _queued(fields: dict[str, Any]) -> dict[str, Any] | None:
    """The attachment that says what came while the model was at work; text, or blocks where there are pictures."""
    attachment = fields.get("attachment")
    if not is_object(attachment) or attachment.get("type") != "queued_command":
        return None
    return attachment if attachment.get("prompt") else None


def _is_notification(fields: dict[str, Any]) -> bool:
    """Whether Claude Code says by itself that a task in the background has ended."""
    origin = fields.get("origin")
    return is_object(origin) and origin.get("kind") == _NOTIFICATION


def _in_file(problem: str) -> str:
    """A problem with the path as it is in the line, where a message is parsed alone."""
    return problem.replace(f"{_MESSAGE}[0]", _MESSAGE, 1).replace(
        f"{_ATTACHMENT}[0].content", f"{_ATTACHMENT}.prompt", 1
    )


def _about(fields: dict[str, Any]) -> dict[str, Any]:
    kept = {"uuid": fields.get("uuid"), "request_id": fields.get("requestId")}
    return {"claude_code": {key: value for key, value in kept.items() if type(value) is str}}


def _of_user(content: Any, where: str) -> list[Message]:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    elif is_array(content):
        content = [_plain(block) for block in all_present(content)]
    return anthropic.parse([{"role": "user", "content": content}], where=where)


def _plain(block: Any) -> Any:
    """A result as one would write it oneself, so that it needs no second copy."""
    if not is_object(block) or block.get("type") != "tool_result":
        return block
    kept = {key: value for key, value in block.items() if key != "is_error" or value is not False}
    content = kept.get("content")
    if is_array(content) and len(content) == 1 and is_object(content[0]) and content[0].keys() == {"type", "text"}:
        kept["content"] = content[0]["text"] if content[0]["type"] == "text" else content
    return kept


def _reply(lines: list[dict[str, Any]]) -> tuple[AssistantMessage, dict[str, Any]]:
    """The message that several lines say together, and what is noted of it."""
    blocks: list[Any] = []
    for fields in lines:
        for block in _blocks_of(object_at(fields, "message", "the line")):
            if block not in blocks:
                blocks.append(block)
    newest = lines[-1]["message"]
    reply = anthropic.parse_reply(
        {key: newest.get(key) for key in ("usage", "model", "stop_reason")} | {"content": blocks}, "message"
    )
    message = reply.message
    if reply.usage is not None:
        usage = {"input_tokens": reply.usage.input_tokens, "output_tokens": reply.usage.output_tokens}
        message = message.replace(metadata={MessageMetadata.USAGE: usage})
    metadata = _about(lines[0])
    if reply.model is not None:
        metadata["claude_code"]["model"] = reply.model
    return message, metadata


def _blocks_of(message: dict[str, Any]) -> list[Any]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if is_array(content) else [content]
