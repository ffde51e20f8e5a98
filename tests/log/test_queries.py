"""``EventQuery``: literal recall (S-1)."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given

from turnlog.errors import InvalidValueError
from turnlog.log.event_filter import EventFilter, Match
from turnlog.log.events import EventType, SessionEvent
from turnlog.log.messages import MessageType
from turnlog.log.queries import DEFAULT_PAGE_SIZE, LONGEST_TERM, MOST_TERMS, EventQuery, SearchPage, search_page
from turnlog.log.windows import Window
from turnlog.testing.clocks import START
from turnlog.testing.factories import assistant, boundary, own, summary, user
from turnlog.testing.strategies import logs, queries

REFUSED: tuple[dict[str, Any], ...] = (
    {},
    {"terms": ()},
    {"match": Match.ALL},
    {"include_summaries": True},
    {"page": 0},
    {"after": 5},
    {"terms": "term"},
    {"terms": 5},
    {"terms": [1]},
    {"terms": [""]},
    {"terms": [" "]},
    {"terms": ["a", "\t"]},
    {"terms": ["x" * 201]},
    {"terms": ["x"] * 21},
    {"terms": ["a"], "match": "all"},
    {"terms": ["a"], "since": START.replace(tzinfo=None)},
    {"terms": ["a"], "until": "2026-01-01"},
    {"terms": ["a"], "since": START + timedelta(seconds=1), "until": START},
    {"terms": ["a"], "message_types": "user"},
    {"terms": ["a"], "message_types": ["user"]},
    {"terms": ["a"], "message_types": 5},
    {"terms": ["a"], "event_types": ["MESSAGE"]},
    {"event_types": [EventType.COMPACTION]},
    {"terms": ["a"], "page": -1},
    {"terms": ["a"], "page": True},
    {"terms": ["a"], "page_size": 0},
    {"terms": ["a"], "after": -1},
    {"terms": ["a"], "after": 1, "page": 1},
)


@pytest.mark.parametrize("fields", REFUSED, ids=lambda fields: str(fields)[:60])
def test_a_query_that_means_nothing_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError):
        EventQuery(**fields)


ACCEPTED: tuple[dict[str, Any], ...] = (
    {"terms": ["a"]},
    {"terms": ["x" * 200] * 20},
    {"since": START},
    {"until": START},
    {"message_types": [MessageType.USER]},
    {"event_types": [EventType.of("MY_APP.PROGRESS")]},
    {"terms": ["a"], "page": 10**18},
    {"terms": ["a"], "after": 0},
)


@pytest.mark.parametrize("fields", ACCEPTED, ids=lambda fields: str(fields)[:60])
def test_one_criterion_is_enough(fields: dict[str, Any]) -> None:
    """B122: a time is enough, without a word to search for."""
    made = EventQuery(**fields)
    assert made == EventQuery(**fields)
    assert hash(made) == hash(EventQuery(**fields))


def test_the_limits() -> None:
    assert (MOST_TERMS, LONGEST_TERM, DEFAULT_PAGE_SIZE) == (20, 200, 10)


def test_a_query_is_a_filter_over_the_whole_log() -> None:
    query = EventQuery(
        terms=("a", "b"),
        match=Match.ALL,
        since=START,
        until=START,
        message_types=frozenset({MessageType.USER}),
        after=7,
        page_size=5,
    )
    assert query.as_filter() == EventFilter(
        event_types={EventType.MESSAGE},
        message_types={MessageType.USER},
        exclude_synthetic=True,
        keywords=("a", "b"),
        match=Match.ALL,
        since=START,
        until=START,
        after=7,
        window=Window.page(0, 5),
    )
    assert EventQuery.keyword("a") == EventQuery(terms=("a",))


def found(log: list[SessionEvent], query: EventQuery) -> list[int | None]:
    return [made.position for made in query.as_filter().apply(log)]


LOG = [
    user(1, "Lisbon"),
    assistant(2, "LISBON it is"),
    own(3, {"note": "lisbon"}),
    *summary(4, [(2, 2)], text="we spoke of Lisbon"),
    user(7, "100% Lisbon"),
    boundary(8, []),
]


def test_covered_events_are_found_and_boundaries_never() -> None:
    assert found(LOG, EventQuery(terms=("lisbon",))) == [1, 2, 7]
    assert found(LOG, EventQuery(since=START)) == [1, 2, 7]


def test_summaries_are_found_only_when_asked_for() -> None:
    assert found(LOG, EventQuery(terms=("lisbon",), include_summaries=True)) == [1, 2, 6, 7]


def test_case_B111_terms_are_literals() -> None:  # noqa: N802 - the case's id
    assert found(LOG, EventQuery(terms=("%",))) == [7]
    assert found(LOG, EventQuery(terms=("_",))) == []
    assert found(LOG, EventQuery(terms=("it OR is",))) == []


def test_case_B122_a_time_without_a_word() -> None:  # noqa: N802 - the case's id
    tuesday = EventQuery(since=START + timedelta(seconds=2), until=START + timedelta(seconds=5))
    assert found(LOG, tuesday) == [2]


def test_own_events_are_found_by_their_type() -> None:
    assert found(LOG, EventQuery(event_types=[own(3).type])) == [3]
    assert found(LOG, EventQuery(event_types=[own(3).type, EventType.MESSAGE], since=START)) == [1, 2, 3, 7]
    assert found(LOG, EventQuery(terms=["lisbon"], event_types=[own(3).type])) == []


def test_any_and_all() -> None:
    assert found(LOG, EventQuery(terms=("100%", "it is"))) == [2, 7]
    assert found(LOG, EventQuery(terms=("100%", "it is"), match=Match.ALL)) == []
    assert found(LOG, EventQuery(terms=("100%", "lisbon"), match=Match.ALL)) == [7]


@given(logs(), queries())
def test_case_B108_a_walk_by_cursor_finds_every_hit_once(log: list[SessionEvent], query: EventQuery) -> None:  # noqa: N802
    fields: dict[str, Any] = {name: getattr(query, name) for name in query.__struct_fields__} | {"page": 0}
    first = EventQuery(**fields)
    every = first.as_filter().replace(window=Window.ALL).apply(log)
    seen: list[SessionEvent] = []
    cursor = first.after
    for _ in range(len(every) + 2):
        fields["after"] = cursor
        page = search_page(first, EventQuery(**fields).as_filter().apply(log))
        seen += page.events
        cursor = page.cursor
        if cursor is None:
            break
    assert cursor is None
    assert seen == every


def test_a_page_that_is_not_full_is_the_last() -> None:
    query = EventQuery(terms=("a",), page_size=2)
    one, two = user(1, position=1), user(2, position=2)
    assert search_page(query, []) == SearchPage((), None)
    assert search_page(query, [one]) == SearchPage((one,), None)
    assert search_page(query, [one, two]) == SearchPage((one, two), 2)


def test_times_are_kept_in_utc() -> None:
    local = START.astimezone(timezone(timedelta(hours=9)))
    made = EventQuery(since=local, until=local)
    assert made == EventQuery(since=START, until=START)
    assert made.since is not None
    assert made.until is not None
    assert made.since.tzinfo is made.until.tzinfo is UTC
