"""APPEND, BATCH: what a batch is, and what happens when it is appended."""

from __future__ import annotations

from datetime import timedelta

import pytest

from turnlog.errors import (
    EventContentConflictError,
    InvalidBatchError,
    SessionNotFoundError,
    VersionConflictError,
)
from turnlog.log.events import EventMetadata, SessionEvent
from turnlog.storage.protocol import AsyncSessionRepository
from turnlog.testing.clocks import START
from turnlog.testing.contract._async.setting import begun, drained, state
from turnlog.testing.contract.exactness import exactly, ids, positions
from turnlog.testing.factories import assistant, boundary, conversation, own, session, summary, turn, user


class Appending:
    """Batches are whole, in order, and numbered without a gap."""

    async def test_append_1_numbers_events_from_one(self, repository: AsyncSessionRepository) -> None:
        """The events of a batch get the positions 1, 2, 3… in their order, and the version is the last (R-3, V-7)."""
        await repository.create(session())
        result = await repository.append("s", conversation(1))
        assert (ids(result.events), positions(result.events)) == ("e1 e2 e3 e4", [1, 2, 3, 4])
        assert (result.version, result.is_replay) == (4, False)
        assert await repository.version("s") == 4

    async def test_append_2_goes_on_where_the_log_ends(self, repository: AsyncSessionRepository) -> None:
        """A later batch continues the numbers, without a gap, and leaves what is there untouched (CASE B80, B71)."""
        first = await begun(repository, [user(1), assistant(2)])
        result = await repository.append("s", [user(3)])
        assert (positions(result.events), result.version) == ([3], 3)
        assert exactly(await repository.events("s")) == exactly([*first, *result.events])

    async def test_append_3_to_an_unknown_session_raises(self, repository: AsyncSessionRepository) -> None:
        """Nothing is appended to a session that is not there, and none comes to be by trying (R-5, CASE B82)."""
        with pytest.raises(SessionNotFoundError) as caught:
            await repository.append("s", [user(1)])
        assert caught.value.session_id == "s"
        assert await repository.find("s") is None
        await repository.create(session())
        assert await repository.version("s") == 0

    async def test_append_4_stores_all_or_nothing(self, repository: AsyncSessionRepository) -> None:
        """A batch that fails at its last event leaves none of its events (R-3, CASE B69)."""
        await begun(repository, [user(1)])
        before = await state(repository)
        with pytest.raises(EventContentConflictError):
            await repository.append("s", [user(2), assistant(3), user(1, "not what is stored")])
        assert await state(repository) == before

    async def test_append_5_at_the_expected_version_is_stored(self, repository: AsyncSessionRepository) -> None:
        """A batch whose ``expected_version`` is the log's version is stored, on an empty log too (R-3)."""
        await repository.create(session())
        assert (await repository.append("s", [user(1)], expected_version=0)).version == 1
        assert (await repository.append("s", [assistant(2), user(3)], expected_version=1)).version == 3

    async def test_append_6_at_another_version_conflicts(self, repository: AsyncSessionRepository) -> None:
        """A log that is not at ``expected_version`` is a conflict, behind or ahead, and nothing is written (R-3)."""
        await begun(repository, [user(1), assistant(2)])
        before = await state(repository)
        for expected in (0, 1, 3):
            with pytest.raises(VersionConflictError) as caught:
                await repository.append("s", [user(3)], expected_version=expected)
            assert (caught.value.expected, caught.value.actual) == (expected, 2)
        assert await state(repository) == before

    async def test_append_7_orders_by_position_never_by_time(self, repository: AsyncSessionRepository) -> None:
        """Events stay in the order appended, with equal times and times that run back (V-7, CASE B98, B101, B102)."""
        times = [START + timedelta(seconds=second) for second in (5, 5, 1, 9, 1)]
        appended = [user(n, timestamp=time) for n, time in enumerate(times, 1)]
        await begun(repository, appended[:2], appended[2:4], appended[4:])
        found = await repository.events("s")
        assert (ids(found), [event.timestamp for event in found]) == ("e1 e2 e3 e4 e5", times)

    async def test_append_8_returns_what_is_read(self, repository: AsyncSessionRepository) -> None:
        """The events that ``append`` returns are those that are read afterwards, to the last field (R-3)."""
        batch = [*conversation(1, metadata={"n": 1.0}, branch="a.b"), own(5, {"at": [1, None]})]
        stored = await begun(repository, batch)
        assert exactly(stored) == exactly(await repository.events("s"))
        assert exactly(stored) == exactly([event.replace(position=n) for n, event in enumerate(batch, 1)])

    async def test_append_9_gives_the_positions_itself(self, repository: AsyncSessionRepository) -> None:
        """A position that an event already has, from another log, means nothing (V-3)."""
        stored = await begun(repository, [user(1, position=7), assistant(2, position=3)])
        assert positions(stored) == positions(await repository.events("s")) == [1, 2]

    async def test_append_10_stores_a_large_batch_whole(self, repository: AsyncSessionRepository) -> None:
        """A batch of many events is one batch (R-3)."""
        await begun(repository, [user(n) for n in range(1, 201)])
        batches = await drained(repository.iter_batches("s"))
        assert [positions(batch) for batch in batches] == [list(range(1, 201))]

    async def test_append_11_stays_in_its_session(self, repository: AsyncSessionRepository) -> None:
        """Logs are numbered and kept apart, with the same event ids too (R-4, CASE B85, B116, B118, B119)."""
        for name in ("s", "t"):
            await repository.create(session(name))
        for n in (1, 2):
            for name in ("s", "t"):
                await repository.append(name, [user(n, f"{n} in {name}", session_id=name)])
        for name in ("s", "t"):
            found = await repository.events(name)
            assert [(e.position, e.session_id, e.content.text) for e in found] == [
                (1, name, f"1 in {name}"),
                (2, name, f"2 in {name}"),
            ]

    async def test_batch_1_is_not_empty(self, repository: AsyncSessionRepository) -> None:
        """An empty batch is refused (R-4)."""
        await self._is_refused(repository, [])

    async def test_batch_2_names_each_id_once(self, repository: AsyncSessionRepository) -> None:
        """A batch with an id twice is refused, the same event or another (R-4)."""
        await self._is_refused(repository, [user(2), user(2)])
        await self._is_refused(repository, [user(2), user(3), assistant(2)])

    async def test_batch_3_is_of_one_session(self, repository: AsyncSessionRepository) -> None:
        """A batch with an event of another session is refused (R-4)."""
        await self._is_refused(repository, [user(2), user(3, session_id="t")])
        await self._is_refused(repository, [user(2, session_id="S")])

    async def test_batch_4_has_a_boundary_only_at_its_beginning(self, repository: AsyncSessionRepository) -> None:
        """A boundary behind the beginning of a batch is refused (A-1)."""
        await self._is_refused(repository, [user(2), boundary(3, [], end=3)])

    async def test_batch_5_has_a_summary_only_behind_a_boundary(self, repository: AsyncSessionRepository) -> None:
        """Synthetic events without their boundary are refused (A-1, V-6, CASE B35)."""
        await self._is_refused(repository, summary(2)[1:])
        await self._is_refused(repository, [user(2), assistant(3, metadata={EventMetadata.SYNTHETIC: True})])

    async def test_batch_6_has_a_boundary_that_fits_its_place(self, repository: AsyncSessionRepository) -> None:
        """A boundary whose payload names another place, or positions that are not there, is refused (A-1, A-3)."""
        await self._is_refused(repository, summary(3))  # as if it stood at 3
        await self._is_refused(repository, [boundary(2, [(1, 1)], end=4), user(3)])  # its batch ends at 3
        await self._is_refused(repository, [boundary(2, [(3, 3)])])
        await self._is_refused(repository, [boundary(2, [(1, 2)])])  # holds the boundary itself
        await self._is_refused(repository, [boundary(2, [(1, 1), (1, 1)])])

    async def test_batch_7_has_a_boundary_that_names_no_other(self, repository: AsyncSessionRepository) -> None:
        """A boundary whose view spans an older boundary is refused (A-2)."""
        await begun(repository, turn(1), [boundary(5, [(1, 4)])], [user(6)])
        await self._is_refused(repository, [boundary(7, [(1, 6)])])
        await self._is_refused(repository, [boundary(7, [(5, 5), (1, 1)])])

    async def _is_refused(self, repository: AsyncSessionRepository, batch: list[SessionEvent]) -> None:
        if await repository.find("s") is None:
            await begun(repository, [user(1)])
        before = await state(repository)
        with pytest.raises(InvalidBatchError):
            await repository.append("s", batch)
        assert await state(repository) == before
