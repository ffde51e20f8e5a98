"""Short ways to say replies, and to read prompts and logs: one line for each message."""

from __future__ import annotations

from collections.abc import Sequence

from turnlog.chat import tool
from turnlog.log.events import SessionEvent
from turnlog.log.messages import AssistantMessage, Message, ToolCall, ToolMessage, ToolStatus
from turnlog.models.protocol import Prompt


def asks(
    *call_ids: str, name: str = "look_up", text: str | None = None, arguments: str | None = None
) -> AssistantMessage:
    """A reply that calls a tool once for each id, with the id as the key that is looked up."""
    said = [f'{{"key": "{call_id}"}}' if arguments is None else arguments for call_id in call_ids]
    calls = tuple(ToolCall(call_id, name, words) for call_id, words in zip(call_ids, said, strict=True))
    return AssistantMessage(text, tool_calls=calls)


def look_up(key: str) -> str:
    """What is known of the key."""
    return f"found {key}"


def hand_over(key: str) -> str:
    """Returns directly."""
    return f"handed over {key}"


DIRECT = tool(hand_over, return_direct=True)


def lines(messages: Sequence[Message]) -> list[str]:
    """One line for each message: role, then what it says."""
    return [line(message) for message in messages]


def line(message: Message) -> str:
    if isinstance(message, ToolMessage):
        shown = (
            f"{result.id}: {result.text}" + ("" if result.status is ToolStatus.OK else f" ({result.status})")
            for result in message.results
        )
        return f"tool {'; '.join(shown)}"
    words = [message.text] if message.text else []
    if isinstance(message, AssistantMessage) and message.tool_calls:
        words.append(f"calls {', '.join(call.id for call in message.tool_calls)}")
    return f"{message.type}: {' + '.join(words)}"


def prompts(seen: Sequence[Prompt]) -> list[list[str]]:
    """The messages of every prompt that a model was given."""
    return [lines(prompt.messages) for prompt in seen]


def logged(events: Sequence[SessionEvent]) -> list[str]:
    """The messages of a log, with the branch where there is one."""
    return [(f"[{event.branch}] " if event.branch else "") + line(event.content) for event in events]
