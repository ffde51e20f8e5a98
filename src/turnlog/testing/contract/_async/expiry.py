"""EXPIRY: sessions that end, at once for everybody (R-7)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from turnlog.errors import SessionNotFoundError, VersionConflictError
from turnlog.log.queries import EventQuery
from turnlog.log.session import Session
from turnlog.storage.changes import SessionChange
from turnlog.storage.protocol import AsyncSessionRepository, Turn
from turnlog.testing.clocks import START, FixedClock
from turnlog.testing.contract._async.setting import begun, drained
from turnlog.testing.contract.exactness import ids
from turnlog.testing.factories import assistant, own, session, user

TTL = timedelta(hours=1)
TICK = timedelta(microseconds=1)


def brief(session_id: str = "s", **fields: Any) -> Session:
    """A session that slides: it lives an hour from its last append."""
    slides: dict[str, Any] = {"expires_at": START + TTL, "time_to_live": TTL}
    return session(session_id, **slides | fields)


async def expiry(repository: AsyncSessionRepository, session_id: str = "s") -> datetime | None:
    """When the session ends."""
    found = await repository.find(session_id)
    assert found is not None
    return found.expires_at


class Expiry:
    """What has expired is gone, swept or not; what is used or held lives on."""

    async def test_expiry_1_is_gone_for_every_operation(
        self, repository: AsyncSessionRepository, clock: FixedClock
    ) -> None:
        """An expired session is unknown to everything, though nothing swept it (R-7)."""
        await begun(repository, [user(1, run="r")], of=brief(principal="ann", metadata={"channel": "web"}))
        clock.advance(TTL)
        assert await repository.find("s") is None
        assert list(await repository.list()) == list(await repository.list(principal="ann")) == []
        assert list(await repository.find_by_metadata("channel", "web")) == []
        assert (await repository.version("s"), await repository.count("s")) == (0, 0)
        assert await repository.events("s") == []
        assert await drained(repository.iter_events("s")) == await drained(repository.iter_batches("s")) == []
        assert await repository.find_events("s", event_ids=["e1"]) == []
        assert await repository.find_events("s", run_id="r") == []
        assert (await repository.search("s", EventQuery.keyword("question"))).events == ()
        assert await repository.delete("s") is False

    async def test_expiry_2_refuses_to_be_written(self, repository: AsyncSessionRepository, clock: FixedClock) -> None:
        """Writing to an expired session is writing to an unknown one (R-7)."""
        await begun(repository, [user(1)], of=brief())
        clock.advance(TTL)
        for events in ([user(2)], [user(1)]):
            with pytest.raises(SessionNotFoundError):
                await repository.append("s", events)
        with pytest.raises(SessionNotFoundError):
            await repository.append("s", [user(2)], turn=Turn("a", take=True))
        with pytest.raises(SessionNotFoundError):
            await repository.update("s", SessionChange(expires_at=None))
        with pytest.raises(SessionNotFoundError):
            await repository.take_turn("s", Turn("a"))
        with pytest.raises(SessionNotFoundError):
            await repository.fork("s", session("t"))
        assert await repository.find("s") is None
        assert await repository.find("t") is None

    async def test_expiry_3_comes_at_its_microsecond(
        self, repository: AsyncSessionRepository, clock: FixedClock
    ) -> None:
        """A session lives until ``expires_at`` and not at it, by the store's clock (R-7)."""
        await repository.create(session(expires_at=START + TTL))
        clock.set(START + TTL - TICK)
        assert await repository.find("s") is not None
        clock.advance(TICK)
        assert await repository.find("s") is None

    async def test_expiry_4_makes_room_for_a_new_session(
        self, repository: AsyncSessionRepository, clock: FixedClock
    ) -> None:
        """Creating over an expired session removes its remains: log, ids, metadata, turn (R-7)."""
        await begun(repository, [user(1)], of=brief(principal="ann", metadata={"channel": "web"}))
        await repository.append("s", [own(2)], turn=Turn("a", timedelta(seconds=1), take=True))
        clock.advance(TTL)
        await repository.create(session(created_at=clock.now))
        assert (await repository.version("s"), await repository.events("s")) == (0, [])
        assert list(await repository.find_by_metadata("channel", "web")) == []
        assert list(await repository.list(principal="ann")) == []
        result = await repository.append("s", [assistant(1, "another")], turn=Turn("b", take=True))
        assert (result.version, result.is_replay) == (1, False)
        assert [found.id for found in await repository.list()] == ["s"]

    async def test_expiry_5_slides_with_each_append(
        self, repository: AsyncSessionRepository, clock: FixedClock
    ) -> None:
        """With ``time_to_live`` each stored append moves the expiry to that much from now (R-7)."""
        await begun(repository, of=brief())
        for n in range(1, 4):
            clock.advance(TTL - TICK)
            await repository.append("s", [user(n)])
            assert await expiry(repository) == clock.now + TTL

    async def test_expiry_6_never_slides_back(self, repository: AsyncSessionRepository, clock: FixedClock) -> None:
        """An expiry further away than ``time_to_live`` stays where it is (R-7)."""
        late = START + timedelta(days=9)
        await begun(repository, of=brief(expires_at=late))
        clock.advance(5)
        await repository.append("s", [user(1)])
        assert await expiry(repository) == late

    async def test_expiry_7_that_is_fixed_does_not_slide(
        self, repository: AsyncSessionRepository, clock: FixedClock
    ) -> None:
        """Without ``time_to_live`` the expiry stays, and so does having none (R-7)."""
        await begun(repository, of=session(expires_at=START + TTL))
        await begun(repository, of=session("t"))
        clock.advance(5)
        await repository.append("s", [user(1)])
        await repository.append("t", [user(1, session_id="t")])
        assert (await expiry(repository), await expiry(repository, "t")) == (START + TTL, None)

    async def test_expiry_8_does_not_slide_by_reads_replays_and_failures(
        self, repository: AsyncSessionRepository, clock: FixedClock
    ) -> None:
        """Only an append that stores something slides the expiry (R-7)."""
        await begun(repository, [user(1)], of=brief())
        clock.advance(60)
        await repository.append("s", [user(1)])
        with pytest.raises(VersionConflictError):
            await repository.append("s", [user(2)], expected_version=0)
        await repository.events("s")
        await repository.search("s", EventQuery.keyword("question"))
        await repository.update("s", SessionChange(set={"a": 1}))
        assert await expiry(repository) == START + TTL

    async def test_expiry_9_waits_for_a_held_turn(self, repository: AsyncSessionRepository, clock: FixedClock) -> None:
        """A held turn keeps its session alive past its expiry, until the lease ends or the turn is given back (R-7)."""
        for ending in ("released", "lapsed"):
            await repository.create(session(expires_at=clock.now + TTL, principal="ann"))
            clock.advance(TTL - TICK)
            await repository.take_turn("s", Turn("a"))
            clock.advance(10)
            assert await repository.find("s") is not None
            assert len(await repository.list(principal="ann")) == 1
            await repository.append("s", [user(1)], turn=Turn("a"))
            assert ids(await repository.events("s")) == "e1"
            await repository.renew_turn("s", Turn("a"))
            clock.advance(19)
            assert await repository.version("s") == 1
            if ending == "released":
                assert await repository.release_turn("s", "a") is True
            else:
                clock.advance(1)
            assert await repository.find("s") is None

    async def test_sweep_1_removes_what_expired_by_then(
        self, repository: AsyncSessionRepository, clock: FixedClock
    ) -> None:
        """``delete_expired`` counts and removes what expired at or before ``before``, and nothing else (R-7)."""
        for n in range(1, 5):
            await repository.create(session(f"s{n}", expires_at=START + n * TTL))
        await repository.create(session("never"))
        clock.set(START + 3 * TTL)
        assert await repository.delete_expired(START + 2 * TTL) == 2
        assert await repository.delete_expired(START + 2 * TTL) == 0
        assert await repository.delete_expired(clock.now) == 1
        assert [found.id for found in await repository.list()] == ["s4", "never"]

    async def test_sweep_2_leaves_what_lives(self, repository: AsyncSessionRepository, clock: FixedClock) -> None:
        """A session that has not expired yet stays, however late ``before`` is (R-7)."""
        await begun(repository, [user(1)], of=brief())
        await repository.create(session("gone", expires_at=START + TICK))
        clock.advance(1)
        assert await repository.delete_expired(START + timedelta(days=999)) == 1
        assert await repository.version("s") == 1

    async def test_sweep_3_leaves_a_held_session(self, repository: AsyncSessionRepository, clock: FixedClock) -> None:
        """A session whose turn is held is not swept, however long ago it expired (R-7)."""
        await begun(repository, [user(1)], of=session(expires_at=START + TTL))
        await repository.take_turn("s", Turn("a", timedelta(days=1)))
        clock.advance(2 * TTL)
        assert await repository.delete_expired(clock.now) == 0
        assert await repository.version("s") == 1
        await repository.release_turn("s", "a")
        assert await repository.delete_expired(clock.now) == 1

    async def test_sweep_4_works_through_all_in_small_steps(
        self, repository: AsyncSessionRepository, clock: FixedClock
    ) -> None:
        """Whatever the size of its steps, a sweep removes all that is due, held sessions between it or not (R-7)."""
        for n in range(7):
            await repository.create(session(f"s{n}", expires_at=START + TICK))
        await repository.take_turn("s2", Turn("a", timedelta(days=1)))
        clock.advance(1)
        assert await repository.delete_expired(clock.now, batch_size=2) == 6
        assert [found.id for found in await repository.list()] == ["s2"]

    async def test_sweep_5_leaves_nothing_behind(self, repository: AsyncSessionRepository, clock: FixedClock) -> None:
        """The id of a swept session is free, and a new session under it begins empty (R-7)."""
        await begun(repository, [user(1)], of=brief())
        clock.advance(TTL)
        await repository.delete_expired(clock.now)
        await repository.create(session())
        assert (await repository.append("s", [user(1, "another")])).version == 1
