"""R-5, F, S-1: what the service reads, and what it says of sessions that are not there."""

from __future__ import annotations

from datetime import timedelta

import pytest

from turnlog import (
    AssistantMessage,
    AsyncSessionService,
    EventFilter,
    EventQuery,
    InvalidValueError,
    Message,
    MessageType,
    SessionNotFoundError,
    SystemMessage,
    UserMessage,
    VersionOutOfRangeError,
)
from turnlog.testing.clocks import START, FixedClock
from turnlog.testing.factories import assistant, conversation, own, system, turn, user

KIND, BRIEF = SystemMessage("be kind"), SystemMessage("be brief")


@pytest.fixture
async def talk(service: AsyncSessionService) -> AsyncSessionService:
    """A service that stores system messages, on a session of two turns of four events."""
    await service.create("s")
    await service.append("s", turn(1))
    await service.append("s", turn(5))
    return AsyncSessionService(service.repository, allow_system_messages=True)


def texts(messages: list[Message]) -> list[str]:
    return [message.text for message in messages]


async def test_an_unknown_session_is_an_error_to_read(service: AsyncSessionService) -> None:
    """R-5: a mistyped id is no empty conversation."""
    with pytest.raises(SessionNotFoundError) as caught:
        await service.events("typo")
    assert caught.value.session_id == "typo"
    with pytest.raises(SessionNotFoundError):
        await service.events("typo", EventFilter.last(5), as_of=3)
    with pytest.raises(SessionNotFoundError):
        await service.active_messages("typo")
    with pytest.raises(SessionNotFoundError):
        await service.active_messages("typo", EventFilter.last(5))
    with pytest.raises(SessionNotFoundError):
        await service.version("typo")
    with pytest.raises(SessionNotFoundError):
        await service.search("typo", "hello")
    with pytest.raises(SessionNotFoundError):
        _ = [event async for event in service.iter_events("typo")]
    with pytest.raises(SessionNotFoundError):
        await service.clear("typo")
    with pytest.raises(SessionNotFoundError):
        await service.rewind("typo", 0)
    with pytest.raises(SessionNotFoundError):
        await service.fork("typo")
    with pytest.raises(SessionNotFoundError):
        await service.expand("typo", "e1")


async def test_an_unknown_session_reads_as_empty_where_that_is_asked_for(service: AsyncSessionService) -> None:
    """R-5"""
    assert await service.events("typo", missing_ok=True) == []
    assert await service.active_messages("typo", missing_ok=True) == []
    assert await service.active_messages("typo", EventFilter.last(5), missing_ok=True) == []
    assert await service.version("typo", missing_ok=True) == 0
    assert [event async for event in service.iter_events("typo", missing_ok=True)] == []
    assert await service.find("typo") is None


async def test_an_empty_session_is_no_missing_one(service: AsyncSessionService) -> None:
    await service.create("s")
    assert await service.events("s") == []
    assert await service.active_messages("s") == []
    assert await service.version("s") == 0
    assert (await service.search("s", "hello")).events == ()
    assert [event async for event in service.iter_events("s")] == []


async def test_events_are_what_the_filter_selects(talk: AsyncSessionService) -> None:
    log = await talk.events("s")
    assert [event.position for event in log] == [1, 2, 3, 4, 5, 6, 7, 8]
    for wanted in (EventFilter.last(2), EventFilter(keyword="ANSWER"), EventFilter(after=3, page_size=2)):
        assert await talk.events("s", wanted) == wanted.apply(log)
        assert [event async for event in talk.iter_events("s", wanted)] == wanted.apply(log)
    assert await talk.events("s", EventFilter(keyword="nobody said this")) == []


async def test_events_are_read_as_of_a_version(talk: AsyncSessionService) -> None:
    """A-3: inside a batch reads as before it, beyond the log is an error."""
    assert [event.position for event in await talk.events("s", as_of=4)] == [1, 2, 3, 4]
    assert [event.position async for event in talk.iter_events("s", as_of=7)] == [1, 2, 3, 4]
    assert len(await talk.active_messages("s", as_of=4)) == 4
    assert await talk.events("s", as_of=3) == []
    for version in (9, -1):
        with pytest.raises(VersionOutOfRangeError) as caught:
            await talk.events("s", as_of=version)
        assert (caught.value.version, caught.value.newest) == (version, 8)
        with pytest.raises(VersionOutOfRangeError):
            await talk.active_messages("s", as_of=version)


