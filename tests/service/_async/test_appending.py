"""R-3, R-4, V-4: what is appended through the service, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from turnlog import (
    AssistantMessage,
    AsyncSessionService,
    EventContentConflictError,
    EventType,
    InvalidBatchError,
    InvalidValueError,
    Message,
    ReservedEventTypeError,
    SessionEvent,
    SessionNotFoundError,
    SystemMessage,
    SystemMessageRefusedError,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
    VersionConflictError,
)
from turnlog.testing.clocks import START, FixedClock
from turnlog.testing.factories import assistant, boundary, calls, results, summary, system, turn, user


@pytest.fixture(autouse=True)
async def _session(service: AsyncSessionService) -> None:
    await service.create("s")


async def test_one_event_is_appended(service: AsyncSessionService) -> None:
    """R-3: what is returned is what is stored."""
    result = await service.append("s", user(1))
    assert (result.version, result.is_replay) == (1, False)
    assert [event.position for event in result.events] == [1]
    assert await service.events("s") == list(result.events)
    assert result.events[0] == user(1, position=1)


async def test_a_batch_is_appended_whole_and_in_order(service: AsyncSessionService) -> None:
    """R-3"""
    await service.append("s", user(1))
    result = await service.append("s", [calls(2, "a", "b"), results(3, "a", "b"), assistant(4)])
    assert (result.version, [event.id for event in result.events]) == (4, ["e2", "e3", "e4"])
    assert [event.position for event in await service.events("s")] == [1, 2, 3, 4]


async def test_any_iterable_makes_a_batch(service: AsyncSessionService) -> None:
    result = await service.append("s", tuple(turn(1)))
    assert result.version == 4


@pytest.mark.parametrize("expected", [0, 2])
async def test_a_log_that_has_moved_is_a_conflict(service: AsyncSessionService, expected: int) -> None:
    """R-3: nothing is written."""
    said = await service.append_message("s", UserMessage("hello"), expected_version=0)
    with pytest.raises(VersionConflictError) as caught:
        await service.append("s", turn(2), expected_version=expected)
    assert (caught.value.session_id, caught.value.expected, caught.value.actual) == ("s", expected, 1)
    with pytest.raises(VersionConflictError):
        await service.append_message("s", UserMessage("again"), expected_version=expected)
    assert await service.events("s") == [said]
    assert (await service.append("s", turn(2), expected_version=1)).version == 5


async def test_appending_again_is_a_replay(service: AsyncSessionService, clock: FixedClock) -> None:
    """R-4: the first write's metadata and times stay, whatever version is expected."""
    first = await service.append_message("s", UserMessage("hello"), event_id="m", metadata={"n": 1})
    await service.append("s", turn(2))
    clock.advance(60)
    again = await service.append_message("s", UserMessage("hello"), event_id="m", metadata={"n": 2}, expected_version=0)
    assert again == first
    assert (again.metadata, again.timestamp) == ({"n": 1}, START)
    result = await service.append("s", turn(2), expected_version=99)
    assert (result.is_replay, result.version) == (True, 5)
    assert await service.version("s") == 5


async def test_case_b79_an_id_with_other_content_is_a_conflict(service: AsyncSessionService) -> None:
    """R-4, B79: a message that has grown is neither stored twice nor changed."""
    said = await service.append_message("s", UserMessage("hello"), event_id="m")
    with pytest.raises(EventContentConflictError) as caught:
        await service.append_message("s", UserMessage("hello, world"), event_id="m")
    assert (caught.value.event_id, caught.value.position) == ("m", 1)
    assert await service.events("s") == [said]


async def test_case_b75_a_transcript_sent_again_and_again_is_stored_once(service: AsyncSessionService) -> None:
    """B75: [A], [A, B], [A, B, C] with ids of their own leave A, B, C."""
    for length in (1, 2, 3):
        for event in turn(1)[:length]:
            await service.append("s", event)
    assert [event.id for event in await service.events("s")] == ["e1", "e2", "e3"]


RESERVED: list[SessionEvent | list[SessionEvent]] = [
    boundary(1, []),
    [boundary(1, [])],
    [user(1), boundary(2, [])],
    summary(1),
]


@pytest.mark.parametrize("events", RESERVED, ids=lambda events: type(events).__name__)
async def test_boundaries_are_not_the_callers_to_write(
    service: AsyncSessionService, events: SessionEvent | list[SessionEvent]
) -> None:
    """V-4: only compaction, rewind and clear write them."""
    with pytest.raises(ReservedEventTypeError):
        await service.append("s", events)
    assert await service.version("s") == 0


async def test_synthetic_events_are_not_the_callers_to_write(service: AsyncSessionService) -> None:
    """V-6"""
    with pytest.raises(InvalidBatchError):
        await service.append("s", summary(1)[1:])
    assert await service.version("s") == 0


