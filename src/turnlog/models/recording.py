"""A recorded conversation, taken apart as a chat client would hold it again."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from turnlog.errors import InvalidValueError
from turnlog.log.messages import AssistantMessage, Message, SystemMessage, ToolMessage, ToolResult, UserMessage


class Recording(Struct, frozen=True):
    """What the user's side of a conversation says: its system messages, and each request."""

    systems: tuple[SystemMessage, ...]
    requests: tuple[tuple[UserMessage, ...], ...]
    #: Whether results have the last word: then the last batch of tools returned directly.
    ends_in_results: bool
    #: Whether the last request has no reply at all.
    ends_in_request: bool


def turns_of(messages: Sequence[Message]) -> Recording:
    """The requests that ``messages`` answer; user messages in a row are one request.

    Raises :class:`InvalidValueError`, with the place, for what no client holds: a reply without a request before it, a
    second reply to the same request, and a call that is not answered before the conversation goes on.
    """
    requests: list[list[UserMessage]] = []
    before: Message | None = None
    for index, message in enumerate(messages):
        if isinstance(message, SystemMessage):
            continue
        if problem := _problem(messages, index, before):
            raise InvalidValueError(f"messages[{index}]: {problem}")
        if isinstance(message, UserMessage):
            if not isinstance(before, UserMessage):
                requests.append([])
            requests[-1].append(message)
        before = message
    return Recording(
        systems=tuple(message for message in messages if isinstance(message, SystemMessage)),
        requests=tuple(map(tuple, requests)),
        ends_in_results=isinstance(before, ToolMessage),
        ends_in_request=isinstance(before, UserMessage),
    )


def results_of(messages: Sequence[Message], index: int) -> list[ToolResult]:
    """The results that directly follow the message at ``index``."""
    found: list[ToolResult] = []
    for message in messages[index + 1 :]:
        if not isinstance(message, ToolMessage):
            break
        found += message.results
    return found


def _problem(messages: Sequence[Message], index: int, before: Message | None) -> str:
    message = messages[index]
    if isinstance(message, ToolMessage):
        is_answer = isinstance(before, ToolMessage) or (isinstance(before, AssistantMessage) and before.tool_calls)
        return "" if is_answer else "a tool's result follows no call"
    if not isinstance(message, AssistantMessage):
        return ""
    if before is None:
        return "a reply stands before the first request"
    if isinstance(before, AssistantMessage):
        return "a second reply follows without a request"
    answered = {result.id for result in results_of(messages, index)}
    is_end = not messages[index + 1 :]
    missing = [call.id for call in message.tool_calls if call.id not in answered]
    return f"call {missing[0]!r:.80} has no result" if missing and not is_end else ""
