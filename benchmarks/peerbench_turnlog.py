"""turnlog as a system of ``peerbench``, which measures session stores side by side.

Copy it to ``peerbench/systems/turnlog_store.py`` and add ``"turnlog": "turnlog_store:Turnlog"`` to ``SYSTEMS``.
"""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false
# mypy: disable-error-code="import-not-found,misc"
# ruff: noqa: D102 - the contract in peerbench/adapter.py documents the methods

from __future__ import annotations

from typing import Any

from turnlog import (
    AssistantMessage,
    EventFilter,
    SessionEvent,
    SessionService,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)

from ..adapter import Adapter  # noqa: TID252 - the place it is copied to


class Turnlog(Adapter):
    """The sync service on one SQLite file, driven from threads."""

    name = "turnlog"
    durability = "WAL, FULL"
    distributions = ("turnlog",)
    window_slack = 3

    def open(self) -> None:
        self._service = SessionService.open(f"sqlite:{self.target.file}")

    def native(self, message: Any) -> Any:
        if message.role == "tool_result":
            return ToolMessage([ToolResult(message.call_id, message.text)])
        if message.role == "tool_call":
            return AssistantMessage(message.text, tool_calls=[ToolCall(message.call_id, "look_up")])
        return (UserMessage if message.role == "user" else AssistantMessage)(message.text)

    def text(self, native: Any) -> str:
        return native.results[0].text if isinstance(native, ToolMessage) else native.text

    def start(self, session: str, user: str) -> None:
        self._service.create(session, principal=user)

    async def seed(self, session: str, messages: Any) -> None:
        log = [[SessionEvent(session_id=session, message=message)] for message in messages]
        self._service.repository.restore(self._service.find_or_create(session), log)

    def append(self, session: str, message: Any) -> None:
        self._service.append_message(session, message)

    def window(self, session: str, n: int) -> Any:
        return [event.message for event in self._service.events(session, EventFilter.last(n))]

    def all(self, session: str) -> Any:
        return [event.message for event in self._service.events(session)]

    def list(self, user: str) -> Any:
        return [session.id for session in self._service.list(principal=user, limit=1_000)]

    def search(self, session: str, word: str, limit: int) -> Any:
        newest = EventFilter(keyword=word, last=limit, whole_turns=False)
        return [event.message for event in self._service.events(session, newest)]

    def close(self) -> None:
        self._service.close()
