"""RACE: many callers at the same time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from turnlog.errors import (
    SessionAlreadyExistsError,
    SessionBusyError,
    SessionNotFoundError,
    VersionConflictError,
)
from turnlog.log.session import Session
from turnlog.storage.changes import SessionChange
from turnlog.storage.protocol import AppendResult, AsyncSessionRepository, Turn
from turnlog.testing.clocks import START, FixedClock
from turnlog.testing.contract._async.setting import begun
from turnlog.testing.contract.exactness import ids, positions
from turnlog.testing.contract.racing import RACERS, in_tasks, raised, returned, task_pause
from turnlog.testing.factories import assistant, session, user


class Races:
    """Whatever the order is that concurrent callers come in, it is as if they had come one after another."""

    async def test_race_1_appenders_lose_and_double_nothing(self, repository: AsyncSessionRepository) -> None:
        """Concurrent batches are all stored, whole, once, in each caller's order, where they say (R-6, CASE B91)."""
        await repository.create(session())

        async def appender(number: int) -> list[AppendResult]:
            first = 100 * number
            return [await repository.append("s", [user(n), assistant(n + 1)]) for n in range(first, first + 10, 2)]

        outcomes = await in_tasks([partial(appender, number) for number in range(RACERS)])
        assert raised(outcomes) == []
        found = await repository.events("s")
        assert positions(found) == list(range(1, RACERS * 10 + 1))
        place = {made.id: made.position for made in found}
        for number, results in enumerate(returned(outcomes)):
            told = [(made.id, made.position) for result in results for made in result.events]
            assert [name for name, _ in told] == [f"e{n}" for n in range(100 * number, 100 * number + 10)]
            assert told == [(name, place[name]) for name, _ in told] == sorted(told, key=lambda pair: pair[1] or 0)
            assert all(made.position == (first.position or 0) + 1 for first, made in (r.events for r in results))
            assert all(result.version == result.events[-1].position for result in results)

    async def test_race_2_one_of_several_wins_a_version(self, repository: AsyncSessionRepository) -> None:
        """Of appends that expect the same version exactly one is stored (R-3, CASE B73)."""
        await begun(repository, [user(1)])

        async def appender(number: int) -> AppendResult:
            return await repository.append("s", [user(number)], expected_version=1)

        outcomes = await in_tasks([partial(appender, number) for number in range(2, 2 + RACERS)])
        assert raised(outcomes) == [VersionConflictError] * (RACERS - 1)
        (winner,) = returned(outcomes)
        assert ids(await repository.events("s")) == f"e1 {ids(winner.events)}"

    async def test_race_3_one_of_several_creates_a_session(self, repository: AsyncSessionRepository) -> None:
        """Of concurrent creators exactly one wins, and its session it is (R-2)."""

        async def creator(number: int) -> Session:
            return await repository.create(session(metadata={"by": number}))

        outcomes = await in_tasks([partial(creator, number) for number in range(RACERS)])
        assert raised(outcomes) == [SessionAlreadyExistsError] * (RACERS - 1)
        assert [await repository.find("s")] == returned(outcomes)

    async def test_race_4_no_update_is_lost(self, repository: AsyncSessionRepository) -> None:
        """Concurrent updates of different keys are all kept (R-1)."""
        await repository.create(session())

        async def updater(number: int) -> None:
            for n in range(3):
                await repository.update("s", SessionChange(set={f"{number}.{n}": n}))

        assert raised(await in_tasks([partial(updater, number) for number in range(RACERS)])) == []
        found = await repository.find("s")
        assert found is not None
        assert found.metadata == {f"{number}.{n}": n for number in range(RACERS) for n in range(3)}

    async def test_race_5_one_batch_is_stored_once(self, repository: AsyncSessionRepository) -> None:
        """Of callers with the same batch one stores it, and the others are replays of it (R-4, CASE B63)."""
        await repository.create(session())

        async def appender() -> AppendResult:
            return await repository.append("s", [user(1), assistant(2)])

        results = returned(await in_tasks([appender] * RACERS))
        assert sorted(result.is_replay for result in results) == [False] + [True] * (RACERS - 1)
        assert {ids(result.events) for result in results} == {ids(await repository.events("s"))} == {"e1 e2"}
        assert {(result.version, *positions(result.events)) for result in results} == {(2, 1, 2)}

    async def test_race_6_one_of_several_takes_a_turn(self, repository: AsyncSessionRepository) -> None:
        """Of concurrent takers exactly one holds the turn (H-11)."""
        await repository.create(session())

        async def taker(number: int) -> int:
            await repository.take_turn("s", Turn(f"{number}"))
            return number

        outcomes = await in_tasks([partial(taker, number) for number in range(RACERS)])
        assert raised(outcomes) == [SessionBusyError] * (RACERS - 1)
        (holder,) = returned(outcomes)
        assert await repository.release_turn("s", f"{holder}") is True

    async def test_race_7_a_sweep_spares_what_was_created_anew(
        self, repository: AsyncSessionRepository, clock: FixedClock
    ) -> None:
        """A session created over expired remains survives a sweep that runs meanwhile (R-7)."""
        await begun(repository, [user(1)], of=session(expires_at=START + timedelta(hours=1)))
        clock.advance(timedelta(hours=1))

        async def sweeper() -> Any:
            return await repository.delete_expired(clock.now)

        async def creator() -> Any:
            await repository.create(session(metadata={"new": True}))
            return await repository.append("s", [user(1, "another")])

        assert raised(await in_tasks([sweeper, creator])) == []
        found = await repository.find("s")
        assert found is not None
        assert found.metadata == {"new": True}
        assert [made.content.text for made in await repository.events("s")] == ["another"]

    async def test_race_8_no_read_shows_half_a_batch(self, repository: AsyncSessionRepository) -> None:
        """A read beside a writer shows a beginning of the log, cut where an append ended (R-3, R-6, CASE B92)."""
        await repository.create(session())
        is_done = False

        async def writer() -> Any:
            nonlocal is_done
            try:
                for n in range(1, 16, 3):
                    await repository.append("s", [user(n), user(n + 1), user(n + 2)])
            finally:
                is_done = True

        async def reader() -> Any:
            lengths: list[int] = []
            while not is_done:
                read = positions(await repository.events("s"))
                assert read == list(range(1, len(read) + 1))
                lengths.append(len(read))
                await task_pause()
            return lengths

        outcomes = await in_tasks([writer, reader, reader])
        assert raised(outcomes) == []
        for lengths in returned(outcomes)[1:]:
            assert lengths == sorted(lengths)
            assert all(length % 3 == 0 for length in lengths)

    async def test_race_9_nothing_is_appended_to_what_was_deleted(self, repository: AsyncSessionRepository) -> None:
        """An append beside a delete comes before it, and goes with the session, or finds none (R-1)."""
        await begun(repository, [user(1)])

        async def appender(number: int) -> Any:
            return await repository.append("s", [user(number)])

        async def deleter() -> Any:
            return await repository.delete("s")

        racers: list[Callable[[], Any]] = [deleter, *(partial(appender, number) for number in range(2, 1 + RACERS))]
        outcomes = await in_tasks(racers)
        assert returned(outcomes)[0] is True
        assert set(raised(outcomes)) <= {SessionNotFoundError}
        assert (await repository.find("s"), await repository.version("s")) == (None, 0)
        await repository.create(session())
        assert await repository.events("s") == []
