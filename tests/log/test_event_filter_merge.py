"""``EventFilter.merge`` (F-8)."""

from __future__ import annotations

import dataclasses
import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given

from turnlog.errors import InvalidValueError
from turnlog.log.event_filter import ANY_BRANCH, EventFilter, Match
from turnlog.log.events import EventType
from turnlog.log.messages import MessageType
from turnlog.log.windows import Window
from turnlog.testing.clocks import START
from turnlog.testing.factories import PROGRESS
from turnlog.testing.strategies import filters

SECOND = timedelta(seconds=1)

#: For each criterion two values; each case is one of them over the other.
REPLACED: tuple[tuple[str, Any, Any], ...] = (
    ("message_types", {MessageType.USER}, {MessageType.TOOL, MessageType.SYSTEM}),
    ("event_types", {PROGRESS}, {EventType.MESSAGE}),
    ("since", START, START - SECOND),
    ("until", START, START + SECOND),
    ("after", 3, 0),
    ("before", 9, 0),
    ("keyword", "alpha", "beta"),
    ("keywords", ("alpha", "beta"), ("gamma",)),
    ("pattern", re.compile("a"), re.compile("b")),
    ("branch", "a", "a.b"),
    ("branch", "a", None),
    ("branch", None, "a"),
    ("window", Window.last(50), Window.last(5)),
    ("window", Window.last(50), Window.last(50, whole_turns=False)),
    ("window", Window.last(50), Window.page(1, 5)),
    ("window", Window.page(1, 5), Window.last(50)),
    ("window", Window.page(1, 5), Window.page(0, 5)),
)


@pytest.mark.parametrize(("name", "one", "other"), REPLACED, ids=str)
def test_what_the_other_sets_replaces(name: str, one: Any, other: Any) -> None:
    first, second = EventFilter(**{name: one}), EventFilter(**{name: other})
    assert first.merge(second) == second
    assert second.merge(first) == first


@pytest.mark.parametrize(("name", "one", "_other"), REPLACED, ids=str)
def test_what_the_other_leaves_unset_stays(name: str, one: Any, _other: Any) -> None:
    made = EventFilter(**{name: one})
    assert made.merge(EventFilter()) == made
    assert EventFilter().merge(made) == made


@pytest.mark.parametrize("flag", ["active_view", "exclude_synthetic"])
@pytest.mark.parametrize("one", [True, False])
@pytest.mark.parametrize("other", [True, False])
def test_the_flags_are_ored(flag: str, *, one: bool, other: bool) -> None:
    merged = EventFilter().replace(**{flag: one}).merge(EventFilter().replace(**{flag: other}))
    assert getattr(merged, flag) is (one or other)


def test_keywords_and_match_are_one_criterion() -> None:
    both = EventFilter(keywords=["a", "b"], match=Match.ALL)
    either = EventFilter(keywords=["c"], match=Match.ANY)
    assert both.merge(either) == either
    assert either.merge(both) == both
    assert both.merge(EventFilter(match=Match.ANY)) == both
    assert both.merge(EventFilter(keyword="x")) == both.replace(keyword="x")


def test_one_keyword_and_several_are_two_criteria() -> None:
    merged = EventFilter(keyword="a").merge(EventFilter(keywords=["b"]))
    assert (merged.keyword, merged.keywords) == ("a", ("b",))


def test_a_blank_keyword_and_an_empty_set_are_unset() -> None:
    made = EventFilter(keyword="a", keywords=["b"], message_types={MessageType.USER}, event_types={PROGRESS})
    assert made.merge(EventFilter(keyword=" ", keywords=[" "], message_types=(), event_types=())) == made


def test_the_window_stays_and_the_view_comes_in() -> None:
    """The clause's own example: ``last(50).merge(active())``."""
    assert EventFilter.last(50).merge(EventFilter.active()) == EventFilter(
        active_view=True, event_types={EventType.MESSAGE}, window=Window.last(50)
    )


def test_root_alone_is_a_criterion_and_any_branch_is_none() -> None:
    assert EventFilter.for_branch("a").merge(EventFilter.for_branch(None)).branch is None
    assert EventFilter.for_branch(None).merge(EventFilter(branch=ANY_BRANCH)).branch is None


def test_a_merge_is_validated_again() -> None:
    with pytest.raises(InvalidValueError, match="is later than until"):
        EventFilter(since=START).merge(EventFilter(until=START - SECOND))


def test_a_merge_changes_neither_filter() -> None:
    one, other = EventFilter.last(50), EventFilter.active()
    one.merge(other)
    assert (one, other) == (EventFilter.last(50), EventFilter.active())


@given(filters(), filters())
def test_each_field_is_the_others_where_that_is_set(one: EventFilter, other: EventFilter) -> None:
    if (since := other.since or one.since) and (until := other.until or one.until) and since > until:
        with pytest.raises(InvalidValueError):
            one.merge(other)
        return
    merged, unset = one.merge(other), EventFilter()
    for field in dataclasses.fields(EventFilter):
        ours, theirs, nothing = (getattr(each, field.name) for each in (one, other, unset))
        expected: object
        if field.name == "match":
            expected = other.match if other.keywords else one.match
        elif isinstance(ours, bool):
            expected = ours or theirs
        else:
            expected = ours if theirs == nothing else theirs
        assert getattr(merged, field.name) == expected, field.name


@given(filters())
def test_a_filter_merged_with_itself_or_with_nothing_is_the_same(made: EventFilter) -> None:
    assert made.merge(made) == made
    assert made.merge(EventFilter()) == made
    assert EventFilter().merge(made).replace(match=made.match) == made
