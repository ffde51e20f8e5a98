"""Lines as Claude Code writes them, in words of our own."""

from __future__ import annotations

from typing import Any

Fields = dict[str, Any]

SESSION = "5f1c9a4e-0000-4000-8000-000000000001"


class Transcript:
    """Writes lines that follow one another."""

    def __init__(self, session: str = SESSION) -> None:
        self.lines: list[Fields] = []
        self._session = session
        self._parent: str | None = None

    def add(self, kind: str, uuid: str, **fields: Any) -> Transcript:
        """A line of any kind, behind the last one unless ``parentUuid`` says otherwise."""
        number = len(self.lines)
        line: Fields = {
            "parentUuid": self._parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/ann/shop",
            "sessionId": self._session,
            "version": "2.1.30",
            "gitBranch": "main",
            "type": kind,
            "uuid": uuid,
            "timestamp": f"2026-03-01T10:{number:02}:00.000Z",
        }
        self.lines.append(line | fields)
        self._parent = uuid
        return self

    def user(self, uuid: str, content: Any, **fields: Any) -> Transcript:
        return self.add("user", uuid, message={"role": "user", "content": content}, **fields)

    def result(self, uuid: str, call: str, content: Any = "5", *, is_error: bool = False, **fields: Any) -> Transcript:
        block = {"type": "tool_result", "tool_use_id": call, "content": content, "is_error": is_error}
        return self.user(uuid, [block], toolUseResult={"stdout": content}, **fields)

    def assistant(self, uuid: str, message_id: str, block: Fields, **fields: Any) -> Transcript:
        message = {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-4-6",
            "content": [block],
            "stop_reason": None,
            "usage": {
                "input_tokens": 3,
                "cache_read_input_tokens": 100,
                "output_tokens": 7,
                "service_tier": "standard",
            },
        }
        return self.add("assistant", uuid, message=message, requestId=f"req_{message_id}", **fields)


def text(words: str) -> Fields:
    return {"type": "text", "text": words}


def thinking(words: str) -> Fields:
    return {"type": "thinking", "thinking": words, "signature": "c2ln"}


def use(id_: str, name: str = "Bash", **arguments: Any) -> Fields:
    return {"type": "tool_use", "id": id_, "name": name, "input": arguments}