async def test_system_messages_are_refused(service: AsyncSessionService) -> None:
    """A service stores none unless it is made to; nothing of their batch is stored either."""
    with pytest.raises(SystemMessageRefusedError, match="allow_system_messages"):
        await service.append_message("s", SystemMessage("be kind"))
    for events in (system(1), [system(1)], [user(1), system(2)]):
        with pytest.raises(SystemMessageRefusedError):
            await service.append("s", events)
    assert await service.version("s") == 0


async def test_system_messages_are_stored_where_they_are_allowed(service: AsyncSessionService) -> None:
    allowing = AsyncSessionService(service.repository, allow_system_messages=True)
    said = await allowing.append_message("s", SystemMessage("be kind"))
    assert (await allowing.append("s", [user(2), system(3)])).version == 3
    assert await service.active_messages("s") == [SystemMessage("be kind"), UserMessage("question")]
    assert said.content == SystemMessage("be kind")


async def test_own_types_are_appended_like_messages(service: AsyncSessionService) -> None:
    """V-4: kept, never sent to a model."""
    progress = SessionEvent(session_id="s", type=EventType.of("MY_APP.PROGRESS"), payload={"done": 0.5}, branch="a")
    await service.append("s", [user(1), progress])
    kept = (await service.events("s"))[1]
    assert (kept.type.name, kept.payload, kept.branch) == ("MY_APP.PROGRESS", {"done": 0.5}, "a")
    assert await service.active_messages("s") == [UserMessage("question")]


async def test_a_message_becomes_an_event(service: AsyncSessionService, clock: FixedClock) -> None:
    """V-3: its time is the store's, its id a UUIDv7 unless it is given."""
    clock.advance(timedelta(minutes=1))
    metadata = {"turnlog.run_id": "r1"}
    said = await service.append_message("s", UserMessage("hello"), event_id="m", branch="a.b", metadata=metadata)
    assert said == SessionEvent(
        session_id="s",
        message=UserMessage("hello"),
        id="m",
        branch="a.b",
        metadata={"turnlog.run_id": "r1"},
        timestamp=START + timedelta(minutes=1),
        position=1,
    )
    assert await service.events("s") == [said]
    other = await service.append_message("s", UserMessage("hello"))
    assert UUID(other.id).version == 7
    assert (other.position, other.branch, other.metadata) == (2, None, {})


MESSAGES: list[Message] = [
    UserMessage(None),
    UserMessage(""),
    AssistantMessage(tool_calls=[ToolCall("c", "look", "{not json")]),
    ToolMessage([ToolResult("c")]),
]


@pytest.mark.parametrize("message", MESSAGES, ids=repr)
async def test_case_b67_any_message_is_stored_as_it_is(service: AsyncSessionService, message: Message) -> None:
    """R-9, B63, B67, B68: a call, a result that ends the run, an empty reply; None apart from the empty text."""
    said = await service.append_message("s", message)
    assert said.content == message
    assert (await service.events("s"))[0].content == message
    assert await service.active_messages("s") == [message]


async def test_a_callers_later_changes_do_not_reach_the_log(service: AsyncSessionService) -> None:
    """B36: the store keeps its own copy."""
    metadata: dict[str, Any] = {"tags": ["a"]}
    said = await service.append_message("s", UserMessage("hello", metadata={"k": ["v"]}), metadata=metadata)
    metadata["tags"].append("b")
    said.metadata["tags"].append("c")
    said.content.metadata["k"].append("w")
    kept = (await service.events("s"))[0]
    assert (kept.metadata, kept.content.metadata) == ({"tags": ["a"]}, {"k": ["v"]})


async def test_a_session_that_is_unknown_takes_no_events(service: AsyncSessionService) -> None:
    """R-5: and none is made for them."""
    with pytest.raises(SessionNotFoundError) as caught:
        await service.append_message("typo", UserMessage("hello"))
    assert caught.value.session_id == "typo"
    with pytest.raises(SessionNotFoundError):
        await service.append("typo", user(1, session_id="typo"))
    assert await service.find("typo") is None


NO_BATCHES: list[Any] = [
    [],
    (),
    "ab",
    ["a"],
    [UserMessage("hello")],
    [None],
    [user(1), user(1)],
    [user(1, session_id="t")],
]


@pytest.mark.parametrize("events", NO_BATCHES, ids=str)
async def test_what_is_no_batch_is_refused(service: AsyncSessionService, events: Any) -> None:
    """R-4: empty, no events, an id twice, another session's event."""
    with pytest.raises(InvalidBatchError):
        await service.append("s", events)
    assert await service.version("s") == 0


GOOD: dict[str, Any] = {"message": UserMessage("hello")}
NO_EVENTS: list[dict[str, Any]] = [
    {"message": "hello"},
    {"message": None},
    {"event_id": ""},
    {"branch": "a..b"},
    {"metadata": {"at": START}},
    {"expected_version": "1"},
]


@pytest.mark.parametrize("arguments", NO_EVENTS, ids=str)
async def test_what_is_no_message_event_is_refused(service: AsyncSessionService, arguments: dict[str, Any]) -> None:
    with pytest.raises((InvalidValueError, VersionConflictError)):
        await service.append_message("s", **{**GOOD, **arguments})
    assert await service.version("s") == 0
