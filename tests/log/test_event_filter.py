"""``EventFilter``: its fields, shortcuts and rules (F-1, F-3, F-4)."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given

from tests.log.untyped import untyped
from turnlog.errors import InvalidValueError
from turnlog.log.event_filter import ANY_BRANCH, EventFilter, Match
from turnlog.log.events import EventType, SessionEvent
from turnlog.log.messages import MessageType
from turnlog.log.windows import Window
from turnlog.testing.clocks import START
from turnlog.testing.factories import PROGRESS, assistant, boundary, own, summary, user
from turnlog.testing.strategies import filters

SECOND = timedelta(seconds=1)
SHADOW, TOLD = summary(7)[1:]


def test_unset_restricts_nothing() -> None:
    """F-1: the defaults, and every way to set nothing."""
    nothing = EventFilter()
    assert nothing == EventFilter.all()
    assert nothing == EventFilter(
        active_view=False,
        message_types=[],
        event_types=set(),
        exclude_synthetic=False,
        since=None,
        until=None,
        after=None,
        before=None,
        keyword="",
        keywords=(),
        pattern=None,
        branch=ANY_BRANCH,
        window=Window.ALL,
    )
    assert nothing.branch is ANY_BRANCH
    assert nothing.match is Match.ANY
    for made in (user(1), own(2), boundary(3, ()), SHADOW, user(4, branch="a.b")):
        assert nothing.matches(made)


def test_shortcuts() -> None:
    """F-3"""
    message = {EventType.MESSAGE}
    pattern = re.compile("a")
    assert EventFilter.all() == EventFilter()
    assert EventFilter.active() == EventFilter(active_view=True, event_types=message)
    assert EventFilter.last(20) == EventFilter(window=Window.last(20))
    assert EventFilter.last(20, whole_turns=False) == EventFilter(window=Window.last(20, whole_turns=False))
    assert EventFilter.last(20, False) == EventFilter.last(20, whole_turns=False)
    assert EventFilter.real_only() == EventFilter(event_types=message, exclude_synthetic=True)
    assert EventFilter.keyword_search("a") == EventFilter(keyword="a", window=Window.page(0, 10))
    assert EventFilter.keyword_search("a", 1, 5) == EventFilter(keyword="a", window=Window.page(1, 5))
    assert EventFilter.keyword_search("a", page=1, page_size=5) == EventFilter.keyword_search("a", 1, 5)
    assert EventFilter.keywords_search(["a", "b"]) == EventFilter(keywords=("a", "b"), match=Match.ANY)
    assert EventFilter.keywords_search(["a"], Match.ALL) == EventFilter(keywords=("a",), match=Match.ALL)
    assert EventFilter.pattern_search(pattern) == EventFilter(pattern=pattern)
    assert EventFilter.for_branch("a.b") == EventFilter(branch="a.b")
    assert EventFilter.for_branch(None) == EventFilter(branch=None) != EventFilter()


REFUSED: tuple[dict[str, Any], ...] = (
    {"active_view": 1},
    {"active_view": None},
    {"exclude_synthetic": "yes"},
    {"message_types": "user"},
    {"message_types": ["user"]},
    {"message_types": MessageType.USER},
    {"message_types": [EventType.MESSAGE]},
    {"event_types": "MESSAGE"},
    {"event_types": ["MESSAGE"]},
    {"event_types": EventType.MESSAGE},
    {"since": "2026-01-01"},
    {"since": START.replace(tzinfo=None)},
    {"until": START.replace(tzinfo=None)},
    {"until": 5},
    {"after": -1},
    {"after": True},
    {"before": -1},
    {"before": 1.5},
    {"keyword": 1},
    {"keyword": b"a"},
    {"keywords": "abc"},
    {"keywords": [1]},
    {"keywords": 5},
    {"match": "any"},
    {"match": None},
    {"pattern": "a"},
    {"pattern": re.compile(b"a")},
    {"branch": ""},
    {"branch": "a..b"},
    {"branch": "a\n"},
    {"branch": 1},
    {"window": 5},
    {"window": None},
    {"last": 0},
    {"last": -1},
    {"last": True},
    {"last": "5"},
    {"last": 1.0},
    {"last": 5, "whole_turns": 1},
    {"page": -1, "page_size": 5},
    {"page": 0, "page_size": 0},
    {"page_size": 0},
    {"page_size": -5},
    {"page": True, "page_size": 5},
)


@pytest.mark.parametrize("fields", REFUSED, ids=str)
def test_a_value_that_means_nothing_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError) as caught:
        EventFilter(**fields)
    assert isinstance(caught.value, ValueError)


CONFLICTS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"last": 5, "page_size": 5}, "last and page_size exclude each other"),
    ({"last": 5, "page": 0}, "last and page_size exclude each other"),
    ({"last": 5, "page": 0, "page_size": 5}, "last and page_size exclude each other"),
    ({"page": 1}, "page needs page_size"),
    ({"page": 0}, "page needs page_size"),
    ({"whole_turns": True}, "whole_turns goes with last"),
    ({"whole_turns": False, "page_size": 5}, "whole_turns goes with last"),
    ({"last": 5, "window": Window.last(5)}, "not both"),
    ({"page_size": 5, "window": Window.page(0, 5)}, "not both"),
    ({"page": 1, "page_size": 5, "window": Window.last(5)}, "not both"),
    ({"whole_turns": True, "window": Window.last(5)}, "not both"),
    ({"since": START + SECOND, "until": START}, "is later than until"),
)


@pytest.mark.parametrize(("fields", "reason"), CONFLICTS, ids=str)
def test_fields_that_contradict_each_other_are_refused(fields: dict[str, Any], reason: str) -> None:
    """F-1, F-4"""
    with pytest.raises(InvalidValueError, match=reason):
        EventFilter(**fields)


def test_shorthands_of_the_window() -> None:
    """F-4: ``page_size`` alone is page 0."""
    assert EventFilter(last=5).window == Window.last(5)
    assert EventFilter(last=5, whole_turns=False).window == Window.last(5, whole_turns=False)
    assert EventFilter(last=5, whole_turns=True) == EventFilter(last=5)
    assert EventFilter(page=2, page_size=5).window == Window.page(2, 5)
    assert EventFilter(page_size=5).window == Window.page(0, 5)
    assert EventFilter(page=10**18, page_size=1).window == Window.page(10**18, 1)


@pytest.mark.parametrize("blank", ["", " ", "\t\n", "\u3000", "\u2028", None])
def test_a_blank_keyword_is_unset(blank: str | None) -> None:
    assert EventFilter(keyword=blank) == EventFilter()
    assert EventFilter(keywords=[untyped(blank)]) == EventFilter()
    assert EventFilter(keywords=["a", untyped(blank)]).keywords == ("a",)


def test_a_keyword_is_kept_as_written() -> None:
    assert EventFilter(keyword=" Spring AI ").keyword == " Spring AI "


def test_any_collection_of_types_is_a_set() -> None:
    kinds = (MessageType.USER, MessageType.USER, MessageType.TOOL)
    assert EventFilter(message_types=kinds).message_types == frozenset(kinds)
    assert EventFilter(message_types=list(kinds)) == EventFilter(message_types=set(kinds))
    assert EventFilter(event_types=[PROGRESS]).event_types == {EventType.of("TEST.PROGRESS")}


def test_equal_times_are_a_range() -> None:
    made = EventFilter(since=START, until=START.astimezone(timezone(timedelta(hours=3))))
    assert made.until == START
    assert made.until is not None
    assert made.until.tzinfo is UTC


def test_filters_are_frozen_hashable_and_comparable() -> None:
    """F-1"""
    made = EventFilter(message_types={MessageType.USER}, keyword="a", pattern=re.compile("x"), last=5)
    same = EventFilter(message_types=[MessageType.USER], keyword="a", pattern=re.compile("x"), last=5)
    assert made == same
    assert hash(made) == hash(same)
    assert len({made, same, EventFilter()}) == 2
    assert made != untyped("filter")
    with pytest.raises(AttributeError):
        untyped(made).keyword = "b"
    assert copy.copy(made) == copy.deepcopy(made) == pickle.loads(pickle.dumps(made)) == made  # noqa: S301 - our own


def test_replace_is_a_changed_copy_validated_again() -> None:
    made = EventFilter.active().replace(last=50)
    assert made == EventFilter(active_view=True, event_types={EventType.MESSAGE}, last=50)
    assert made.replace(last=10).window == Window.last(10)
    assert made.replace(last=10, whole_turns=False).window == Window.last(10, whole_turns=False)
    assert made.replace(page=1, page_size=5).window == Window.page(1, 5)
    assert made.replace(page_size=5).window == Window.page(0, 5)
    assert made.replace(window=Window.ALL).window.is_all
    assert made.replace(keyword="a").window == Window.last(50)
    assert made.replace(event_types=()).event_types == frozenset()
    assert made.replace() == made
    assert made.window == Window.last(50)
    with pytest.raises(InvalidValueError, match="is later than until"):
        EventFilter(since=START).replace(until=START - SECOND)
    with pytest.raises(InvalidValueError, match="not both"):
        made.replace(last=5, window=Window.last(7))
    with pytest.raises(InvalidValueError, match="page needs page_size"):
        EventFilter(page=0, page_size=5).replace(page=2)
    with pytest.raises(TypeError):
        made.replace(keywrd="a")


def test_case_B112_an_unknown_criterion_is_an_error_never_a_wider_read() -> None:  # noqa: N802 - the case's id
    with pytest.raises(TypeError, match="tenant"):
        EventFilter(**untyped({"tenant": "acme"}))


@given(filters())
def test_a_filter_equals_its_rebuilt_self(made: EventFilter) -> None:
    assert made.replace() == made
    assert hash(made.replace()) == hash(made)


APPLIES: tuple[Callable[[list[SessionEvent]], object], ...] = (
    EventFilter(active_view=True).apply,
    EventFilter.last(2).apply,
    EventFilter.keyword_search("question").apply,
)


@pytest.mark.parametrize("apply", APPLIES)
def test_a_filter_changes_no_log(apply: Callable[[list[SessionEvent]], object]) -> None:
    log = [user(1), assistant(2), *summary(3, [(1, 2)]), user(6)]
    kept = [made.replace() for made in log]
    apply(log)
    assert log == kept
    assert [made.position for made in log] == [None] * 6


def test_a_time_without_a_zone_names_the_field() -> None:
    with pytest.raises(InvalidValueError, match="since 2026-01-01T00:00:00 is naive"):
        EventFilter(since=START.replace(tzinfo=None))
    assert EventFilter(since=datetime(2026, 1, 1, tzinfo=UTC)).since == START
