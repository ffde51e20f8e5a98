"""TALLY: running sums over the view (C-9)."""

from __future__ import annotations

from turnlog.log.event_filter import EventFilter
from turnlog.log.events import SessionEvent
from turnlog.log.messages import MediaPart
from turnlog.log.tally import tally_of
from turnlog.log.tokens import EstimatedTokens, TokenCounter
from turnlog.storage.protocol import AsyncSessionRepository
from turnlog.testing.contract._async.setting import begun
from turnlog.testing.factories import assistant, boundary, own, session, summary, turn, user

VIEW = EventFilter(active_view=True)


class Words:
    """A counter that differs from every other: one token a word."""

    name = "test words"

    def count(self, text: str) -> int:
        """How many words the text has."""
        return len(text.split())


def log() -> list[list[SessionEvent]]:
    """Turns on a base branch, a sub-agent, an image, own types, two summaries and a clear."""
    return [
        turn(1, branch="a"),
        [user(5, "a long question on another branch", branch="a.b"), own(6, branch="a")],
        [user(7, (MediaPart(data=b"x"),), branch="a"), assistant(8, "seen", branch="a")],
        summary(9, [(7, 8)], branch="a"),
        turn(12, branch="a"),
        [boundary(16, [], strategy="clear")],
        [user(17, "again", branch="a"), user(18, branch=None)],
        summary(19, [(17, 18)], pinned=[(12, 12)], branch="a"),
    ]


class Tallying:
    """The sums that triggers go by."""

    async def test_tally_1_sums_the_view(self, repository: AsyncSessionRepository) -> None:
        """Turns and tokens are those of the newest view on the base branch, by the counter asked for (C-9)."""
        await begun(repository)
        counters: list[TokenCounter] = [Words(), EstimatedTokens()]
        for batch in log():
            await repository.append("s", batch)
            events = await repository.events("s")
            for counter in counters:
                told = await repository.tally("s", counter)
                assert told is not None
                assert told == tally_of(told.log, events, VIEW.apply(events), counter)

    async def test_tally_2_goes_by_the_stores_counter(self, repository: AsyncSessionRepository) -> None:
        """Without a counter it is the store's own (C-9)."""
        await begun(repository, *log())
        assert await repository.tally("s") == await repository.tally("s", repository.token_counter)

    async def test_tally_3_is_none_for_an_unknown_session(self, repository: AsyncSessionRepository) -> None:
        """An unknown session has no sums; an empty one has sums of nothing (R-5)."""
        assert await repository.tally("s") is None
        await repository.create(session())
        told = await repository.tally("s")
        assert told is not None
        assert (told.version, told.turns, told.tokens) == (0, 0, 0)

    async def test_tally_4_goes_on_from_an_earlier_one(self, repository: AsyncSessionRepository) -> None:
        """``known`` makes no difference to the answer, whatever was appended since (C-9)."""
        await begun(repository)
        known = [await repository.tally("s", Words())]
        for batch in log():
            await repository.append("s", batch)
            plain = await repository.tally("s", Words())
            for earlier in known:
                assert await repository.tally("s", Words(), earlier) == plain
            known.append(plain)

    async def test_tally_5_never_goes_on_from_another_log(self, repository: AsyncSessionRepository) -> None:
        """The sums of a deleted session are not carried on in a new one of its id (C-9)."""
        await begun(repository, turn(1))
        old = await repository.tally("s", Words())
        await repository.delete("s")
        await begun(repository, [user(1, "x")])
        for batch in ([assistant(2, "y"), user(3), user(4)], [user(5)]):
            await repository.append("s", batch)
            new = await repository.tally("s", Words(), old)
            assert new is not None
            assert new == await repository.tally("s", Words())
            assert (new.version, new.turns) == (new.version, new.version - 1)
