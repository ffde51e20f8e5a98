"""What mypy and basedpyright make of the public API, as a user's code would meet it.

Nothing here runs: ``scripts/lint`` checks it. A changed signature that breaks a caller, or a result that has become
``Any``, is an error in this file. The ignore comments mark what must *not* type-check; an idle one is an error.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import assert_type

from turnlog import (
    ANY_BRANCH,
    AppendResult,
    AssistantMessage,
    AsyncSessionRepository,
    AsyncSessionService,
    Durability,
    EventFilter,
    EventQuery,
    EventType,
    Match,
    MediaPart,
    Message,
    MessageType,
    Part,
    ReasoningPart,
    SearchPage,
    Session,
    SessionAttributes,
    SessionEvent,
    SessionPage,
    SessionRepository,
    SessionService,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolStatus,
    UserMessage,
    VersionConflictError,
    Window,
    open_async_store,
    open_store,
    search_text,
)


def messages() -> None:
    question = UserMessage("hi")
    call = ToolCall(id="c1", name="look", arguments="{}")
    _ = assert_type(question.text, str)
    _ = assert_type(search_text(AssistantMessage(tool_calls=(call,))), str)
    _ = assert_type(ToolMessage((ToolResult(id="c1", name="look", content="found"),)).type, MessageType)
    _ = assert_type(question.parts, tuple[Part, ...])
    _ = assert_type(AssistantMessage(tool_calls=[call]).tool_calls, Sequence[ToolCall])
    question.metadata = {}  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def sequences() -> None:
    """What takes several takes a list or a tuple, and a set where order means nothing."""
    image = MediaPart(media_type="image/png", url="https://example.org/a.png")
    call, result = ToolCall("c1", "look"), ToolResult("c1", [TextPart("found"), image], ToolStatus.OK)
    parts: list[Part] = [TextPart("What is this?"), image]
    _ = UserMessage(parts), UserMessage((TextPart("What is this?"), image)), UserMessage([image])
    _ = SystemMessage([TextPart("Be kind.")]), AssistantMessage([ReasoningPart(text="…"), TextPart("A cat.")])
    _ = AssistantMessage(tool_calls=[call, call]), AssistantMessage(None, tool_calls=(call,))
    _ = ToolMessage([result]), ToolMessage((result, result)), ToolResult("c1", (image,))
    for types in [MessageType.USER], (MessageType.USER,), {MessageType.USER}, frozenset({MessageType.USER}):
        _ = EventFilter(message_types=types), EventQuery(message_types=types)
    _ = EventFilter(event_types=[EventType.MESSAGE], keywords=("a", "b")), EventFilter(keywords=["a", "b"])
    _ = EventQuery(terms=["a", "b"]), EventQuery(terms=("a",))
    _ = UserMessage([call])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    _ = AssistantMessage(tool_calls=call)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def events() -> None:
    said = SessionEvent(session_id="s", message=UserMessage("hi"), branch="orch.researcher")
    noted = SessionEvent(session_id="s", type=EventType.of("MY_APP.PROGRESS"), payload={"done": 0.5})
    _ = assert_type(said.position, int | None)
    _ = assert_type(said.timestamp, datetime)
    _ = assert_type(noted.type, EventType)


def filters() -> None:
    recent = EventFilter.last(50, whole_turns=False).merge(EventFilter.active())
    _ = assert_type(recent, EventFilter)
    _ = assert_type(recent.replace(branch=None, window=Window.page(0, size=10)), EventFilter)
    _ = EventFilter(
        message_types={MessageType.USER},
        event_types={EventType.MESSAGE},
        since=datetime(2026, 1, 1, tzinfo=UTC),
        keywords=["refund", "late"],
        match=Match.ALL,
        pattern=re.compile(r"\d+"),
        branch=ANY_BRANCH,
    )


def sync_service() -> None:
    with SessionService(open_store("memory:"), default_time_to_live=timedelta(days=30)) as service:
        _ = assert_type(service, SessionService)
        _ = assert_type(service.repository, SessionRepository)
        _ = assert_type(service.repository.durability, Durability)
        session = service.create("s", metadata={SessionAttributes.PRINCIPAL_NAME: "ada"})
        _ = assert_type(session, Session)
        _ = assert_type(service.find("s"), Session | None)
        _ = assert_type(service.list(principal="ada"), SessionPage)
        _ = assert_type(service.append_message("s", UserMessage("hi")), SessionEvent)
        said = SessionEvent(session_id="s", message=UserMessage("hi"))
        _ = assert_type(service.append("s", said, expected_version=1), AppendResult)
        _ = assert_type(service.events("s", EventFilter.last(5)), list[SessionEvent])
        _ = assert_type(service.iter_events("s"), Iterator[SessionEvent])
        _ = assert_type(service.active_messages("s"), list[Message])
        _ = assert_type(service.search("s", EventQuery(terms=("hi",))), SearchPage)
        _ = assert_type(service.version("s"), int)
        _ = assert_type(service.fork("s", at=1), Session)
        _ = assert_type(service.delete("s"), bool)
        service.append_message("s", "hi")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def async_service() -> None:
    async with AsyncSessionService(open_async_store("memory:")) as service:
        _ = assert_type(service, AsyncSessionService)
        _ = assert_type(service.repository, AsyncSessionRepository)
        _ = assert_type(await service.create("s"), Session)
        _ = assert_type(await service.append_message("s", UserMessage("hi")), SessionEvent)
        _ = assert_type(await service.events("s"), list[SessionEvent])
        _ = assert_type(service.iter_events("s"), AsyncIterator[SessionEvent])
        _ = assert_type(await service.active_messages("s"), list[Message])
        _ = assert_type(await service.version("s"), int)


def errors() -> None:
    try:
        raise VersionConflictError("s", 1, 2)
    except VersionConflictError as error:
        _ = assert_type(error.exit_code, int)
