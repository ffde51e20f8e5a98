"""A process that calls the client: ``python -m tests.chat.caller ROLE ARGUMENTS``; its other end is the test."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, Final

from turnlog import AssistantMessage, SessionService, ToolCall
from turnlog.chat import ChatClient, SessionAdvisors, tool
from turnlog.models.scripted import ScriptedModel


def say(message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def hear() -> Any:
    line = sys.stdin.readline()
    return json.loads(line) if line else None


@tool
def look(text: str) -> str:
    """Look something up."""
    return f"found {text}"


def lines(name: str, calls: int) -> list[Any]:
    """For each call a reply with two tool calls, and one with their answer."""
    said: list[Any] = []
    for number in range(calls):
        asked = [ToolCall(f"c{index}", "look", json.dumps({"text": f"{name} {number} {index}"})) for index in range(2)]
        said += [AssistantMessage(None, tool_calls=asked), f"{name} {number} answered"]
    return said


def run_calling(url: str, name: str, calls: int) -> None:
    """Make calls with tools on one session, as fast as it goes."""
    with SessionService.open(url) as service:
        model = ScriptedModel(lines(name, calls))
        client = ChatClient(model, advisors=SessionAdvisors(service), tools=[look])
        say("ready")
        hear()
        for number in range(calls):
            client.call(f"{name} {number}", session_id="s")
    say("done")


def run_hanging(url: str) -> None:
    """Begin a turn, and get stuck in a tool."""

    @tool
    def hang() -> str:
        """Never come back."""
        say("stuck")
        hear()
        return "never"

    with SessionService.open(url) as service:
        model = ScriptedModel([AssistantMessage(None, tool_calls=[ToolCall("c0", "hang", "{}")]), "never"])
        say("ready")
        ChatClient(model, advisors=SessionAdvisors(service), tools=[hang]).call("first", session_id="s")


ROLES: Final[dict[str, Callable[..., None]]] = {"call": run_calling, "hang": run_hanging}

if __name__ == "__main__":
    ROLES[sys.argv[1]](**json.loads(sys.argv[2]))
