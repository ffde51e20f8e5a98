"""VIEW: the active view, as the newest boundary names it (A-1 to A-5)."""

from __future__ import annotations

import pytest

from turnlog.errors import VersionConflictError
from turnlog.log.event_filter import EventFilter
from turnlog.log.events import SessionEvent
from turnlog.log.messages import MessageType
from turnlog.storage.protocol import AsyncSessionRepository
from turnlog.testing.contract._async.setting import begun, state
from turnlog.testing.contract.exactness import ids
from turnlog.testing.factories import assistant, boundary, conversation, own, summary, system, turn, user

VIEW = EventFilter(active_view=True)


class View:
    """What a model would be shown."""

    async def test_view_1_without_a_boundary_is_the_log(self, repository: AsyncSessionRepository) -> None:
        """A log without a boundary is its own view; ``active()`` gives its messages (A-2, F-3)."""
        await begun(repository, [system(1), own(2)], turn(3))
        assert await self._view(repository) == "e1 e2 e3 e4 e5 e6"
        assert ids(await repository.events("s", EventFilter.active())) == "e1 e3 e4 e5 e6"

    async def test_view_2_after_a_clear_holds_what_came_later(self, repository: AsyncSessionRepository) -> None:
        """A clear leaves an empty view, into which later events come (A-5)."""
        await begun(repository, turn(1), [boundary(5, [], strategy="clear")])
        assert await self._view(repository) == ""
        await repository.append("s", [user(6), own(7)])
        assert await self._view(repository) == "e6 e7"

    async def test_view_3_is_in_the_order_that_the_boundary_names(self, repository: AsyncSessionRepository) -> None:
        """Pinned events, the summary, the preserved events, then what came later (A-2)."""
        await begun(
            repository, [system(1)], conversation(2, first=2), summary(10, [(6, 9)], pinned=[(1, 1)]), [user(13)]
        )
        assert await self._view(repository) == "e1 e11 e12 e6 e7 e8 e9 e13"

    async def test_view_4_is_named_by_the_newest_boundary_alone(self, repository: AsyncSessionRepository) -> None:
        """An older boundary has no say, whatever it named (A-1, CASE B34)."""
        await begun(
            repository, turn(1), summary(5, [(3, 4)]), turn(8), summary(12, [(8, 11)], pinned=[(6, 7)]), [user(15)]
        )
        assert await self._view(repository) == "e6 e7 e13 e14 e8 e9 e10 e11 e15"

    async def test_view_5_may_be_rewound(self, repository: AsyncSessionRepository) -> None:
        """A rewind brings back what a clear or a compaction took out (A-5, CASE B140)."""
        await begun(repository, turn(1), [boundary(5, [], strategy="clear")], [user(6)])
        await repository.append("s", [boundary(7, [(1, 4)], strategy="rewind")])
        assert await self._view(repository) == "e1 e2 e3 e4"
        assert ids(await repository.events("s", VIEW, as_of=6)) == "e6"
        assert ids(await repository.events("s", VIEW, as_of=4)) == "e1 e2 e3 e4"

    async def test_view_6_never_holds_a_boundary(self, repository: AsyncSessionRepository) -> None:
        """Boundaries are events of the log and never of the view (A-2)."""
        await begun(repository, turn(1), [boundary(5, [(1, 4)])], [user(6)], [boundary(7, [(1, 4), (6, 6)])])
        assert await self._view(repository) == "e1 e2 e3 e4 e6"

    async def test_view_7_leaves_the_log_whole(self, repository: AsyncSessionRepository) -> None:
        """Covered events stay in the log, unchanged and in place (A-1, A-4, CASE B28, B56, B58)."""
        log = await begun(repository, turn(1))
        await repository.append("s", [boundary(5, [], strategy="clear")])
        assert (await repository.events("s"))[:4] == log
        assert await repository.version("s") == 5

    async def test_view_8_holds_own_types_by_their_position(self, repository: AsyncSessionRepository) -> None:
        """An event of an own type is in the view while its position is in a range or behind the boundary (A-2)."""
        await begun(repository, [user(1), own(2), assistant(3)], [user(4), own(5), assistant(6)], summary(7, [(4, 6)]))
        await repository.append("s", [own(10)])
        assert await self._view(repository) == "e8 e9 e4 e5 e6 e10"
        assert ids(await repository.events("s", EventFilter.active())) == "e8 e9 e4 e6"

    async def test_view_9_is_bounded_whole_or_not_at_all(self, repository: AsyncSessionRepository) -> None:
        """A compaction that was overtaken leaves neither its boundary nor its summary (A-1, CASE B35, B43)."""
        await begun(repository, turn(1))
        await repository.append("s", [user(5, id="late")])
        before = await state(repository)
        with pytest.raises(VersionConflictError):
            await repository.append("s", summary(5, [(4, 4)]), expected_version=4)
        assert await state(repository) == before
        assert await self._view(repository) == "e1 e2 e3 e4 late"

    async def test_view_10_takes_a_thousand_ranges_in_order(self, repository: AsyncSessionRepository) -> None:
        """A boundary may name 1,000 ranges, in any order (A-3)."""
        ranges = [(n, n) for n in range(1000, 0, -1)]
        await begun(repository, [user(n) for n in range(1, 1001)], [boundary(1001, ranges)])
        found = await repository.events("s", VIEW)
        assert [event.position for event in found] == [first for first, _ in ranges]

    async def test_view_11_is_taken_before_the_criteria(self, repository: AsyncSessionRepository) -> None:
        """Criteria choose among the view's events, and keep its order (F-2)."""
        await begun(repository, conversation(2), summary(9, [(5, 8)], pinned=[(2, 2)]), [user(12, "last question")])
        kinds = {MessageType.USER, MessageType.ASSISTANT}
        assert ids(await repository.events("s", VIEW.replace(message_types=kinds))) == "e2 e10 e11 e5 e6 e8 e12"
        assert ids(await repository.events("s", VIEW.replace(keyword="question"))) == "e5 e12"
        assert ids(await repository.events("s", VIEW.replace(exclude_synthetic=True, before=7))) == "e2 e5 e6"

    async def test_view_12_may_be_of_a_base_branch(self, repository: AsyncSessionRepository) -> None:
        """Summaries on another base branch are in its view like any other (V-5)."""
        log: list[list[SessionEvent]] = [turn(1, branch="a"), summary(5, [(4, 4)], branch="a"), [user(8, branch="a.b")]]
        await begun(repository, *log)
        assert await self._view(repository) == "e6 e7 e4 e8"
        assert ids(await repository.events("s", VIEW.replace(branch="a", last=2))) == "e6 e7 e4"
        assert ids(await repository.events("s", VIEW.replace(branch=None))) == ""

    async def _view(self, repository: AsyncSessionRepository) -> str:
        return ids(await repository.events("s", VIEW))
