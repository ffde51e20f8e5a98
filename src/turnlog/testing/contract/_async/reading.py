"""READ, COUNT, FIND-EVENTS, ITER, AS-OF: getting events back, now and as they were."""

from __future__ import annotations

import pytest

from turnlog.errors import VersionOutOfRangeError
from turnlog.log.event_filter import EventFilter
from turnlog.log.events import SessionEvent
from turnlog.log.queries import EventQuery
from turnlog.log.windows import Window
from turnlog.storage.protocol import AsyncSessionRepository
from turnlog.testing.contract._async.setting import begun, drained
from turnlog.testing.contract.exactness import exactly, ids
from turnlog.testing.factories import assistant, boundary, conversation, own, session, summary, turn, user

#: Reads of every kind; what each of them must give is asked elsewhere.
FILTERS = (
    EventFilter.all(),
    EventFilter.active(),
    EventFilter(active_view=True),
    EventFilter.last(2),
    EventFilter.last(2, whole_turns=False),
    EventFilter.active().replace(last=3),
    EventFilter.real_only(),
    EventFilter(keyword="QUESTION", window=Window.page(1, 2)),
    EventFilter(after=2, before=9),
    EventFilter.for_branch("a"),
    EventFilter(keyword="nowhere"),
)


class Reading:
    """Events come back as they were stored, in order, from their own session alone."""

    async def test_read_1_an_unknown_session_has_no_events(self, repository: AsyncSessionRepository) -> None:
        """Reading an unknown session gives nothing, and the version 0 (R-5)."""
        await begun(repository, conversation(1))
        for filter_ in FILTERS:
            assert await repository.events("unknown", filter_) == []
            assert await repository.count("unknown", filter_) == 0
            assert await drained(repository.iter_events("unknown", filter_)) == []
        assert await repository.version("unknown") == 0
        assert await drained(repository.iter_batches("unknown")) == []
        assert await repository.find_events("unknown", event_ids=["e1"], run_id=None) == []
        assert (await repository.search("unknown", EventQuery.keyword("question"))).events == ()

    async def test_read_2_shows_no_event_of_another_session(self, repository: AsyncSessionRepository) -> None:
        """No read of one session shows an event of another (CASE B116, B118, B119)."""
        await begun(repository, turn(1, metadata={"turnlog.run_id": "r"}))
        other = turn(1, session_id="t", metadata={"turnlog.run_id": "r"})
        await begun(repository, other, [boundary(5, [], session_id="t")], of=session("t"))
        for filter_ in FILTERS:
            assert {made.session_id for made in await repository.events("s", filter_)} <= {"s"}
        assert ids(await repository.events("s", EventFilter.active())) == "e1 e2 e3 e4"
        assert {made.session_id for made in await repository.find_events("s", run_id="r")} == {"s"}
        assert {made.session_id for made in await repository.find_events("s", event_ids=["e1"])} == {"s"}
        hits = await repository.search("s", EventQuery.keyword("question"))
        assert [made.session_id for made in hits.events] == ["s"]

    async def test_read_3_sees_what_was_acknowledged(self, repository: AsyncSessionRepository) -> None:
        """A read sees every append that was acknowledged before it began, at once."""
        await repository.create(session())
        for n in range(1, 20):
            await repository.append("s", [user(n)])
            assert await repository.version("s") == n
            assert len(await repository.events("s")) == n
            assert ids(await repository.events("s", EventFilter.last(1))) == f"e{n}"
            assert await repository.count("s") == n
            assert ids(await repository.find_events("s", event_ids=[f"e{n}"])) == f"e{n}"

    async def test_count_1_is_the_number_of_events_read(self, repository: AsyncSessionRepository) -> None:
        """``count`` is the length of what ``events`` gives, for every filter and version (R-1)."""
        await begun(repository, *self._log())
        for filter_ in FILTERS:
            for as_of in (None, 4, 5):
                found = await repository.events("s", filter_, as_of=as_of)
                assert await repository.count("s", filter_, as_of=as_of) == len(found), filter_

    async def test_findevents_1_gives_named_events_in_log_order(self, repository: AsyncSessionRepository) -> None:
        """``find_events`` gives the events with these ids in log order, and leaves unknown ids out (R-1)."""
        log = await begun(repository, *self._log())
        found = await repository.find_events("s", event_ids=["e6", "e1", "unknown", "E4", "e3", "e1"])
        assert exactly(found) == exactly([log[0], log[2], log[5]])
        assert await repository.find_events("s", event_ids=["unknown"]) == []
        assert await repository.find_events("s", event_ids=[]) == []

    async def test_findevents_2_gives_the_events_of_a_run(self, repository: AsyncSessionRepository) -> None:
        """With ``run_id`` it gives the events of that run in log order, own types too (H-8)."""
        await begun(
            repository,
            [user(1, run="r"), assistant(2, run="r")],
            [user(3, run="R"), user(4)],
            [own(5, run="r"), own(6)],
        )
        assert ids(await repository.find_events("s", run_id="r")) == "e1 e2 e5"
        assert await repository.find_events("s", run_id="q") == []

    async def test_iter_1_gives_the_same_events_in_small_lists(self, repository: AsyncSessionRepository) -> None:
        """``iter_events`` gives what ``events`` does, in lists of at most ``batch_size`` and never empty (R-1)."""
        await begun(repository, *self._log())
        for filter_ in FILTERS:
            for as_of in (None, 5):
                whole = await repository.events("s", filter_, as_of=as_of)
                for size in (1, 2, 500):
                    lists = await drained(repository.iter_events("s", filter_, as_of=as_of, batch_size=size))
                    assert exactly([made for found in lists for made in found]) == exactly(whole), filter_
                    assert all(1 <= len(found) <= size for found in lists)

    async def test_iter_2_does_not_see_later_appends(self, repository: AsyncSessionRepository) -> None:
        """An iteration that has begun gives the log as it was then, whatever is appended meanwhile (R-1)."""
        await begun(repository, *self._log())
        for filter_ in (EventFilter.active(), EventFilter.last(3), EventFilter.all()):
            expected = await repository.events("s", filter_)
            found = ""
            number = await repository.version("s")
            async for some in repository.iter_events("s", filter_, batch_size=1):
                found += f" {ids(some)}"
                number += 1
                await repository.append("s", [boundary(number, [], strategy="clear")])
            assert found.strip() == ids(expected)

    async def test_iter_3_gives_one_list_for_each_append(self, repository: AsyncSessionRepository) -> None:
        """``iter_batches`` gives the whole log, one list for each append, replays and refusals apart (R-1)."""
        await begun(repository, *self._log())
        await repository.append("s", [user(1)])
        lists = await drained(repository.iter_batches("s"))
        assert [ids(found) for found in lists] == [ids(batch) for batch in self._log()]
        assert exactly([made for found in lists for made in found]) == exactly(await repository.events("s"))

    async def test_asof_1_reads_the_log_as_it_was(self, repository: AsyncSessionRepository) -> None:
        """``as_of`` gives what the same read gave at that version, for every filter (A-3)."""
        await repository.create(session())
        then: dict[tuple[int, EventFilter], str] = {(0, filter_): "" for filter_ in FILTERS}
        for batch in self._log():
            version = (await repository.append("s", batch)).version
            for filter_ in FILTERS:
                then[version, filter_] = ids(await repository.events("s", filter_))
        for (version, filter_), expected in then.items():
            assert ids(await repository.events("s", filter_, as_of=version)) == expected, (version, filter_)

    async def test_asof_2_a_version_inside_a_batch_reads_as_the_one_before_it(
        self, repository: AsyncSessionRepository
    ) -> None:
        """No read shows a part of a batch, of a compaction's neither (A-3, CASE B35)."""
        await begun(repository, [user(1), assistant(2)], [user(3)], summary(4, [(3, 3)]), [user(7)])
        for as_of, version in ((1, 0), (4, 3), (5, 3)):
            for filter_ in FILTERS:
                found = await repository.events("s", filter_, as_of=as_of)
                assert ids(found) == ids(await repository.events("s", filter_, as_of=version))
        lists = await drained(repository.iter_batches("s", as_of=5))
        assert [ids(found) for found in lists] == ["e1 e2", "e3"]

    async def test_asof_3_beyond_the_log_raises(self, repository: AsyncSessionRepository) -> None:
        """A version that the log has not reached, or below 0, is an error that names the newest (A-3)."""
        await begun(repository, [user(1), assistant(2)])
        for as_of in (3, -1, 10**18):
            with pytest.raises(VersionOutOfRangeError) as caught:
                await repository.events("s", as_of=as_of)
            assert (caught.value.version, caught.value.newest) == (as_of, 2)
            with pytest.raises(VersionOutOfRangeError):
                await repository.count("s", as_of=as_of)
            with pytest.raises(VersionOutOfRangeError):
                await drained(repository.iter_events("s", as_of=as_of))
            with pytest.raises(VersionOutOfRangeError):
                await drained(repository.iter_batches("s", as_of=as_of))

    def _log(self) -> list[list[SessionEvent]]:
        return [
            [user(1)],
            [assistant(2, branch="a"), own(3)],
            [user(4, "another question"), assistant(5)],
            summary(6, [(4, 5)]),
            [user(9, branch="b"), user(10)],
            [assistant(11)],
        ]
