"""R-1, R-2, R-7: sessions as the service makes, finds, lists, changes and removes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from turnlog import (
    AsyncSessionService,
    InvalidValueError,
    NotIndexedError,
    Session,
    SessionAlreadyExistsError,
    SessionNotFoundError,
    SessionPage,
    StoreUnavailableError,
    UserMessage,
    open_async_store,
)
from turnlog.testing.clocks import START, FixedClock
from turnlog.testing.contract.racing import RACERS, in_tasks, raised, returned

DAY = timedelta(days=1)


def listed(page: SessionPage) -> list[str]:
    return [session.id for session in page]


async def test_a_session_is_made_with_an_id_and_the_time_of_the_store(service: AsyncSessionService) -> None:
    made = await service.create()
    assert UUID(made.id).version == 7
    assert made == Session(id=made.id, created_at=START)
    assert await service.find(made.id) == made


async def test_a_session_keeps_what_it_is_made_with(service: AsyncSessionService) -> None:
    """V-2: the owner is metadata like any other."""
    metadata = {"agent_name": "travel", "nested": {"a": [1, 1.0, True, None]}}
    made = await service.create("s", principal="ada", metadata=metadata, expires_at=START + DAY)
    metadata["agent_name"] = "changed by the caller afterwards"
    assert made.principal == "ada"
    assert made.metadata == {
        "agent_name": "travel",
        "nested": {"a": [1, 1.0, True, None]},
        "principal_name": "ada",
    }
    assert (made.expires_at, made.time_to_live) == (START + DAY, None)
    assert await service.find("s") == made


async def test_what_is_unknown_is_not_found(service: AsyncSessionService) -> None:
    assert await service.find("s") is None
    assert not await service.delete("s")
    with pytest.raises(SessionNotFoundError):
        await service.update("s", set={"a": 1})


async def test_case_b83_creating_an_id_that_exists_empties_nothing(service: AsyncSessionService) -> None:
    """R-2, B83, B85: a conflict, with session and history as they were."""
    first = await service.create("s", principal="ada", metadata={"a": 1})
    said = await service.append_message("s", UserMessage("hello"))
    with pytest.raises(SessionAlreadyExistsError) as caught:
        await service.create("s", principal="bob", metadata={"a": 2})
    assert caught.value.session_id == "s"
    assert await service.find("s") == first
    assert await service.events("s") == [said]


async def test_finding_or_creating_makes_a_session_once(service: AsyncSessionService) -> None:
    """R-2: what a later caller gives changes nothing; histories of several agents on one id stay together (B85)."""
    made = await service.find_or_create("s", principal="ada", metadata={"agent_name": "team"}, time_to_live=DAY)
    await service.append_message("s", UserMessage("hello"))
    found = await service.find_or_create("s", principal="bob", metadata={"agent_name": "single"})
    assert found == made
    assert (made.principal, made.time_to_live) == ("ada", DAY)
    assert await service.version("s") == 1


async def test_one_of_several_that_find_or_create_makes_the_session(service: AsyncSessionService) -> None:
    """R-2: of those that come at once one wins, and all of them get its session."""

    async def caller(number: int) -> Session:
        return await service.find_or_create("s", metadata={"by": number})

    outcomes = await in_tasks([partial(caller, number) for number in range(RACERS)])
    assert raised(outcomes) == []
    assert returned(outcomes) == [await service.find("s")] * RACERS


async def test_who_loses_the_race_to_create_finds_the_winners_session(
    service: AsyncSessionService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session comes into being between the look and the creation."""
    real, looks = service.repository.find, 0

    async def find(session_id: str) -> Session | None:
        nonlocal looks
        looks += 1
        if looks > 1:
            return await real(session_id)
        await service.create(session_id, principal="winner")
        return None

    monkeypatch.setattr(service.repository, "find", find)
    assert (await service.find_or_create("s", principal="loser")).principal == "winner"