async def test_an_iteration_sees_the_log_as_it_began(talk: AsyncSessionService) -> None:
    seen: list[int | None] = []
    async for event in talk.iter_events("s"):
        seen.append(event.position)
        await talk.append("s", user(100 + len(seen)))
    assert seen == [1, 2, 3, 4, 5, 6, 7, 8]
    assert await talk.version("s") == 16


async def test_the_active_messages_are_the_views(talk: AsyncSessionService) -> None:
    """A-2: own types and boundaries are no messages."""
    await talk.append("s", own(9))
    assert len(await talk.active_messages("s")) == 8
    await talk.clear("s")
    await talk.append("s", [user(11, "again"), own(12)])
    assert await talk.active_messages("s") == [UserMessage("again")]
    assert await talk.active_messages("s", EventFilter(event_types={own(1).type})) == [UserMessage("again")]


async def test_a_filter_chooses_among_the_views_messages(talk: AsyncSessionService) -> None:
    """F-8: it is merged with the view."""
    assert len(await talk.active_messages("s", EventFilter.last(2))) == 4
    assert texts(await talk.active_messages("s", EventFilter.last(1, whole_turns=False))) == ["answer 5"]
    assistants = EventFilter(message_types={MessageType.ASSISTANT}, keyword="answer")
    assert texts(await talk.active_messages("s", assistants)) == ["answer 1", "answer 5"]
    await talk.clear("s")
    assert await talk.active_messages("s", assistants) == []


async def test_the_latest_system_message_comes_first(talk: AsyncSessionService) -> None:
    """C-5, B135: one alone, at the front, wherever it was stored."""
    await talk.append("s", [system(9, "be kind"), user(10), system(11, "be brief"), assistant(12)])
    found = await talk.active_messages("s")
    assert found[0] == BRIEF
    assert [message.type for message in found].count(MessageType.SYSTEM) == 1
    assert texts(found[-2:]) == ["question", "answer"]


HIDING = (
    EventFilter.last(1, whole_turns=False),
    EventFilter(page=0, page_size=1),
    EventFilter(message_types={MessageType.USER}),
    EventFilter(keyword="question 5"),
    EventFilter(after=7),
    EventFilter(since=START + timedelta(days=1)),
    EventFilter.for_branch(None),
    EventFilter.for_branch("a.b"),
)


@pytest.mark.parametrize("wanted", HIDING, ids=range(len(HIDING)))
async def test_case_b05_no_filter_hides_the_system_message(service: AsyncSessionService, wanted: EventFilter) -> None:
    """C-5, B05, B14: neither a window nor any criterion."""
    await service.create("s")
    allowing = AsyncSessionService(service.repository, allow_system_messages=True)
    await allowing.append("s", [system(1, "be kind"), *conversation(2, first=2)])
    found = await allowing.active_messages("s", wanted)
    assert found[0] == KIND
    assert KIND not in found[1:]
    log = await allowing.events("s", EventFilter.active())
    assert found[1:] == [event.content for event in wanted.apply(log) if event.content != KIND]


async def test_the_system_message_is_the_versions_and_the_views(talk: AsyncSessionService) -> None:
    await talk.append("s", [user(9), system(10, "be kind")])
    await talk.append("s", [user(11), system(12, "be brief")])
    assert KIND not in await talk.active_messages("s", as_of=8)
    assert (await talk.active_messages("s", as_of=10))[0] == KIND
    assert (await talk.active_messages("s", EventFilter.last(1), as_of=10))[0] == KIND
    assert (await talk.active_messages("s"))[0] == BRIEF
    await talk.rewind("s", 10)
    assert (await talk.active_messages("s"))[0] == KIND
    await talk.rewind("s", 8)
    assert MessageType.SYSTEM not in [message.type for message in await talk.active_messages("s")]


async def test_case_b137_what_a_sub_agent_is_told_is_not_its_callers_instruction(talk: AsyncSessionService) -> None:
    """C-5, F-7, B137: of the system messages the latest in sight of the branch that reads."""
    await talk.append("s", system(9, "be kind"))
    await talk.append("s", [system(10, "only search", branch="a"), user(11, branch="a"), assistant(12, branch="a")])
    await talk.append("s", [system(13, "only add", branch="b")])
    for wanted in (None, EventFilter.last(1), EventFilter.for_branch(None), EventFilter.for_branch("c")):
        assert (await talk.active_messages("s", wanted))[0] == KIND
    assert (await talk.active_messages("s", EventFilter.for_branch("a")))[0] == SystemMessage("only search")
    assert (await talk.active_messages("s", EventFilter.for_branch("b.c")))[0] == SystemMessage("only add")
    await talk.clear("s")
    assert await talk.active_messages("s") == [KIND]


