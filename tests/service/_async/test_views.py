"""A-1 to A-5: clear, rewind, fork and expand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from turnlog import (
    AsyncSessionService,
    EventFilter,
    EventNotFoundError,
    EventType,
    InvalidValueError,
    SessionAlreadyExistsError,
    SessionEvent,
    SessionNotFoundError,
    SystemMessage,
    UserMessage,
    VersionOutOfRangeError,
    open_async_store,
)
from turnlog.compaction import SummarizingCompactionStrategy, WindowCompactionStrategy
from turnlog.testing.clocks import START, FixedClock
from turnlog.testing.factories import assistant, calls, own, results, system, user

VIEW = EventFilter(active_view=True)
DAY = timedelta(days=1)


@pytest.fixture
async def talk(service: AsyncSessionService) -> AsyncSessionService:
    """Two turns, each event a batch of its own, so that every version is one."""
    await service.create("s", principal="ada", metadata={"tenant": "t1"})
    for event in (user(1), calls(2, "c"), results(3, "c"), assistant(4), user(5), assistant(6)):
        await service.append("s", event)
    return AsyncSessionService(service.repository, allow_system_messages=True)


def places(events: list[SessionEvent]) -> list[int | None]:
    return [event.position for event in events]


async def test_a_clear_empties_the_view_and_keeps_the_log(talk: AsyncSessionService) -> None:
    """A-5, B28: the boundary is returned as stored."""
    before = await talk.events("s")
    boundary = await talk.clear("s")
    assert (boundary.position, boundary.type, boundary.is_synthetic) == (7, EventType.COMPACTION, False)
    assert boundary.payload == {"view": [], "end": 7, "strategy": "clear", "covered": [1, 6]}
    assert await talk.active_messages("s") == []
    assert await talk.events("s") == [*before, boundary]
    assert await talk.expand("s", boundary) == before


async def test_a_clear_keeps_the_stored_system_message(talk: AsyncSessionService) -> None:
    """A-5: the one in force, not those that it has superseded."""
    await talk.append("s", [system(7, "be kind"), user(8), system(9, "be brief")])
    cleared = await talk.clear("s")
    assert places(await talk.events("s", VIEW)) == [9]
    assert await talk.active_messages("s") == [SystemMessage("be brief")]
    assert places(await talk.expand("s", cleared)) == [1, 2, 3, 4, 5, 6, 7, 8]
    again = await talk.clear("s")
    assert places(await talk.events("s", VIEW)) == [9]
    assert await talk.expand("s", again) == []


async def test_an_empty_session_may_be_cleared(service: AsyncSessionService) -> None:
    await service.create("s")
    cleared = await service.clear("s")
    assert cleared.payload == {"view": [], "end": 1, "strategy": "clear"}
    await service.append("s", user(2))
    assert places(await service.events("s", VIEW)) == [2]


REWINDS: list[tuple[int, list[int]]] = [
    (0, []),  # before everything
    (1, []),  # inside the first turn, at each place of it
    (2, []),
    (3, []),
    (4, [1, 2, 3, 4]),  # between the turns
    (5, [1, 2, 3, 4]),  # inside the second turn
    (6, [1, 2, 3, 4, 5, 6]),
]


@pytest.mark.parametrize(("version", "view"), REWINDS)
async def test_case_b21_a_rewind_goes_to_the_start_of_a_turn(
    talk: AsyncSessionService, version: int, view: list[int]
) -> None:
    """A-5, B21: so it never leaves a call without its result, or a question alone."""
    boundary = await talk.rewind("s", version)
    assert places(await talk.events("s", VIEW)) == view
    assert boundary.payload is not None
    assert boundary.payload["strategy"] == "rewind"
    assert places(await talk.expand("s", boundary)) == [place for place in range(1, 7) if place not in view]
    assert len(await talk.events("s")) == 7


async def test_a_rewind_into_a_batch_goes_before_it(service: AsyncSessionService) -> None:
    """A-5: also where the batch begins in the middle of a turn, or holds several."""
    await service.create("s")
    await service.append("s", [user(1), assistant(2)])
    await service.append("s", user(3))
    await service.append("s", [assistant(4), user(5), assistant(6)])
    await service.append("s", [user(7), assistant(8)])
    for version, view in ((8, [1, 2, 3, 4, 5, 6, 7, 8]), (7, [1, 2, 3, 4, 5, 6]), (5, [1, 2]), (1, [])):
        await service.rewind("s", version)
        assert places(await service.events("s", VIEW)) == view


async def test_what_no_message_follows_is_no_middle_of_a_turn(service: AsyncSessionService) -> None:
    """A-5: own types and boundaries behind the last reply do not pull a rewind to the start of its turn."""
    await service.create("s")
    await service.append("s", [user(1), assistant(2)])
    await service.append("s", own(3))
    await service.append("s", user(4))
    await service.rewind("s", 2)
    assert places(await service.events("s", VIEW)) == [1, 2]
    await service.rewind("s", 3)
    assert places(await service.events("s", VIEW)) == [1, 2, 3]


async def test_a_sub_agents_messages_belong_to_the_turn(service: AsyncSessionService) -> None:
    """V-5: a rewind to between them goes to the turn's start."""
    await service.create("s")
    for event in (user(1), user(2, branch="a"), assistant(3, branch="a"), assistant(4), user(5)):
        await service.append("s", event)
    await service.rewind("s", 3)
    assert places(await service.events("s", VIEW)) == []
    await service.rewind("s", 4)
    assert places(await service.events("s", VIEW)) == [1, 2, 3, 4]


