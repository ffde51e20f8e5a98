"""RESTORE, FORK: whole logs at once, in one transaction each."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from turnlog.errors import (
    EventContentConflictError,
    InvalidBatchError,
    InvalidValueError,
    SessionAlreadyExistsError,
    SessionNotFoundError,
    VersionOutOfRangeError,
)
from turnlog.log.event_filter import EventFilter
from turnlog.log.events import SessionEvent
from turnlog.storage.protocol import AsyncSessionRepository, Turn
from turnlog.testing.clocks import START, FixedClock
from turnlog.testing.contract._async.setting import begun, drained, state
from turnlog.testing.contract.exactness import exactly, ids
from turnlog.testing.factories import assistant, own, session, summary, turn, user

VIEW = EventFilter(active_view=True)


def log() -> list[list[SessionEvent]]:
    """Nine events in four batches, a compaction among them."""
    return [turn(1), [own(5)], summary(6, [(4, 4)]), [user(9, branch="a")]]


class Copying:
    """Restoring a log that was read, and forking one that is there."""

    async def test_restore_1_stores_a_whole_log(self, repository: AsyncSessionRepository) -> None:
        """The session comes to be with its log, batch by batch, boundaries in their place (R-1)."""
        made = session(principal="ann", metadata={"channel": "web"})
        result = await repository.restore(made, log())
        assert (result.stored, result.replayed, result.version) == (9, 0, 9)
        assert exactly(await repository.find("s")) == exactly(made)
        batches = await drained(repository.iter_batches("s"))
        assert [ids(batch) for batch in batches] == [ids(batch) for batch in log()]
        assert ids(await repository.events("s", VIEW)) == "e7 e8 e4 e9"

    async def test_restore_2_takes_what_iter_batches_gives(self, repository: AsyncSessionRepository) -> None:
        """A log that was read is restored as it was, to the last field (R-1)."""
        await begun(repository, *log())
        before = await state(repository)
        batches = await drained(repository.iter_batches("s"))
        await repository.delete("s")
        await repository.restore(session(), batches)
        assert await state(repository) == before

    async def test_restore_3_again_is_a_replay(self, repository: AsyncSessionRepository) -> None:
        """What is stored already is recognised, batch by batch, and the session stays as it is (R-4)."""
        await begun(repository, *log()[:2], of=session(metadata={"a": 1}))
        result = await repository.restore(session(metadata={"b": 2}), log())
        assert (result.stored, result.replayed, result.version) == (4, 5, 9)
        result = await repository.restore(session(), log())
        assert (result.stored, result.replayed, result.version) == (0, 9, 9)
        found = await repository.find("s")
        assert found is not None
        assert found.metadata == {"a": 1}

    async def test_restore_4_that_fails_stores_nothing(self, repository: AsyncSessionRepository) -> None:
        """When a batch is refused, or the source of the batches fails, no batch is there (R-3, CASE B28)."""
        for batch in (
            [],
            [assistant(1, "other")],
            [user(8)],
            [user(9), user(9)],
            [own(5), user(20)],
            summary(12, [(1, 1)]),
        ):
            with pytest.raises((InvalidBatchError, EventContentConflictError, RuntimeError)):
                await repository.restore(session(), [*log(), batch])
            assert await repository.find("s") is None
            assert await repository.events("s") == []

        def failing() -> Iterator[list[SessionEvent]]:
            yield from log()
            raise ZeroDivisionError

        await begun(repository, log()[0])
        before = await state(repository)
        with pytest.raises(ZeroDivisionError):
            await repository.restore(session(), failing())
        assert await state(repository) == before

    async def test_restore_5_makes_room_over_an_expired_session(
        self, repository: AsyncSessionRepository, clock: FixedClock
    ) -> None:
        """The remains of an expired session go, as they do for ``create`` (R-7)."""
        await begun(repository, [user(1, "old"), user(2)], of=session(expires_at=START + timedelta(hours=1)))
        clock.advance(timedelta(hours=1))
        assert (await repository.restore(session(), log())).stored == 9
        assert ids(await repository.events("s")) == "e1 e2 e3 e4 e5 e6 e7 e8 e9"

    async def test_restore_6_refuses_an_indexed_value_that_is_no_name(self, repository: AsyncSessionRepository) -> None:
        """As ``create`` does (R-8)."""
        with pytest.raises(InvalidValueError):
            await repository.restore(session(metadata={"channel": 7}), log())
        assert await repository.find("s") is None

    async def test_restore_7_slides_the_expiry(self, repository: AsyncSessionRepository, clock: FixedClock) -> None:
        """Where it stores something it slides the expiry, as an append does (R-7)."""
        hour = timedelta(hours=1)
        sliding = session(expires_at=START + hour, time_to_live=hour)
        for batches, slides in ((log()[:1], True), (log()[:1], False), (log(), True)):
            before = await repository.find("s")
            clock.advance(60)
            await repository.restore(sliding, batches)
            found = await repository.find("s")
            assert found is not None
            assert found.expires_at == (clock.now + hour if slides else before and before.expires_at)

    async def test_restore_8_waits_for_nobodys_turn(self, repository: AsyncSessionRepository) -> None:
        """It stores while a turn is held on the session, and leaves the turn where it is (H-11)."""
        await begun(repository)
        await repository.take_turn("s", Turn("a"))
        assert (await repository.restore(session(), log())).stored == 9
        await repository.renew_turn("s", Turn("a"))

    async def test_fork_1_copies_the_log(self, repository: AsyncSessionRepository) -> None:
        """A fork has the events, positions, ids, times and batches of its source, and the session given (A-5)."""
        source = await begun(repository, *log(), of=session(principal="ann"))
        target = session("t", metadata={"forked_from": "s"}, created_at=START + timedelta(days=1))
        assert await repository.fork("s", target) == 9
        assert exactly(await repository.find("t")) == exactly(target)
        copies = [made.replace(session_id="t") for made in source]
        assert exactly(await repository.events("t")) == exactly(copies)
        assert await repository.version("t") == 9
        assert [ids(batch) for batch in await drained(repository.iter_batches("t"))] == [ids(batch) for batch in log()]

    async def test_fork_2_at_a_version_copies_up_to_there(self, repository: AsyncSessionRepository) -> None:
        """``at`` names the last event copied; inside a batch it is the version before the batch (A-5, CASE B46)."""
        await begun(repository, *log())
        for at, version in {0: 0, 3: 0, 4: 4, 5: 5, 6: 5, 7: 5, 8: 8, 9: 9}.items():
            assert await repository.fork("s", session(f"t{at}"), at=at) == version
            assert await repository.version(f"t{at}") == version
            for filter_ in (EventFilter.all(), VIEW, EventFilter.last(2)):
                there = await repository.events("s", filter_, as_of=version)
                assert ids(await repository.events(f"t{at}", filter_)) == ids(there)

    async def test_fork_3_goes_its_own_way(self, repository: AsyncSessionRepository) -> None:
        """What is appended to a fork is not in its source, nor the reverse; replays are told in each (A-5)."""
        await begun(repository, *log())
        await repository.fork("s", session("t"), at=5)
        assert (await repository.append("t", turn(1, session_id="t"))).is_replay
        result = await repository.append("t", [user(6, session_id="t")], expected_version=5)
        assert (result.version, result.is_replay) == (6, False)
        await repository.append("s", [user(10)])
        assert ids(await repository.events("t")) == "e1 e2 e3 e4 e5 e6"
        assert await repository.version("s") == 10
        await repository.delete("s")
        assert await repository.version("t") == 6

    async def test_fork_4_that_is_refused_changes_nothing(self, repository: AsyncSessionRepository) -> None:
        """A target that exists, a source that does not, a version that is not there: an error each (A-5, R-2)."""
        await begun(repository, *log())
        await begun(repository, [user(1, session_id="t")], of=session("t"))
        before = (await state(repository), await state(repository, "t"))
        with pytest.raises(SessionAlreadyExistsError):
            await repository.fork("s", session("t"))
        with pytest.raises(SessionAlreadyExistsError):
            await repository.fork("s", session())
        with pytest.raises(SessionNotFoundError):
            await repository.fork("unknown", session("u"))
        for at in (10, -1):
            with pytest.raises(VersionOutOfRangeError):
                await repository.fork("s", session("u"), at=at)
        with pytest.raises(InvalidValueError):
            await repository.fork("s", session("u", metadata={"channel": 7}))
        assert (await state(repository), await state(repository, "t")) == before
        assert await repository.find("u") is None

    async def test_fork_5_makes_room_over_an_expired_session(
        self, repository: AsyncSessionRepository, clock: FixedClock
    ) -> None:
        """The remains of an expired target go, as they do for ``create`` (R-7)."""
        await begun(repository, *log())
        await begun(repository, [user(1, session_id="t")], of=session("t", expires_at=START + timedelta(hours=1)))
        clock.advance(timedelta(hours=1))
        assert await repository.fork("s", session("t"), at=4) == 4
        assert ids(await repository.events("t")) == "e1 e2 e3 e4"

    async def test_fork_6_holds_no_turn(self, repository: AsyncSessionRepository) -> None:
        """A turn that is held on the source is not held on the fork (H-11)."""
        await begun(repository, *log())
        await repository.take_turn("s", Turn("a"))
        await repository.fork("s", session("t"))
        assert await repository.take_turn("t", Turn("b")) == 9
