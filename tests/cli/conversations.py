"""Small conversations in OpenAI's form."""

from __future__ import annotations

from typing import Any


def system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str | None, *calls: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": call, "type": "function", "function": {"name": f"do_{call}", "arguments": "{}"}} for call in calls
        ]
    return message


def tool(call: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call, "content": text}


#: A preamble, a turn with parallel calls, and a turn without.
TRIP = [
    system("You plan trips."),
    user("Where is it warm in May?"),
    assistant("Let me look.", "a", "b"),
    tool("a", "Rome 24 degrees"),
    tool("b", "Oslo 11 degrees"),
    assistant("Rome is warm in May."),
    user("And in June?"),
    assistant("Rome too."),
]