async def test_case_b82_a_store_that_fails_is_no_missing_session(
    service: AsyncSessionService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B82: the error is raised, and no new, empty session takes the place of the old one."""
    await service.create("s", principal="ada")
    await service.append_message("s", UserMessage("hello"))

    async def find(session_id: str) -> Session | None:
        raise StoreUnavailableError(f"no answer about {session_id}")

    with monkeypatch.context() as failing:
        failing.setattr(service.repository, "find", find)
        with pytest.raises(StoreUnavailableError):
            await service.find_or_create("s")
        with pytest.raises(StoreUnavailableError):
            await service.find("s")
        with pytest.raises(StoreUnavailableError):
            await service.find_or_create("other")
    assert listed(await service.list()) == ["s"]
    assert (await service.active_messages("s")) == [UserMessage("hello")]


async def test_sessions_are_listed_in_the_order_they_were_made(service: AsyncSessionService, clock: FixedClock) -> None:
    """R-1, B100: oldest first or newest first, all or one owner's, page by page."""
    for number in range(5):
        await service.create(f"s{number}", principal="ada" if number % 2 else "bob")
        clock.advance(1)
    assert listed(await service.list()) == ["s0", "s1", "s2", "s3", "s4"]
    assert listed(await service.list(newest_first=True, limit=2)) == ["s4", "s3"]
    assert listed(await service.list(principal="ada")) == ["s1", "s3"]
    walked: list[str] = []
    cursor: str | None = None
    while True:
        page = await service.list(limit=2, cursor=cursor)
        walked += listed(page)
        cursor = page.cursor
        if cursor is None:
            break
    assert walked == ["s0", "s1", "s2", "s3", "s4"]


async def test_sessions_are_found_by_indexed_metadata(service: AsyncSessionService) -> None:
    """V-2: a key that is not indexed is an error, never an empty or a wider answer (B112)."""
    await service.create("a", metadata={"team": "red", "colour": "x"})
    await service.create("b", metadata={"team": "blue"})
    await service.create("c", principal="ada", metadata={"team": "red"})
    assert listed(await service.find_by_metadata("team", "red")) == ["a", "c"]
    assert listed(await service.find_by_metadata("team", "red", newest_first=True, limit=1)) == ["c"]
    assert listed(await service.find_by_metadata("principal_name", "ada")) == ["c"]
    assert listed(await service.find_by_metadata("team", "%")) == []
    with pytest.raises(NotIndexedError) as caught:
        await service.find_by_metadata("colour", "x")
    assert caught.value.indexed == ("principal_name", "team")


async def test_updates_merge_or_replace(service: AsyncSessionService) -> None:
    """R-1: the owner changes only where the caller says so (H-10)."""
    made = await service.create("s", principal="ada", metadata={"a": 1, "team": "red"})
    merged = await service.update("s", set={"b": 2}, unset=["a"])
    assert merged.metadata == {"principal_name": "ada", "team": "red", "b": 2}
    replaced = await service.update("s", metadata={"c": 3})
    assert replaced.metadata == {"principal_name": "ada", "c": 3}
    assert (await service.update("s", principal="bob")).principal == "bob"
    assert (await service.update("s", principal=None)).principal is None
    assert replaced.created_at == made.created_at
    for change in ({"set": {"principal_name": "eve"}}, {"unset": ["principal_name"]}, {"set": {"a": 1}, "unset": "a"}):
        with pytest.raises(InvalidValueError):
            await service.update("s", **change)  # pyright: ignore[reportArgumentType]
    assert (await service.find("s")) == await service.update("s")


async def test_updates_change_the_expiry(service: AsyncSessionService, clock: FixedClock) -> None:
    await service.create("s")
    assert (await service.update("s", expires_at=START + DAY)).expires_at == START + DAY
    sliding = await service.update("s", time_to_live=2 * DAY)
    assert (sliding.expires_at, sliding.time_to_live) == (START + 2 * DAY, 2 * DAY)
    lasting = await service.update("s", expires_at=None)
    assert (lasting.expires_at, lasting.time_to_live) == (None, None)
    clock.advance(1000 * DAY)
    assert await service.find("s") == lasting


async def test_a_deleted_session_leaves_nothing_behind(service: AsyncSessionService) -> None:
    """B71: positions, view and index start anew; nothing of the old log shows."""
    await service.create("s", metadata={"team": "red"})
    await service.append_message("s", UserMessage("old"), event_id="e")
    await service.clear("s")
    assert await service.delete("s")
    assert listed(await service.find_by_metadata("team", "red")) == []
    await service.create("s")
    assert await service.version("s") == 0
    assert (await service.search("s", "old")).events == ()
    said = await service.append_message("s", UserMessage("new"), event_id="e")
    assert said.position == 1
    assert await service.active_messages("s") == [UserMessage("new")]


async def test_a_session_slides_with_each_append(service: AsyncSessionService, clock: FixedClock) -> None:
    """R-7: reads do not extend it, and what has expired is gone at once, its id free."""
    made = await service.create("s", time_to_live=DAY)
    assert made.expires_at == START + DAY
    clock.advance(DAY / 2)
    await service.append_message("s", UserMessage("still here"))
    clock.advance(DAY - timedelta(microseconds=1))
    assert await service.version("s") == 1
    clock.advance(timedelta(microseconds=1))
    assert await service.find("s") is None
    assert listed(await service.list()) == []
    with pytest.raises(SessionNotFoundError):
        await service.append_message("s", UserMessage("too late"))
    fresh = await service.find_or_create("s", principal="bob")
    assert (fresh.principal, await service.version("s")) == ("bob", 0)


async def test_a_fixed_expiry_does_not_slide(service: AsyncSessionService, clock: FixedClock) -> None:
    """R-7"""
    await service.create("s", expires_at=START + DAY)
    clock.advance(DAY / 2)
    await service.append_message("s", UserMessage("hello"))
    clock.advance(DAY / 2)
    assert await service.find("s") is None


async def test_the_services_default_goes_to_sessions_that_say_nothing(url: str, clock: FixedClock) -> None:
    """R-7"""
    store = open_async_store(url, clock=clock)
    async with AsyncSessionService(store, default_time_to_live=DAY) as service:
        assert (await service.create("a")).time_to_live == DAY
        assert (await service.find_or_create("b")).expires_at == START + DAY
        assert (await service.create("c", time_to_live=None)).expires_at is None
        fixed = await service.create("d", expires_at=START + 3 * DAY)
        assert (fixed.expires_at, fixed.time_to_live) == (START + 3 * DAY, None)
        both = await service.create("e", expires_at=START + 3 * DAY, time_to_live=2 * DAY)
        assert (both.expires_at, both.time_to_live) == (START + 3 * DAY, 2 * DAY)
        assert (await service.find_or_create("f", time_to_live=None)).expires_at is None


async def test_the_sweep_removes_what_has_expired(service: AsyncSessionService, clock: FixedClock) -> None:
    """R-7: by the store's clock, in steps; what expires later stays."""
    for number in range(5):
        await service.create(f"s{number}", expires_at=START + number * DAY + DAY)
    assert await service.delete_expired() == 0
    clock.advance(3 * DAY)
    assert await service.delete_expired(START + DAY) == 1
    assert await service.delete_expired(batch_size=1) == 2
    assert await service.delete_expired() == 0
    assert listed(await service.list()) == ["s3", "s4"]


async def test_a_sweep_does_not_go_ahead_of_the_clock(service: AsyncSessionService) -> None:
    await service.create("s", expires_at=START + DAY)
    assert await service.delete_expired(START + 2 * DAY) == 0
    assert await service.find("s") is not None


NO_SESSIONS: list[dict[str, Any]] = [
    {"time_to_live": 5},
    {"time_to_live": timedelta()},
    {"time_to_live": -DAY},
    {"time_to_live": timedelta.max},
    {"expires_at": datetime(2030, 1, 1)},  # noqa: DTZ001 - naive, which is refused
    {"expires_at": "tomorrow"},
    {"metadata": ["a"]},
    {"metadata": {"at": datetime(2030, 1, 1, tzinfo=UTC)}},
    {"metadata": {"team": 5}},
    {"principal": ""},
    {"principal": 5},
]


@pytest.mark.parametrize("arguments", NO_SESSIONS, ids=str)
async def test_a_session_that_cannot_be_is_refused(service: AsyncSessionService, arguments: dict[str, Any]) -> None:
    """R-8, R-9, B124: an error of ours, and nothing is made."""
    with pytest.raises(InvalidValueError):
        await service.create("s", **arguments)
    assert await service.find("s") is None


@pytest.mark.parametrize("session_id", ["", "a\nb", "x" * 256, "\ud800"])
async def test_an_id_that_is_no_name_is_refused(service: AsyncSessionService, session_id: str) -> None:
    """R-8"""
    with pytest.raises(InvalidValueError):
        await service.create(session_id)
    with pytest.raises(InvalidValueError):
        await service.find_or_create(session_id)