async def test_one_opening_of_a_run_is_not_cut(service: AsyncSessionService) -> None:
    """V-5: user messages in a row of one run are one opening; without a run each starts a turn."""
    await service.create("s")
    for event in (user(1), user(2), user(3, run="r"), user(4, run="r"), assistant(5)):
        await service.append("s", event)
    for version, view in ((1, [1]), (2, [1, 2]), (3, [1, 2]), (4, [1, 2]), (5, [1, 2, 3, 4, 5])):
        await service.rewind("s", version)
        assert places(await service.events("s", VIEW)) == view


async def test_the_preamble_is_in_no_turn(service: AsyncSessionService) -> None:
    await service.create("s")
    for event in (assistant(1), assistant(2), user(3), assistant(4)):
        await service.append("s", event)
    await service.rewind("s", 1)
    assert places(await service.events("s", VIEW)) == [1]


async def test_a_rewind_brings_back_what_a_clear_took(talk: AsyncSessionService) -> None:
    """A-2: the view as of that version, whatever came between."""
    await talk.clear("s")
    await talk.append("s", [user(8), assistant(9)])
    await talk.rewind("s", 6)
    assert places(await talk.events("s", VIEW)) == [1, 2, 3, 4, 5, 6]
    await talk.rewind("s", 9)
    assert places(await talk.events("s", VIEW)) == [8, 9]
    await talk.rewind("s", 10)
    assert places(await talk.events("s", VIEW)) == [1, 2, 3, 4, 5, 6]
    assert [places(await talk.events("s", VIEW, as_of=version)) for version in (4, 7, 9)] == [[1, 2, 3, 4], [], [8, 9]]


async def test_case_b95_what_is_appended_goes_on_from_the_newest_boundary(talk: AsyncSessionService) -> None:
    """A-1, B95: the stated rule: the newest boundary alone, whichever branch of history was longer."""
    await talk.rewind("s", 4)
    await talk.append("s", [user(8, "the other way"), assistant(9)])
    assert places(await talk.events("s", VIEW)) == [1, 2, 3, 4, 8, 9]
    again = AsyncSessionService(talk.repository)
    assert (await again.active_messages("s"))[-2] == UserMessage("the other way")


async def test_case_b141_a_rewind_leaves_the_session_as_it_is(talk: AsyncSessionService) -> None:
    """B141: metadata, owner, times."""
    before = await talk.find("s")
    await talk.rewind("s", 4)
    await talk.clear("s")
    assert await talk.find("s") == before
    assert before is not None
    assert before.metadata == {"principal_name": "ada", "tenant": "t1"}


@pytest.mark.parametrize("version", [-1, 7, 10**18])
async def test_a_rewind_beyond_the_log_is_an_error(talk: AsyncSessionService, version: int) -> None:
    with pytest.raises(VersionOutOfRangeError) as caught:
        await talk.rewind("s", version)
    assert (caught.value.version, caught.value.newest) == (version, 6)
    assert await talk.version("s") == 6


@pytest.mark.parametrize("version", [None, "1", 1.0, True])
async def test_a_rewind_to_no_version_is_refused(talk: AsyncSessionService, version: Any) -> None:
    with pytest.raises(InvalidValueError):
        await talk.rewind("s", version)
    assert await talk.version("s") == 6


async def test_a_boundary_or_an_event_of_its_summary_expands(talk: AsyncSessionService) -> None:
    """A-3: by the event, or by its id."""
    short = SummarizingCompactionStrategy(lambda _: "So far.", WindowCompactionStrategy(last_turns=1))
    long = UserMessage("why? " * 50)
    await talk.append_message("s", long)
    done = await talk.compact("s", short)
    assert done.boundary is not None
    covered = await talk.expand("s", done.boundary)
    assert places(covered) == [1, 2, 3, 4, 5, 6]
    opening, told = (await talk.events("s", VIEW))[:2]
    assert (opening.is_shadow_prompt, told.content.text) == (True, "So far.")
    for event in (opening, told, opening.id, told.id, done.boundary.id):
        assert await talk.expand("s", event) == covered


