"""Driving a recorded conversation with its tools through client and advisors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

from msgspec import Struct

from turnlog.chat import Tool, schema_tool
from turnlog.log.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)


class Recording(Struct, frozen=True):
    """A recording as a client drives it: instructions, the requests, the model's replies, and the tools' results."""

    system: SystemMessage | None
    requests: tuple[tuple[UserMessage, ...], ...]
    replies: tuple[AssistantMessage, ...]
    results: tuple[ToolResult, ...]
    #: What a log holds in the end: all that is no system message, up to the last reply or result.
    stored: tuple[Message, ...]

    def tools(self) -> list[Tool]:
        """Tools that give the recorded results in the order of the calls; those of a last batch end the turn."""
        last_batch = len(self.replies[-1].tool_calls) if isinstance(self.stored[-1], ToolMessage) else 0
        given, judged = count(), count()
        total = len(self.results)

        def function(**_: object) -> ToolResult:
            return self.results[next(given)]

        def is_last(_: ToolResult) -> bool:
            return next(judged) >= total - last_batch

        names = dict.fromkeys(call.name for reply in self.replies for call in reply.tool_calls)
        return [
            schema_tool(function, name=name, parameters={"type": "object"}, return_direct=is_last) for name in names
        ]


def recording_of(messages: Sequence[Message]) -> Recording:
    """Take a recording apart; user messages in a row are one request, and those at its end are not sent."""
    systems = [message for message in messages if isinstance(message, SystemMessage)]
    said = [message for message in messages if not isinstance(message, SystemMessage)]
    while isinstance(said[-1], UserMessage):
        said.pop()
    requests: list[list[UserMessage]] = []
    for index, message in enumerate(said):
        if isinstance(message, UserMessage):
            if index and isinstance(said[index - 1], UserMessage):
                requests[-1].append(message)
            else:
                requests.append([message])
    return Recording(
        systems[0] if systems else None,
        tuple(map(tuple, requests)),
        tuple(message for message in said if isinstance(message, AssistantMessage)),
        tuple(result for message in said if isinstance(message, ToolMessage) for result in message.results),
        tuple(said),
    )


def in_batches(messages: Iterable[Message], size: int) -> list[Message]:
    """The same conversation with up to ``size`` tool rounds in a row made one reply with that many calls.

    An id that the model has used again gets another, as no reply may hold it twice.
    """
    merged: list[Message] = []
    batch: list[tuple[AssistantMessage, list[ToolMessage]]] = []
    for message in messages:
        if isinstance(message, AssistantMessage) and message.tool_calls:
            if len(batch) == size:
                merged += _together(batch)
                batch = []
            batch.append((message, []))
        elif isinstance(message, ToolMessage) and batch:
            batch[-1][1].append(message)
        else:
            merged += _together(batch)
            batch = []
            merged.append(message)
    return [*merged, *_together(batch)]


def _together(batch: Sequence[tuple[AssistantMessage, list[ToolMessage]]]) -> list[Message]:
    calls: list[ToolCall] = []
    results: list[Message] = []
    if not batch:
        return []
    for number, (asking, answering) in enumerate(batch):
        calls += [ToolCall(f"{call.id}-{number}", call.name, call.arguments) for call in asking.tool_calls]
        results += [
            ToolMessage((ToolResult(f"{result.id}-{number}", result.content, result.status, result.name),))
            for message in answering
            for result in message.results
        ]
    text = "\n".join(asking.text for asking, _ in batch if asking.text)
    return [AssistantMessage(text or None, tool_calls=calls), *results]
