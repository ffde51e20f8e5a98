"""turnlog as a system of ``peerbench``, which measures session stores side by side.

Copy it to ``peerbench/systems/turnlog_store.py`` and add ``"turnlog": "turnlog_store:Turnlog"`` to ``SYSTEMS``.
"""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false
# mypy: disable-error-code="import-not-found,misc"

from __future__ import annotations

from typing import Any, TypeAlias

from turnlog import AssistantMessage, EventFilter, SessionEvent, SessionService, ToolMessage, ToolResult, UserMessage
from turnlog.log.messages import ToolCall

from ..adapter import Adapter  # noqa: TID252 - the place it is copied to

Messages: TypeAlias = list[Any]


class Turnlog(Adapter):
    """The sync service on one SQLite file, driven from threads."""

    name = "turnlog"
    durability = "WAL, FULL"
    distributions = ("turnlog",)
    window_slack = 3

    def open(self) -> None:
        """See ``Adapter.open``."""
        self._service = SessionService.open(f"sqlite:{self.target.file}")

    def native(self, message: Any) -> Any:
        """See ``Adapter.native``."""
        match message.role:
            case "user":
                return UserMessage(message.text)
            case "tool_call":
                return AssistantMessage(message.text, tool_calls=[ToolCall(message.call_id, "look_up")])
            case "tool_result":
                return ToolMessage([ToolResult(message.call_id, message.text)])
            case _:
                return AssistantMessage(message.text)

    def text(self, native: Any) -> str:
        """See ``Adapter.text``."""
        return native.results[0].text if isinstance(native, ToolMessage) else native.text

    def start(self, session: str, user: str) -> None:
        """See ``Adapter.start``."""
        self._service.create(session, principal=user)

    def seed(self, session: str, messages: Messages) -> Any:
        """See ``Adapter.seed``."""
        into = self._service.find_or_create(session)
        made = ([SessionEvent(session_id=session, message=message)] for message in messages)
        return self._service.repository.restore(into, made)

    def append(self, session: str, message: Any) -> None:
        """See ``Adapter.append``."""
        self._service.append_message(session, message)

    def window(self, session: str, n: int) -> Messages:
        """See ``Adapter.window``."""
        return [event.message for event in self._service.events(session, EventFilter.last(n))]

    def all(self, session: str) -> Messages:
        """See ``Adapter.all``."""
        return [event.message for event in self._service.events(session)]

    def list(self, user: str) -> Any:
        """See ``Adapter.list``."""
        return [session.id for session in self._service.list(principal=user, limit=1_000)]

    def search(self, session: str, word: str, limit: int) -> Messages:
        """See ``Adapter.search``."""
        newest = EventFilter(keyword=word, last=limit, whole_turns=False)
        return [event.message for event in self._service.events(session, newest)]

    def close(self) -> None:
        """See ``Adapter.close``."""
        self._service.close()
