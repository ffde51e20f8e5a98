"""Short ways to say sessions, events and conversations, always with the same ids and times.

Event ``n`` has the id ``e<n>`` and the time :data:`~turnlog.testing.clocks.START` plus ``n`` seconds. In a log that is
appended from the beginning ``n`` is the position too, which makes expected values easy to write.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, Final

from turnlog.log.events import EventMetadata, EventType, SessionEvent
from turnlog.log.messages import (
    AssistantMessage,
    Content,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from turnlog.log.session import Session, SessionAttributes
from turnlog.log.view import Boundary, Range
from turnlog.testing.clocks import START

SESSION_ID: Final = "s"
PROGRESS: Final = EventType.of("TEST.PROGRESS")


def session(session_id: str = SESSION_ID, *, principal: str | None = None, **fields: Any) -> Session:
    """A session created at START; ``metadata`` and every other field as given."""
    owner = {} if principal is None else {SessionAttributes.PRINCIPAL_NAME: principal}
    metadata = owner | fields.pop("metadata", {})
    fixed: dict[str, Any] = {"id": session_id, "created_at": START, "metadata": metadata}
    return Session(**fixed | fields)


def event(n: int, message: Message | None = None, **fields: Any) -> SessionEvent:
    """Event ``n``: a message, or with ``type`` and ``payload`` anything else. ``run`` is short for the run's id."""
    run = fields.pop("run", None)
    metadata = ({} if run is None else {EventMetadata.RUN_ID: run}) | fields.pop("metadata", {})
    fixed: dict[str, Any] = {"session_id": SESSION_ID, "id": f"e{n}", "timestamp": START + timedelta(seconds=n)}
    fixed |= {"message": message, "metadata": metadata}
    return SessionEvent(**fixed | fields)


def user(n: int, content: Content = "question", **fields: Any) -> SessionEvent:
    """A user message."""
    return event(n, UserMessage(content), **fields)


def assistant(n: int, content: Content = "answer", **fields: Any) -> SessionEvent:
    """A reply without tool calls."""
    return event(n, AssistantMessage(content), **fields)


def calls(n: int, *call_ids: str, content: Content = None, **fields: Any) -> SessionEvent:
    """An assistant message with a tool call for each id, all in parallel."""
    asked = tuple(ToolCall(call_id, "look_up", f'{{"key": "{call_id}"}}') for call_id in call_ids)
    return event(n, AssistantMessage(content, tool_calls=asked), **fields)


def results(n: int, *call_ids: str, content: Content = "found", **fields: Any) -> SessionEvent:
    """One tool message that answers these calls."""
    return event(n, ToolMessage(tuple(ToolResult(call_id, content) for call_id in call_ids)), **fields)


def system(n: int, content: Content = "be kind", **fields: Any) -> SessionEvent:
    """A system message."""
    return event(n, SystemMessage(content), **fields)


def own(n: int, payload: dict[str, Any] | None = None, *, type: EventType = PROGRESS, **fields: Any) -> SessionEvent:
    """An event of a type of the application's own."""
    return event(n, None, type=type, payload=payload or {}, **fields)


def boundary(
    n: int, view: Iterable[Range], *, strategy: str = "window", end: int | None = None, **fields: Any
) -> SessionEvent:
    """A boundary at position ``n`` whose batch ends at ``end`` (default: with the boundary itself)."""
    payload = Boundary(view=tuple(view), end=n if end is None else end, strategy=strategy).payload()
    return event(n, None, type=EventType.COMPACTION, payload=payload, **fields)


def summary(
    n: int, kept: Sequence[Range] = (), *, pinned: Sequence[Range] = (), text: str = "so far", **fields: Any
) -> list[SessionEvent]:
    """A compaction's batch at ``n`` to ``n + 2``: a boundary that names ``pinned``, the summary, ``kept``."""
    view = (*pinned, (n + 1, n + 2), *kept)
    made = {EventMetadata.SYNTHETIC: True, EventMetadata.STRATEGY: "summary", EventMetadata.BOUNDARY: f"e{n}"}
    return [
        boundary(n, view, strategy="summary", end=n + 2, **fields),
        user(n + 1, "What happened so far?", metadata=made, **fields),
        assistant(n + 2, text, metadata=made, **fields),
    ]


def turn(n: int, **fields: Any) -> list[SessionEvent]:
    """One turn with a pair of parallel tool calls: four events, ``n`` to ``n + 3``."""
    first, second = f"call{n}a", f"call{n}b"
    return [
        user(n, f"question {n}", **fields),
        calls(n + 1, first, second, **fields),
        results(n + 2, first, second, **fields),
        assistant(n + 3, f"answer {n}", **fields),
    ]


def conversation(turns: int = 3, *, first: int = 1, **fields: Any) -> list[SessionEvent]:
    """So many turns of four events each, the first of them event ``first``."""
    return [made for index in range(turns) for made in turn(first + 4 * index, **fields)]
