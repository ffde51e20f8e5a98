"""WINDOW: the newest events in whole turns, and pages (F-4, F-5)."""

from __future__ import annotations

from turnlog.log.event_filter import EventFilter
from turnlog.log.messages import MessageType
from turnlog.log.windows import Window
from turnlog.storage.protocol import AsyncSessionRepository
from turnlog.testing.contract._async.setting import begun
from turnlog.testing.contract.exactness import ids
from turnlog.testing.factories import (
    assistant,
    boundary,
    calls,
    conversation,
    own,
    results,
    summary,
    system,
    turn,
    user,
)

HUGE = 10**18


class Windows:
    """A window never cuts a turn; a page never grows."""

    async def test_window_1_reaches_back_to_the_start_of_its_turn(self, repository: AsyncSessionRepository) -> None:
        """``last(n)`` gives at least n events, and begins where a turn does (F-5, CASE B03, B13)."""
        await begun(repository, conversation(3))
        starts = {n: 13 - 4 * -(-n // 4) for n in range(1, 13)}
        for n, start in starts.items():
            found = await self._read(repository, last=n)
            assert found == " ".join(f"e{number}" for number in range(start, 13)), n

    async def test_window_2_without_whole_turns_is_exact(self, repository: AsyncSessionRepository) -> None:
        """``whole_turns=False`` gives the newest n events (F-5)."""
        await begun(repository, conversation(2))
        assert await self._read(repository, last=3, whole_turns=False) == "e6 e7 e8"
        assert await self._read(repository, last=5, whole_turns=False) == "e4 e5 e6 e7 e8"

    async def test_window_3_larger_than_the_log_is_the_log(self, repository: AsyncSessionRepository) -> None:
        """A window of more events than there are gives them all, however many it asks for (F-5)."""
        await begun(repository, [system(1)], turn(2))
        for n in (5, 6, HUGE, HUGE**2):
            assert await self._read(repository, last=n) == "e1 e2 e3 e4 e5"
            assert await self._read(repository, last=n, whole_turns=False) == "e1 e2 e3 e4 e5"

    async def test_window_4_keeps_calls_with_their_results(self, repository: AsyncSessionRepository) -> None:
        """Whatever n is, results come with the calls that they answer, late ones too (F-5, CASE B03, B08, B10)."""
        await begun(
            repository,
            [user(1), calls(2, "a", "b"), results(3, "a")],
            [results(4, "b"), calls(5, "c")],
            [user(6), assistant(7)],
            [user(8), calls(9, "d"), own(10), results(11, "d")],
        )
        for n in range(1, 12):
            found = await repository.events("s", EventFilter.last(n))
            told = ids(found).split()
            assert told[0] in {"e1", "e6", "e8"}
            assert ({"e3", "e4"} & {*told} == set()) or "e2" in told
            assert len(told) >= n

    async def test_window_5_does_not_reach_for_a_start_that_is_filtered_out(
        self, repository: AsyncSessionRepository
    ) -> None:
        """When the turn's start does not match, the window is the newest n matches and no more (F-5)."""
        await begun(repository, conversation(2))
        kinds = {MessageType.ASSISTANT, MessageType.TOOL}
        assert await self._read(repository, message_types=kinds, last=1) == "e8"
        assert await self._read(repository, message_types=kinds, last=4) == "e4 e6 e7 e8"
        assert await self._read(repository, keyword="answer", last=1) == "e8"
        assert await self._read(repository, after=6, last=1) == "e8"
        await repository.append("s", [user(9, "and now?"), assistant(10, "no question")])
        assert await self._read(repository, keyword="question", last=1) == "e10"

    async def test_window_6_reaches_back_over_matches_only(self, repository: AsyncSessionRepository) -> None:
        """When it matches, the window holds the matches from there on (F-5)."""
        await begun(repository, conversation(2))
        kinds = {MessageType.USER, MessageType.TOOL}
        assert await self._read(repository, message_types=kinds, last=1) == "e5 e7"
        assert await self._read(repository, message_types=kinds, last=3) == "e1 e3 e5 e7"

    async def test_window_7_in_the_preamble_is_plain(self, repository: AsyncSessionRepository) -> None:
        """Before the first turn there is no start to reach for (V-5, F-5)."""
        await begun(repository, [system(1), own(2), assistant(3)], [user(4), assistant(5)])
        assert await self._read(repository, last=3) == "e3 e4 e5"
        assert await self._read(repository, last=1) == "e4 e5"

    async def test_window_8_a_sub_agents_question_starts_no_turn(self, repository: AsyncSessionRepository) -> None:
        """User messages on a branch lie inside the turn (V-5)."""
        await begun(
            repository, [user(1), calls(2, "a")], [user(3, branch="a"), assistant(4, branch="a")], [results(5, "a")]
        )
        assert await self._read(repository, last=2) == "e1 e2 e3 e4 e5"
        assert await self._read(repository, branch="a", last=1) == "e1 e2 e3 e4 e5"

    async def test_window_9_user_messages_of_one_run_are_one_opening(self, repository: AsyncSessionRepository) -> None:
        """Of user messages in a row with one run id the first starts the turn; without one each does (V-5)."""
        await begun(
            repository,
            [user(1, run="r"), user(2, run="r"), user(3, branch="a"), own(4)],
            [user(5, run="r")],
            [assistant(6), user(7, run="r"), user(8, run="q"), user(9), user(10)],
        )
        starts = {6: "e1", 5: "e1", 7: "e7", 8: "e8", 9: "e9", 10: "e10"}
        for oldest, start in starts.items():
            assert (await self._read(repository, last=11 - oldest)).split()[0] == start, oldest

    async def test_window_10_the_first_user_message_sets_the_base_branch(
        self, repository: AsyncSessionRepository
    ) -> None:
        """Where the first user message is on a branch, turns start on that branch (V-5)."""
        await begun(
            repository,
            [system(1), user(2, branch="a"), assistant(3, branch="a")],
            [user(4), assistant(5, branch="a")],
            [user(6, branch="a"), user(7, branch="a.b"), assistant(8, branch="a")],
        )
        assert await self._read(repository, last=1) == "e6 e7 e8"
        assert await self._read(repository, last=4) == "e2 e3 e4 e5 e6 e7 e8"

    async def test_window_11_a_summary_starts_no_turn_of_the_log(self, repository: AsyncSessionRepository) -> None:
        """Over the log a compaction may lie inside a turn; its shadow prompt starts none (F-5)."""
        await begun(repository, [user(1), assistant(2)], summary(3, [(1, 2)]), [assistant(6)])
        assert await self._read(repository, last=1) == "e1 e2 e3 e4 e5 e6"
        assert await self._read(repository, last=2) == "e1 e2 e3 e4 e5 e6"

    async def test_window_12_a_summary_starts_a_turn_of_the_view(self, repository: AsyncSessionRepository) -> None:
        """Over the view the shadow prompt is a turn start, so that a summary is never halved (V-5, F-5)."""
        await begun(repository, turn(1), summary(5, [(4, 4)], pinned=[(1, 1)]), [user(8), assistant(9)])
        view = {1: "e8 e9", 2: "e8 e9", 3: "e6 e7 e4 e8 e9", 4: "e6 e7 e4 e8 e9", 6: "e1 e6 e7 e4 e8 e9"}
        assert {n: await self._read(repository, active_view=True, last=n) for n in view} == view

    async def test_window_13_a_turn_start_is_told_from_the_whole_log(self, repository: AsyncSessionRepository) -> None:
        """Whether an event starts a turn hangs on the log before it, in the view or not (V-5)."""
        await begun(
            repository,
            [user(1, run="r")],
            [user(2, run="r"), assistant(3), user(4, branch="a")],
            [boundary(5, [(2, 4)])],
            [user(6)],
        )
        assert await self._read(repository, active_view=True, last=2) == "e4 e6"
        assert await self._read(repository, active_view=True, last=1) == "e6"

    async def test_window_14_a_page_counts_from_the_oldest(self, repository: AsyncSessionRepository) -> None:
        """Pages are of exactly the size asked, from the oldest match, and never extended (F-4, F-5)."""
        await begun(repository, conversation(2))
        pages = [await self._read(repository, window=Window.page(number, 3)) for number in range(4)]
        assert pages == ["e1 e2 e3", "e4 e5 e6", "e7 e8", ""]
        kinds = {MessageType.ASSISTANT}
        assert await self._read(repository, message_types=kinds, page=1, page_size=2) == "e6 e8"

    async def test_window_15_a_page_past_the_end_is_empty(self, repository: AsyncSessionRepository) -> None:
        """However large its number or size (F-4)."""
        await begun(repository, conversation(1))
        for number, size in ((1, 4), (HUGE, 10), (HUGE, HUGE), (HUGE**2, 1)):
            assert await self._read(repository, window=Window.page(number, size)) == ""
            assert await self._read(repository, keyword="question", window=Window.page(number, size)) == ""
        assert await self._read(repository, window=Window.page(0, HUGE**2)) == "e1 e2 e3 e4"

    async def test_window_16_a_page_over_the_view_is_in_its_order(self, repository: AsyncSessionRepository) -> None:
        """Pages of a view are cut in the view's order (F-2, F-4)."""
        await begun(repository, turn(1), summary(5, [(3, 4)], pinned=[(1, 1)]), [user(8)])
        pages = [await self._read(repository, active_view=True, page=number, page_size=4) for number in (0, 1)]
        assert pages == ["e1 e6 e7 e3", "e4 e8"]

    async def _read(self, repository: AsyncSessionRepository, **criteria: object) -> str:
        return ids(await repository.events("s", EventFilter.all().replace(**criteria)))
