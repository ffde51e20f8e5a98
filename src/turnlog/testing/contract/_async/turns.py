"""TURN: one turn at a time on a session, held by a token and a lease (H-11)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from turnlog.errors import SessionBusyError, SessionNotFoundError, TurnInterruptedError
from turnlog.log.events import SessionEvent
from turnlog.storage.protocol import AsyncSessionRepository, Turn
from turnlog.testing.clocks import FixedClock
from turnlog.testing.contract._async.setting import begun, state
from turnlog.testing.factories import assistant, boundary, own, session, summary, user

LEASE = timedelta(seconds=20)


class Turns:
    """Taking, holding, losing and giving back a turn; time is the store's clock."""

    async def test_turn_1_taking_returns_the_version(self, repository: AsyncSessionRepository) -> None:
        """Taking a free turn succeeds and tells the version to begin from."""
        await begun(repository, [user(1), assistant(2)])
        assert await repository.take_turn("s", Turn("a")) == 2

    async def test_turn_2_is_refused_while_another_holds_it(
        self, repository: AsyncSessionRepository, clock: FixedClock
    ) -> None:
        """As long as a lease runs, nobody else takes the turn; tokens compare by code point (R-8)."""
        await repository.create(session())
        await repository.take_turn("s", Turn("a"))
        clock.advance(LEASE - timedelta(microseconds=1))
        for token in ("b", "A", "a "):
            with pytest.raises(SessionBusyError) as caught:
                await repository.take_turn("s", Turn(token))
            assert caught.value.session_id == "s"

    async def test_turn_3_is_free_when_the_lease_ends(
        self, repository: AsyncSessionRepository, clock: FixedClock
    ) -> None:
        """A lease ends exactly ``lease`` after it was taken, and then the turn is anybody's."""
        await repository.create(session())
        await repository.take_turn("s", Turn("a", timedelta(seconds=3)))
        clock.advance(3)
        assert await repository.take_turn("s", Turn("b")) == 0
        with pytest.raises(SessionBusyError):
            await repository.take_turn("s", Turn("a"))

    async def test_turn_4_taking_again_renews(self, repository: AsyncSessionRepository, clock: FixedClock) -> None:
        """The holder may take its turn again; the lease then runs from that moment."""
        await repository.create(session())
        for _ in range(2):
            await repository.take_turn("s", Turn("a"))
            clock.advance(15)
        with pytest.raises(SessionBusyError):
            await repository.take_turn("s", Turn("b"))

    async def test_turn_5_renewing_extends_the_lease(
        self, repository: AsyncSessionRepository, clock: FixedClock
    ) -> None:
        """``renew_turn`` makes the lease run ``lease`` from now on, longer or shorter than before."""
        await repository.create(session())
        await repository.take_turn("s", Turn("a"))
        clock.advance(15)
        await repository.renew_turn("s", Turn("a", timedelta(seconds=60)))
        clock.advance(59)
        with pytest.raises(SessionBusyError):
            await repository.take_turn("s", Turn("b"))
        await repository.renew_turn("s", Turn("a", timedelta(seconds=1)))
        clock.advance(1)
        await repository.take_turn("s", Turn("b"))

    async def test_turn_6_renewing_a_turn_not_held_raises(
        self, repository: AsyncSessionRepository, clock: FixedClock
    ) -> None:
        """Renewing what was never taken, was taken over, or was given back is an interruption."""
        await repository.create(session())
        with pytest.raises(TurnInterruptedError):
            await repository.renew_turn("s", Turn("a"))
        await repository.take_turn("s", Turn("a"))
        clock.advance(LEASE)
        await repository.take_turn("s", Turn("b"))
        with pytest.raises(TurnInterruptedError) as caught:
            await repository.renew_turn("s", Turn("a"))
        assert caught.value.session_id == "s"
        await repository.release_turn("s", "b")
        with pytest.raises(TurnInterruptedError):
            await repository.renew_turn("s", Turn("b"))

    async def test_turn_7_releasing_frees_it_at_once(self, repository: AsyncSessionRepository) -> None:
        """``release_turn`` gives the turn back and says so; a token that does not hold it releases nothing."""
        await repository.create(session())
        await repository.take_turn("s", Turn("a"))
        assert await repository.release_turn("s", "b") is False
        with pytest.raises(SessionBusyError):
            await repository.take_turn("s", Turn("b"))
        assert await repository.release_turn("s", "a") is True
        assert await repository.release_turn("s", "a") is False
        assert await repository.take_turn("s", Turn("b")) == 0

    async def test_turn_8_is_of_one_session(self, repository: AsyncSessionRepository) -> None:
        """Turns on other sessions are free; an unknown session has none."""
        for name in ("s", "S", "s "):
            await repository.create(session(name))
        await repository.take_turn("s", Turn("a"))
        assert await repository.take_turn("S", Turn("b")) == 0
        assert await repository.take_turn("s ", Turn("b")) == 0
        with pytest.raises(SessionNotFoundError):
            await repository.take_turn("unknown", Turn("a"))
        assert await repository.release_turn("unknown", "a") is False

    async def test_turn_9_appending_takes_it(self, repository: AsyncSessionRepository) -> None:
        """An append with ``take`` takes a free turn in the same step, and is refused when it is not free."""
        await repository.create(session())
        await repository.append("s", [user(1)], turn=Turn("a", take=True))
        before = await state(repository)
        with pytest.raises(SessionBusyError):
            await repository.append("s", [user(2)], turn=Turn("b", take=True))
        assert await state(repository) == before
        await repository.append("s", [assistant(2)], turn=Turn("a", take=True))
        await repository.append("s", [user(3)], turn=Turn("a"))
        assert await repository.version("s") == 3

    async def test_turn_10_appending_renews_the_lease(
        self, repository: AsyncSessionRepository, clock: FixedClock
    ) -> None:
        """Each append with the holder's token makes the lease run from then on."""
        await repository.create(session())
        await repository.append("s", [user(1)], turn=Turn("a", take=True))
        for n in range(2, 5):
            clock.advance(15)
            await repository.append("s", [assistant(n)], turn=Turn("a"))
        clock.advance(15)
        with pytest.raises(SessionBusyError):
            await repository.take_turn("s", Turn("b"))

    async def test_turn_11_appending_without_holding_it_raises(
        self, repository: AsyncSessionRepository, clock: FixedClock
    ) -> None:
        """After a take-over, a release, or without ever taking it, an append for the turn stores nothing (H-11)."""
        await begun(repository, [user(1)])
        before = await state(repository)
        await self._is_interrupted(repository)
        await repository.take_turn("s", Turn("a"))
        await repository.release_turn("s", "a")
        await self._is_interrupted(repository)
        await repository.take_turn("s", Turn("a"))
        clock.advance(LEASE)
        await repository.take_turn("s", Turn("b"))
        await self._is_interrupted(repository)
        assert await state(repository) == before

    async def _is_interrupted(self, repository: AsyncSessionRepository) -> None:
        for batch in ([assistant(2)], [own(2)], [boundary(2, [])]):
            with pytest.raises(TurnInterruptedError) as caught:
                await repository.append("s", batch, turn=Turn("a"))
            assert caught.value.session_id == "s"

    async def test_turn_12_messages_of_others_wait(self, repository: AsyncSessionRepository, clock: FixedClock) -> None:
        """While a turn is held, messages without its token are refused, also in a batch with own types (H-11)."""
        await begun(repository, [user(1)])
        await repository.take_turn("s", Turn("a"))
        before = await state(repository)
        for batch in ([user(2)], [own(2), assistant(3, branch="a")]):
            with pytest.raises(SessionBusyError):
                await repository.append("s", batch)
        assert await state(repository) == before
        clock.advance(LEASE)
        await repository.append("s", [user(2)])

    async def test_turn_13_clear_and_rewind_of_others_wait(self, repository: AsyncSessionRepository) -> None:
        """While a turn is held, nobody else clears or rewinds the session (H-11)."""
        await begun(repository, [user(1)])
        await repository.take_turn("s", Turn("a"))
        before = await state(repository)
        for strategy in ("clear", "rewind"):
            with pytest.raises(SessionBusyError):
                await repository.append("s", [boundary(2, [], strategy=strategy)])
        assert await state(repository) == before
        await repository.append("s", [boundary(2, [], strategy="clear")], turn=Turn("a"))

    async def test_turn_14_own_types_and_compactions_pass(self, repository: AsyncSessionRepository) -> None:
        """Events of own types and a compaction's boundary with its summary need no turn (H-11, CASE B43)."""
        await begun(repository, [user(1)])
        await repository.take_turn("s", Turn("a"))
        passing: list[list[SessionEvent]] = [[own(2), own(3)], summary(4, [(1, 1)]), [boundary(7, [(1, 1)])]]
        for batch in passing:
            await repository.append("s", batch)
        assert await repository.version("s") == 7
        await repository.append("s", [assistant(8)], turn=Turn("a"))

    async def test_turn_15_a_refused_append_renews_nothing(
        self, repository: AsyncSessionRepository, clock: FixedClock
    ) -> None:
        """A conflict takes no turn and prolongs none."""
        await begun(repository, [user(1)])
        for turn in (Turn("a", take=True), Turn("a")):
            with pytest.raises((RuntimeError, TimeoutError)):
                await repository.append("s", [user(2)], expected_version=0, turn=turn)
        assert await repository.take_turn("s", Turn("b")) == 1
        clock.advance(15)
        with pytest.raises(RuntimeError):
            await repository.append("s", [user(2)], expected_version=0, turn=Turn("b"))
        clock.advance(5)
        assert await repository.take_turn("s", Turn("a")) == 1
