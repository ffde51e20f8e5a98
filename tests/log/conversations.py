"""The real conversations in the folder of recorded material, as logs."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from turnlog.log.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)


def conversations(data: Path) -> Iterator[tuple[str, list[Message]]]:
    """Each conversation's name and its messages, in order."""
    with gzip.open(data / "conversations.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            kept: dict[str, Any] = json.loads(line)
            yield f"{kept['source']} {kept['id']}", [message_of(each) for each in kept["messages"]]


def message_of(kept: dict[str, Any]) -> Message:
    """One message in OpenAI's chat form, as far as these conversations use it."""
    content: str | None = kept["content"]
    match kept["role"]:
        case "system":
            return SystemMessage(content)
        case "user":
            return UserMessage(content)
        case "assistant":
            asked: list[dict[str, Any]] = kept.get("tool_calls") or []
            return AssistantMessage(content, tool_calls=tuple(_call(each) for each in asked))
        case "tool":
            return ToolMessage((ToolResult(kept["tool_call_id"], content, name=kept.get("name")),))
        case role:
            raise ValueError(f"a conversation with a message of {role!r}")


def _call(kept: dict[str, Any]) -> ToolCall:
    function: dict[str, str] = kept["function"]
    return ToolCall(kept["id"], function["name"], function["arguments"])
