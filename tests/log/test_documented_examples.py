"""The examples of the filter's public documentation, older and newer generation, in Python's idiom, by every reader."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.log.readers import Log, Reader
from turnlog.errors import InvalidValueError
from turnlog.log.event_filter import EventFilter, Match
from turnlog.log.events import EventType, SessionEvent
from turnlog.log.messages import MessageType
from turnlog.log.windows import Window
from turnlog.testing.clocks import START
from turnlog.testing.factories import assistant, calls, own, results, summary, system, user

USER_AND_ASSISTANT = {MessageType.USER, MessageType.ASSISTANT}

#: U1 A1 U2 A2[tool call] T2[result] A2'
PICTURE = [
    user(1, "U1"),
    assistant(2, "A1"),
    user(3, "U2"),
    calls(4, "t", content="A2"),
    results(5, "t"),
    assistant(6, "A2'"),
]


@pytest.fixture
def picture(reader: Reader) -> Log:
    return reader.write([[made] for made in PICTURE])


class TestNewerGeneration:
    """Windows keep turns whole; the view; merging."""

    @pytest.mark.parametrize(
        ("n", "shown"),
        [
            (1, "U2 A2 T2 A2'"),
            (2, "U2 A2 T2 A2'"),  # extended from "T2 A2'" to the turn start
            (3, "U2 A2 T2 A2'"),
            (4, "U2 A2 T2 A2'"),
            (5, "U1 A1 U2 A2 T2 A2'"),
            (6, "U1 A1 U2 A2 T2 A2'"),
            (7, "U1 A1 U2 A2 T2 A2'"),  # larger than the log: the log
            (20, "U1 A1 U2 A2 T2 A2'"),
        ],
    )
    def test_the_picture_of_whole_turns(self, picture: Log, n: int, shown: str) -> None:
        names = [made.content.text or "T2" for made in picture.read(EventFilter.last(n))]
        assert " ".join(names) == shown

    def test_a_window_that_lands_in_the_preamble_is_the_plain_one(self, reader: Reader) -> None:
        log = reader.write([[system(1), assistant(2, "hello"), own(3)], [user(4), assistant(5)]])
        assert log.positions(EventFilter.last(3)) == [3, 4, 5]
        assert log.positions(EventFilter.last(4)) == [2, 3, 4, 5]
        assert log.positions(EventFilter.last(1)) == [4, 5]
        asked = reader.write([[system(1), assistant(2, "hello"), own(3)], [user(4)]])
        assert asked.positions(EventFilter.last(2)) == [3, 4]
        assert asked.positions(EventFilter(active_view=True, last=2)) == [3, 4]

    def test_a_filter_that_hides_the_user_messages_gives_the_plain_window(self, picture: Log) -> None:
        replies = {MessageType.ASSISTANT}
        assert picture.positions(EventFilter(message_types=replies, last=1)) == [6]
        assert picture.positions(EventFilter(message_types=replies, last=2)) == [4, 6]
        assert picture.positions(EventFilter(message_types=replies | {MessageType.TOOL}, last=2)) == [5, 6]

    def test_the_older_generations_exact_count(self, picture: Log) -> None:
        assert picture.positions(EventFilter.last(2, whole_turns=False)) == [5, 6]

    def test_all_is_every_event_boundaries_and_covered_ones_included(self, reader: Reader) -> None:
        log = reader.write([PICTURE, summary(7, [(3, 6)]), [own(10)], [user(11, "U3")]])
        assert log.positions(EventFilter.all()) == list(range(1, 12))

    def test_active_is_the_messages_of_the_view(self, reader: Reader) -> None:
        """Pinned events, summary and preserved events first, then everything appended since."""
        log = reader.write([[system(1)], PICTURE_FROM_2, summary(8, [(4, 7)], pinned=[(1, 1)]), [own(11)], [user(12)]])
        assert log.positions(EventFilter.active()) == [1, 9, 10, 4, 5, 6, 7, 12]
        assert log.positions(EventFilter(active_view=True)) == [1, 9, 10, 4, 5, 6, 7, 11, 12]

    def test_a_summary_is_never_cut_from_its_shadow_prompt(self, reader: Reader) -> None:
        log = reader.write([PICTURE, summary(7, [(3, 6)])])
        assert log.positions(EventFilter.active()) == [8, 9, 3, 4, 5, 6]
        assert log.positions(EventFilter.active().replace(last=4)) == [3, 4, 5, 6]
        assert log.positions(EventFilter.active().replace(last=5)) == [8, 9, 3, 4, 5, 6]

    def test_without_a_boundary_the_view_is_the_log_turns_included(self, picture: Log) -> None:
        assert picture.positions(EventFilter.active()) == [1, 2, 3, 4, 5, 6]
        assert picture.positions(EventFilter.active().replace(last=2)) == [3, 4, 5, 6]
        assert picture.positions(EventFilter.active().replace(last=5)) == [1, 2, 3, 4, 5, 6]

    def test_own_types_are_kept_by_their_name(self, reader: Reader) -> None:
        log = reader.write([[user(1), own(2, type=EventType.of("MY_APP.PROGRESS")), own(3), assistant(4)]])
        assert log.positions(EventFilter(event_types={EventType.of("MY_APP.PROGRESS")})) == [2]
        assert log.positions(EventFilter(event_types={EventType.MESSAGE})) == [1, 4]
        assert log.positions(EventFilter(event_types=set())) == [1, 2, 3, 4]

    def test_the_builders_filter(self, reader: Reader) -> None:
        log = reader.write([PICTURE, summary(7, [(3, 6)]), [own(10), user(11, "U3"), assistant(12, "A3")]])
        filter_ = EventFilter(
            active_view=True,
            message_types=USER_AND_ASSISTANT,
            event_types={EventType.MESSAGE},
            exclude_synthetic=True,
            last=50,
        )
        assert log.positions(filter_) == [3, 4, 6, 11, 12]
        again = filter_.replace(last=3)
        assert again.window == Window.last(3)
        assert log.positions(again) == [3, 4, 6, 11, 12]
        assert log.positions(filter_.replace(last=2)) == [11, 12]

    def test_n_must_be_positive(self) -> None:
        for n in (0, -1):
            with pytest.raises(InvalidValueError):
                EventFilter.last(n)
            with pytest.raises(InvalidValueError):
                Window.last(n)

    def test_merging_takes_the_requests_window(self) -> None:
        assert EventFilter.last(50).merge(EventFilter.last(5)).window == Window.last(5)
        assert EventFilter.last(50).merge(EventFilter.all()).window == Window.last(50)

    def test_merging_the_view_in_keeps_the_window(self) -> None:
        view = EventFilter.last(50).merge(EventFilter.active())
        assert view.window == Window.last(50)
        assert view.active_view
        assert view.event_types == {EventType.MESSAGE}

    def test_a_read_leaves_the_log_as_it_is(self, picture: Log) -> None:
        picture.read(EventFilter(message_types={MessageType.TOOL}, last=1))
        assert picture.positions(EventFilter.all()) == [1, 2, 3, 4, 5, 6]


PICTURE_FROM_2 = [made.replace(id=f"e{place}") for place, made in enumerate(PICTURE, 2)]


def spoken(count: int) -> list[SessionEvent]:
    """Questions and answers, every third of them about Spring."""
    return [
        (user if place % 2 else assistant)(
            place, f"about SPRING ai, {place}" if place % 3 == 0 else "about the weather"
        )
        for place in range(1, count + 1)
    ]


class TestOlderGeneration:
    """Time range, keyword, paging, branch."""

    def test_the_newest_events(self, reader: Reader) -> None:
        log = reader.write([spoken(30)])
        assert log.positions(EventFilter.last(20)) == list(range(11, 31))
        assert log.positions(EventFilter.last(19)) == list(range(11, 31))
        assert log.positions(EventFilter.last(19, whole_turns=False)) == list(range(12, 31))

    def test_real_events_only(self, reader: Reader) -> None:
        log = reader.write([PICTURE, summary(7, [(3, 6)]), [own(10)]])
        assert log.positions(EventFilter.real_only()) == [1, 2, 3, 4, 5, 6]

    def test_a_keyword_by_pages(self, reader: Reader) -> None:
        log = reader.write([spoken(60)])
        every = list(range(3, 61, 3))
        assert log.positions(EventFilter.keyword_search("Spring AI")) == every[:10]
        assert log.positions(EventFilter.keyword_search("Spring AI", 1, 5)) == every[5:10]
        assert log.positions(EventFilter.keyword_search("Spring AI", 3, 5)) == every[15:]
        assert log.positions(EventFilter.keyword_search("Spring AI", 4, 5)) == []
        assert log.positions(EventFilter.keyword_search("Spring AI", 10**18, 10**18)) == []
        assert log.positions(EventFilter(keyword="Spring AI", page_size=7)) == every[:7]

    def test_several_keywords_and_a_pattern(self, reader: Reader) -> None:
        log = reader.write([[user(1, "alpha beta"), assistant(2, "BETA"), user(3, "gamma 42")]])
        assert log.positions(EventFilter.keywords_search(["Alpha", "beta"])) == [1, 2]
        assert log.positions(EventFilter.keywords_search(["Alpha", "beta"], Match.ALL)) == [1]
        assert log.positions(EventFilter.pattern_search(re.compile(r"\d\d$"))) == [3]

    def test_a_branch_sees_itself_and_its_ancestors(self, reader: Reader) -> None:
        branches = (None, "orch", "orch.researcher", "orch.writer", "orch.researcher.deep", "orchestra")
        log = reader.write([[user(place, branch=branch) for place, branch in enumerate(branches, 1)]])
        assert log.positions(EventFilter.for_branch("orch.researcher")) == [1, 2, 3]
        assert log.positions(EventFilter.for_branch("orch")) == [1, 2]
        assert log.positions(EventFilter.for_branch(None)) == [1]

    def test_from_and_to_are_inclusive(self, reader: Reader) -> None:
        log = reader.write([spoken(6)])  # event n is n seconds old
        filter_ = EventFilter(since=START + timedelta(seconds=2), until=START + timedelta(seconds=4))
        assert log.positions(filter_) == [2, 3, 4]

    def test_the_builders_filter(self, reader: Reader) -> None:
        other = user(13, "spring ai on another branch", branch="orch.writer")
        late = user(14, "spring ai, too late", timestamp=datetime(2027, 1, 1, tzinfo=UTC))
        log = reader.write([spoken(12), [other, late]])
        filter_ = EventFilter(
            since=datetime(2026, 1, 1, tzinfo=UTC),
            until=datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC),
            message_types=USER_AND_ASSISTANT,
            exclude_synthetic=True,
            last=50,
            keyword="Spring AI",
            branch="orch.researcher",
        )
        assert log.positions(filter_) == [3, 6, 9, 12]

    @pytest.mark.parametrize("fields", [{"last": 5, "page_size": 5}, {"page": 1}, {"page_size": 0}, {"last": 0}])
    def test_constraints(self, fields: dict[str, Any]) -> None:
        with pytest.raises(ValueError):  # noqa: PT011 - any of ours inherits it
            EventFilter(**fields)

    def test_normalisation(self) -> None:
        assert EventFilter(page_size=5).window == Window.page(0, 5)
        assert EventFilter(keyword="  ").keyword is None
        assert EventFilter(message_types=set()) == EventFilter()

    def test_merging(self) -> None:
        assert EventFilter.last(50).merge(EventFilter.last(5)).window == Window.last(5)
        assert EventFilter.real_only().merge(EventFilter(keyword="a")).exclude_synthetic
        assert EventFilter(keyword="a").merge(EventFilter.real_only()).keyword == "a"
