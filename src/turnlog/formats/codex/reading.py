"""From lines of a rollout to entries."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from turnlog.errors import InvalidValueError
from turnlog.formats import openai_responses
from turnlog.formats.codex.survey import OUTPUTS, WRAPPERS, Survey, is_head, is_injected, item_of
from turnlog.formats.foreign import Entry, Line, OnFault, moment
from turnlog.formats.json_fields import (
    as_object,
    is_array,
    is_object,
    object_at,
    optional_object_at,
    optional_text_at,
    text_at,
)
from turnlog.formats.pairing import results_next_to_calls
from turnlog.formats.reply import Usage, usage_of
from turnlog.log.events import EventType
from turnlog.log.messages import AssistantMessage, MessageMetadata, Native, SystemMessage

_CONTEXT: Final = EventType.of("CODEX.CONTEXT")
_COMPACTED: Final = EventType.of("CODEX.COMPACTED")
_ABORTED: Final = EventType.of("CODEX.TURN_ABORTED")
_ROLLED_BACK: Final = EventType.of("CODEX.ROLLED_BACK")

#: Items that a model makes: those in a row are one reply.
_OF_MODEL: Final = frozenset(
    {
        *("reasoning", "function_call", "custom_tool_call", "local_shell_call", "web_search_call"),
        *("image_generation_call", "tool_search_call", "tool_search_output", "mcp_call"),
    }
)


_PLAIN_MESSAGE: Final = frozenset({"type", "role", "content"})
_TEXTS: Final = ("input_text", "output_text")


class _Reply(Struct):
    """The items of a reply so far, and results that came behind them."""

    line: int
    items: list[dict[str, Any]]
    timestamp: datetime | None
    behind: list[Entry]
    usage: Usage | None = None


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
        self._reply: _Reply | None = None
        self._model: str | None = None
        self._ready: list[Entry] = []

    def read(self, lines: Iterable[Line]) -> Iterator[Entry]:
        """The entries in the order in which they begin."""
        for number, value in lines:
            try:
                self._take(number, value)
            except InvalidValueError as error:
                self._on_fault(number, str(error).replace("payload[0]", "payload", 1))
            except RecursionError:
                self._on_fault(number, "the line is nested too deep")
            yield from self._ready
            self._ready.clear()
        self._end_reply()
        yield from self._ready

    def _take(self, number: int, value: object) -> None:
        fields = as_object(value, "the line")
        at = moment(fields.get("timestamp"), "timestamp")
        if self._found.instructions is not None and number == self._found.instructions[0]:
            message = SystemMessage(self._found.instructions[1])
            self._ready.append(Entry(line=number, message=message, timestamp=at))
            return
        if fields.get("record_type") is not None or ("type" not in fields and is_head(fields)):
            self._leave_out("state" if "record_type" in fields else "session_meta")
            return
        kind = text_at(fields, "type", "the line")
        if kind in WRAPPERS:
            object_at(fields, "payload", "the line")
        item = item_of(fields)
        if item is not None:
            self._take_item(number, item, at)
        else:
            self._take_note(number, kind, as_object(fields.get("payload"), "payload"), at)

    def _take_note(self, number: int, kind: str, payload: dict[str, Any], at: datetime | None) -> None:
        event = optional_text_at(payload, "type", "payload") if kind == "event_msg" else None
        if kind == "compacted":
            self._note(number, _COMPACTED, {"message": payload.get("message")}, at)
        elif event == "turn_aborted":
            self._note(number, _ABORTED, {"reason": payload.get("reason")}, at)
        elif event == "token_count":
            self._add_usage(payload)
        elif kind == "turn_context":
            self._model = optional_text_at(payload, "model", "payload") or self._model
            self._leave_out(kind)
        else:
            self._leave_out(event or kind)

    def _take_item(self, number: int, item: dict[str, Any], at: datetime | None) -> None:
        kind = text_at(item, "type", "payload")
        if number in self._found.rolled_back:
            self._note(number, _ROLLED_BACK, {"item": item}, at)
        elif kind in _OF_MODEL or (kind == "message" and item.get("role") == "assistant"):
            self._add_to_reply(number, _plain(item), at)
        elif kind == "message" and is_injected(item):
            self._note(number, _CONTEXT, {"item": item}, at)
        elif kind in OUTPUTS and self._reply is not None:
            # The usage of the reply is reported before or after them.
            self._reply.behind += _entries(number, item, at)
        elif kind == "message" or kind in OUTPUTS:
            self._end_reply()
            self._ready += _entries(number, item, at)
        else:
            self._leave_out(kind[:40])

    def _add_to_reply(self, number: int, item: dict[str, Any], at: datetime | None) -> None:
        openai_responses.parse([item], where="payload")  # a wrong line is left out alone
        reply = self._reply
        if reply is None or reply.behind or (_is_said(item) and any(map(_is_said, reply.items))):
            self._end_reply()
            reply = self._reply = _Reply(number, [], at, [])
        reply.items.append(item)

    def _end_reply(self) -> None:
        reply, self._reply = self._reply, None
        if reply is None:
            return
        metadata = {} if self._model is None else {"codex": {"model": self._model}}
        # One reply to the parser too, whether its messages have ids or not.
        message = _joined(openai_responses.parse(reply.items, where="payload"))
        if reply.usage is not None:
            usage = {"input_tokens": reply.usage.input_tokens, "output_tokens": reply.usage.output_tokens}
            message = message.replace(metadata={MessageMetadata.USAGE: usage})
        self._ready.append(Entry(line=reply.line, message=message, timestamp=reply.timestamp, metadata=metadata))
        self._ready += reply.behind

    def _add_usage(self, payload: dict[str, Any]) -> None:
        info = optional_object_at(payload, "info", "payload")
        last = None if info is None else optional_object_at(info, "last_token_usage", "payload.info")
        usage = usage_of(last, ("input_tokens",), ("output_tokens",), "payload.info.last_token_usage")
        if self._reply is not None and usage is not None:
            self._reply.usage = usage
        self._leave_out("token_count")

    def _note(self, number: int, kind: EventType, payload: dict[str, Any], at: datetime | None) -> None:
        self._end_reply()
        self._ready.append(Entry(line=number, type=kind, payload=payload, timestamp=at))

    def _leave_out(self, kind: str) -> None:
        self._found.facts.left_out[kind] += 1


def _entries(number: int, item: dict[str, Any], at: datetime | None) -> list[Entry]:
    messages = openai_responses.parse([_plain(item)], where="payload")
    return [Entry(line=number, message=message, timestamp=at) for message in messages]


def _is_said(item: dict[str, Any]) -> bool:
    return bool(item.get("type", "message") == "message")


def _plain(item: dict[str, Any]) -> dict[str, Any]:
    """An item as the API takes it."""
    kept = {key: value for key, value in item.items() if value is not None and not key.startswith("internal_")}
    if kept["type"] == "local_shell_call" and type(kept.get("call_id")) is str:
        # Its output is that of a function call.
        return {
            "type": "function_call",
            "call_id": kept["call_id"],
            "name": "local_shell",
            "arguments": json.dumps(kept.get("action", {}), ensure_ascii=False),
        }
    text = _only_text(kept) if kept.keys() == _PLAIN_MESSAGE else None
    # So it needs no second copy beside our message.
    return kept if text is None else {"role": kept["role"], "content": text}


def _only_text(item: dict[str, Any]) -> str | None:
    """What a message says that is one text and nothing else."""
    content = item["content"]
    if not is_array(content) or len(content) != 1 or not is_object(content[0]):
        return None
    part = content[0]
    is_text = part.keys() == {"type", "text"} and part["type"] in _TEXTS
    return part["text"] if is_text and type(part["text"]) is str and part["text"].strip() else None


def _joined(messages: list[Any]) -> AssistantMessage:
    first: AssistantMessage = messages[0]
    if len(messages) == 1:
        return first
    parts = [part for message in messages for part in message.parts]
    calls = [call for message in messages for call in message.tool_calls]
    return AssistantMessage(parts or None, tool_calls=calls, native=Native(openai_responses.FORMAT, None))