async def test_what_covers_nothing_does_not_expand(talk: AsyncSessionService) -> None:
    with pytest.raises(EventNotFoundError) as caught:
        await talk.expand("s", "nobody")
    assert caught.value.session_id == "s"
    with pytest.raises(InvalidValueError, match="covers nothing"):
        await talk.expand("s", "e1")
    with pytest.raises(EventNotFoundError):
        await talk.expand("s", user(99))


async def test_case_b71_a_boundary_of_another_session_is_not_this_ones(talk: AsyncSessionService) -> None:
    """B71: only one session changes, and is asked."""
    await talk.create("t")
    await talk.append("t", user(1, session_id="t"))
    cleared = await talk.clear("s")
    assert len(await talk.active_messages("t")) == 1
    with pytest.raises(EventNotFoundError):
        await talk.expand("t", cleared)


async def test_a_fork_is_a_copy_up_to_a_version(talk: AsyncSessionService, clock: FixedClock) -> None:
    """A-5, B85, B141: ids, positions and metadata kept, the source named and untouched."""
    before = await talk.events("s")
    clock.advance(60)
    forked = await talk.fork("s", "t", at=4)
    assert (forked.id, forked.created_at) == ("t", START + timedelta(seconds=60))
    assert forked.metadata == {"principal_name": "ada", "tenant": "t1", "forked_from": "s"}
    assert await talk.find("t") == forked
    assert await talk.events("t") == [event.replace(session_id="t") for event in before[:4]]
    await talk.append("t", user(5, "another way", session_id="t"))
    await talk.delete("t")
    assert await talk.events("s") == before


async def test_a_fork_takes_all_unless_told_otherwise(talk: AsyncSessionService) -> None:
    await talk.clear("s")
    await talk.append("s", user(8))
    forked = await talk.fork("s")
    assert await talk.version(forked.id) == 8
    assert places(await talk.events(forked.id, VIEW)) == [8]
    assert places(await talk.events(forked.id, VIEW, as_of=6)) == [1, 2, 3, 4, 5, 6]
    again = await talk.fork(forked.id, at=6)
    assert again.metadata["forked_from"] == forked.id
    assert places(await talk.events(again.id, VIEW)) == [1, 2, 3, 4, 5, 6]
    assert await talk.version((await talk.fork("s", at=0)).id) == 0


async def test_a_fork_keeps_the_batches(service: AsyncSessionService) -> None:
    """A-3: a version inside a batch counts as the one before it, in the copy too."""
    await service.create("s")
    await service.append("s", [user(1), assistant(2)])
    await service.append("s", [user(3), assistant(4)])
    await service.fork("s", "t", at=3)
    assert await service.version("t") == 2
    await service.fork("s", "u")
    assert places(await service.events("u", as_of=3)) == [1, 2]


async def test_a_fork_lives_as_long_as_a_new_session(service: AsyncSessionService, clock: FixedClock) -> None:
    """R-7: a sliding session's fork slides from now on, a fixed expiry is the same moment."""
    await service.create("sliding", time_to_live=DAY)
    await service.create("fixed", expires_at=START + 2 * DAY)
    clock.advance(DAY / 2)
    assert (await service.fork("sliding", "a")).expires_at == START + DAY * 1.5
    assert (await service.fork("sliding", "b")).time_to_live == DAY
    assert (await service.fork("fixed", "c")).expires_at == START + 2 * DAY


async def test_a_fork_that_cannot_be_leaves_no_session(talk: AsyncSessionService) -> None:
    await talk.create("t")
    with pytest.raises(SessionAlreadyExistsError):
        await talk.fork("s", "t")
    assert await talk.version("t") == 0
    with pytest.raises(SessionAlreadyExistsError):
        await talk.fork("s", "s")
    for version in (7, -1):
        with pytest.raises(VersionOutOfRangeError):
            await talk.fork("s", "u", at=version)
    with pytest.raises(SessionNotFoundError):
        await talk.fork("nobody", "u")
    assert await talk.find("u") is None


async def test_case_b140_boundaries_survive_a_restart(talk: AsyncSessionService, url: str, clock: FixedClock) -> None:
    """B140: what was rewound or cleared does not come back with the next process."""
    await talk.append("s", system(7, "be kind"))
    await talk.rewind("s", 4)
    await talk.fork("s", "t")
    await talk.clear("t")
    if url == "memory:":
        return  # a memory store has no next process
    await talk.close()
    async with AsyncSessionService(open_async_store(url, clock=clock)) as again:
        assert places(await again.events("s", VIEW)) == [1, 2, 3, 4]
        assert places(await again.events("t", VIEW)) == []
        assert places(await again.events("s", VIEW, as_of=7)) == [1, 2, 3, 4, 5, 6, 7]
        assert places(await again.events("t")) == [1, 2, 3, 4, 5, 6, 7, 8, 9]
