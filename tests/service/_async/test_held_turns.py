"""H-11: what the service does while somebody holds a session's turn, and when a log moves under it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from turnlog import (
    AppendResult,
    AsyncSessionRepository,
    AsyncSessionService,
    EventFilter,
    SessionBusyError,
    SessionEvent,
    Turn,
    TurnInterruptedError,
    UserMessage,
    VersionConflictError,
    open_async_store,
)
from turnlog.compaction import WindowCompactionStrategy
from turnlog.testing.clocks import SteppedClock
from turnlog.testing.factories import assistant, calls, own, results, user

HOLDER = Turn("holder", take=True)
VIEW = EventFilter(active_view=True)


@pytest.fixture
async def impatient(service: AsyncSessionService) -> AsyncSessionService:
    """A service that waits for nobody, on a session in which a turn is running."""
    await service.create("s")
    await service.append("s", [user(1), assistant(2)])
    await service.append("s", [user(3), calls(4, "c")], turn=HOLDER)
    return AsyncSessionService(service.repository, turn_wait=timedelta())


class Meanwhile:
    """Lets something happen between the service's look at a store and its append, and counts the appends."""

    def __init__(self, repository: AsyncSessionRepository, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
        self.append = repository.append
        self.attempts = 0
        self._times = times
        monkeypatch.setattr(repository, "append", self)

    async def __call__(
        self,
        session_id: str,
        events: Sequence[SessionEvent],
        *,
        expected_version: int | None = None,
        turn: Turn | None = None,
    ) -> AppendResult:
        self.attempts += 1
        if self.attempts <= self._times:
            await self.happen(self.attempts)
        return await self.append(session_id, events, expected_version=expected_version, turn=turn)

    async def happen(self, attempt: int) -> None:
        """By default, somebody else asks a question."""
        await self.append("s", [user(100 + attempt)])


async def test_when_the_wait_is_over_the_session_is_busy(impatient: AsyncSessionService) -> None:
    """Messages, clear and rewind wait for the turn; then they raise, and nothing is stored."""
    with pytest.raises(SessionBusyError) as caught:
        await impatient.append("s", user(9))
    assert caught.value.session_id == "s"
    with pytest.raises(SessionBusyError):
        await impatient.append_message("s", UserMessage("hello"))
    with pytest.raises(SessionBusyError):
        await impatient.append("s", [own(9), user(10)])
    with pytest.raises(SessionBusyError):
        await impatient.clear("s")
    with pytest.raises(SessionBusyError):
        await impatient.rewind("s", 2)
    assert await impatient.version("s") == 4
    assert len(await impatient.events("s", VIEW)) == 4


async def test_own_types_and_a_compaction_pass(impatient: AsyncSessionService) -> None:
    assert (await impatient.append("s", [own(9), own(10)])).version == 6
    done = await impatient.compact("s", WindowCompactionStrategy(last_turns=1))
    assert [event.position for event in done.covered_events] == [1, 2]


async def test_a_replay_does_not_wait(impatient: AsyncSessionService) -> None:
    """R-4: replays are recognised before anything else is looked at."""
    assert (await impatient.append("s", [user(1), assistant(2)])).is_replay


async def test_the_holder_goes_on(impatient: AsyncSessionService) -> None:
    """Whoever names the turn's token appends, until somebody else has taken the turn."""
    await impatient.append("s", results(5, "c"), turn=Turn("holder"))
    said = await impatient.append_message("s", UserMessage("and"), turn=Turn("holder"))
    assert said.position == 6
    await impatient.repository.release_turn("s", "holder")
    await impatient.append("s", user(7))
    await impatient.append("s", assistant(8), turn=Turn("other", take=True))
    with pytest.raises(TurnInterruptedError):
        await impatient.append("s", assistant(9), turn=Turn("holder"))
    with pytest.raises(SessionBusyError):
        await impatient.append("s", assistant(9), turn=HOLDER)
    assert await impatient.version("s") == 8


async def test_a_turn_ends_by_the_clock_of_the_store(url: str) -> None:
    """Each attempt reads a clock that steps five seconds; a lease of twenty is over before the service gives up."""
    clock = SteppedClock(step=timedelta(seconds=5))
    async with AsyncSessionService(open_async_store(url, clock=clock)) as service:
        await service.create("s")
        await service.append("s", user(1), turn=HOLDER)
        waited = Turn("waited", take=True)
        assert (await service.append("s", user(2), turn=waited)).version == 2
        assert (await service.append("s", user(3))).version == 3
        await service.append("s", user(4), turn=HOLDER)
        await service.clear("s")
        assert await service.events("s", VIEW) == []


async def test_who_waits_goes_on_when_the_turn_is_given_back(
    service: AsyncSessionService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock stands still: only the release can let the waiting append pass."""
    await service.create("s")
    await service.append("s", user(1), turn=HOLDER)

    class Released(Meanwhile):
        async def happen(self, attempt: int) -> None:
            if attempt == 3:
                await service.repository.release_turn("s", "holder")

    released = Released(service.repository, monkeypatch, 3)
    assert (await service.append("s", user(2))).version == 2
    assert released.attempts == 3


async def test_a_clear_that_waited_takes_what_the_turn_said(
    service: AsyncSessionService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A-5: it is decided anew on the log that it finds when the turn has ended."""
    await service.create("s")
    await service.append("s", [user(1), calls(2, "c")], turn=HOLDER)

    class Ending(Meanwhile):
        async def happen(self, attempt: int) -> None:
            if attempt == 2:
                await self.append("s", [results(3, "c"), assistant(4)], turn=Turn("holder"))
                await service.repository.release_turn("s", "holder")

    ending = Ending(service.repository, monkeypatch, 2)
    cleared = await service.clear("s")
    assert ending.attempts >= 2
    assert cleared.position == 5
    assert await service.events("s", VIEW) == []
    assert [event.position for event in await service.expand("s", cleared)] == [1, 2, 3, 4]


async def test_case_b43_a_log_that_moves_under_a_clear_is_read_again(
    service: AsyncSessionService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B43: merged inside the library, also where nobody waits for turns."""
    hasty = AsyncSessionService(service.repository, turn_wait=timedelta())
    await hasty.create("s")
    await hasty.append("s", [user(1), assistant(2)])
    moving = Meanwhile(hasty.repository, monkeypatch, 5)
    cleared = await hasty.clear("s")
    assert moving.attempts == 6
    assert cleared.position == 8
    assert await hasty.active_messages("s") == []
    assert [event.position for event in await hasty.expand("s", cleared)] == [1, 2, 3, 4, 5, 6, 7]


async def test_case_b43_a_log_that_moves_under_a_rewind_is_read_again(
    service: AsyncSessionService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A-5: what came meanwhile leaves the view too."""
    await service.create("s")
    await service.append("s", [user(1), assistant(2)])
    await service.append("s", [user(3), assistant(4)])
    Meanwhile(service.repository, monkeypatch, 3)
    rewound = await service.rewind("s", 2)
    assert [event.position for event in await service.events("s", VIEW)] == [1, 2]
    assert [event.position for event in await service.expand("s", rewound)] == [3, 4, 5, 6, 7]


async def test_a_log_that_never_rests_is_given_up(
    service: AsyncSessionService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever clears is told that the log kept moving; it is no endless loop."""
    hasty = AsyncSessionService(service.repository, turn_wait=timedelta())
    await hasty.create("s")
    Meanwhile(hasty.repository, monkeypatch, 1_000)
    with pytest.raises(VersionConflictError):
        await hasty.clear("s")
    assert all(not event.is_boundary for event in await hasty.events("s"))