async def test_the_system_message_of_a_base_branch_is_in_force(service: AsyncSessionService) -> None:
    """V-5: where a session begins on a branch, that branch takes root's place."""
    await service.create("s")
    allowing = AsyncSessionService(service.repository, allow_system_messages=True)
    await allowing.append("s", [system(1, "be kind"), system(2, "be brief", branch="a"), user(3, branch="a")])
    await allowing.append("s", [system(4, "only search", branch="a.b"), user(5, branch="a.b")])
    assert (await allowing.active_messages("s"))[0] == BRIEF
    await allowing.clear("s")
    assert await allowing.active_messages("s") == [BRIEF]


async def test_what_was_said_is_found_covered_or_not(talk: AsyncSessionService) -> None:
    """S-1, A-4: literal, oldest first, boundaries never."""
    await talk.clear("s")
    await talk.append("s", [user(10, "QUESTION 100%"), own(11, {"note": "question"})])
    found = await talk.search("s", "question")
    assert [event.position for event in found.events] == [1, 5, 10]
    assert found.cursor is None
    assert [event.position for event in (await talk.search("s", "%")).events] == [10]


async def test_case_b108_every_page_is_reached_while_the_log_grows(talk: AsyncSessionService) -> None:
    """B108: a cursor survives new appends."""
    query = EventQuery(terms=["question", "answer"], page_size=2)
    page = await talk.search("s", query)
    seen = [event.position for event in page.events]
    while page.cursor is not None:
        await talk.append("s", [user(100 + len(seen), "unrelated")])
        page = await talk.search("s", EventQuery(terms=["question", "answer"], page_size=2, after=page.cursor))
        seen += [event.position for event in page.events]
    assert seen == [1, 4, 5, 8]
    newest = await talk.events("s", EventFilter(before=8, last=2))
    assert [event.position for event in newest] == [5, 6, 7]


async def test_case_b122_a_time_or_a_type_is_enough_to_search(talk: AsyncSessionService) -> None:
    """S-1, B122"""
    evening = EventQuery(since=START + timedelta(seconds=4), until=START + timedelta(seconds=5))
    assert [event.position for event in (await talk.search("s", evening)).events] == [4, 5]
    replies = EventQuery(message_types=[MessageType.ASSISTANT], page=1, page_size=3)
    assert [event.position for event in (await talk.search("s", replies)).events] == [8]


@pytest.mark.parametrize("text", ["", " ", "x" * 201])
async def test_a_search_for_nothing_is_refused(talk: AsyncSessionService, text: str) -> None:
    """S-1"""
    with pytest.raises(InvalidValueError):
        await talk.search("s", text)


async def test_the_version_is_the_position_of_the_last_event(talk: AsyncSessionService) -> None:
    """V-7"""
    assert await talk.version("s") == 8
    assert (await talk.clear("s")).position == await talk.version("s") == 9


async def test_case_b116_a_read_is_of_one_session(service: AsyncSessionService, clock: FixedClock) -> None:
    """B116 to B119: nothing of another session, or another owner's, shows in any read."""
    for number, owner in enumerate(("ada", "bob")):
        await service.create(f"of-{owner}", principal=owner)
        for turn_number in range(10 - 8 * number):
            await service.append_message(
                f"of-{owner}", UserMessage(f"{owner} asks {turn_number}"), event_id=f"{turn_number}"
            )
            await service.append_message(f"of-{owner}", AssistantMessage(f"{owner} hears"))
        clock.advance(1)
    assert texts(await service.active_messages("of-bob")) == ["bob asks 0", "bob hears", "bob asks 1", "bob hears"]
    assert len(await service.events("of-bob", EventFilter.last(50))) == 4
    assert (await service.search("of-bob", "ada")).events == ()
    assert [session.id for session in await service.list(principal="bob")] == ["of-bob"]
    assert [session.id for session in await service.list(principal="Bob")] == []
    assert await service.delete("of-bob")
    assert await service.version("of-ada") == 20
