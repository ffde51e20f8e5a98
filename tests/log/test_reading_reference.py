"""``EventFilter.apply`` and every store against an oracle written from the clauses alone (F-1 to F-9, V-5, A-2)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.log import oracle
from tests.log.readers import Batches, Reader
from turnlog.errors import InvalidValueError
from turnlog.log.event_filter import EventFilter
from turnlog.log.events import EventType, SessionEvent
from turnlog.log.turns import turn_starts
from turnlog.log.windows import Window
from turnlog.testing.factories import assistant, summary, turn, user
from turnlog.testing.strategies import batches, events, filters, logs, stored, windows

# The readers keep no state between logs.
SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
FILTERS = st.lists(filters(), min_size=1, max_size=6)


def chosen(log: Sequence[SessionEvent], positions: Sequence[int]) -> list[SessionEvent]:
    return [log[position - 1] for position in positions]


@SHARED
@given(batches(), FILTERS)
def test_every_reader_gives_what_the_clauses_say(reader: Reader, log: Batches, asked: Sequence[EventFilter]) -> None:
    """F-9: row by row, for any log and any filter."""
    written, whole = reader.write(log), stored(log)
    for filter_ in asked:
        positions = oracle.expected(filter_, whole)
        event(f"found {min(len(positions), 5)}")
        assert written.read(filter_) == chosen(whole, positions)


@SHARED
@given(batches(), st.lists(windows(), min_size=1, max_size=4), st.booleans())
def test_windows_alone(reader: Reader, log: Batches, asked: Sequence[Window], active_view: bool) -> None:  # noqa: FBT001
    """F-5, over the log and over the view."""
    written, whole = reader.write(log), stored(log)
    for window in asked:
        filter_ = EventFilter(active_view=active_view, window=window)
        assert written.read(filter_) == chosen(whole, oracle.expected(filter_, whole))


@SHARED
@given(batches(), filters(), st.data())
def test_a_version_reads_as_the_log_was(
    reader: Reader, log: Batches, filter_: EventFilter, data: st.DataObject
) -> None:
    """A-3: a version inside a batch reads as the one before it."""
    ends = [sum(map(len, log[:count])) for count in range(len(log) + 1)]
    as_of = data.draw(st.integers(0, ends[-1]))
    whole = stored(log)[: max(end for end in ends if end <= as_of)]
    assert reader.write(log).read(filter_, as_of) == chosen(whole, oracle.expected(filter_, whole))


@SHARED
@given(st.lists(events(), min_size=1, max_size=4, unique_by=lambda made: made.id))
def test_any_event_comes_back_as_it_was(reader: Reader, log: list[SessionEvent]) -> None:
    """R-9: lossless, what ``==`` leaves out included."""
    whole = stored([log])
    found = reader.write([log]).read(EventFilter.all())
    assert found == whole
    assert [held(made) for made in found] == [held(made) for made in whole]


def held(made: SessionEvent) -> object:
    """All that an event holds, as text: ``1``, ``1.0`` and ``True`` differ; the order of keys does not matter."""
    message = made.message
    beside = None if message is None else (message.metadata, None if message.native is None else message.native.data)
    return json.dumps([made.metadata, made.payload, beside], sort_keys=True), message and message.native


@given(logs())
def test_turns_start_where_the_clauses_say(log: list[SessionEvent]) -> None:
    """V-5"""
    assert {place for place, start in enumerate(turn_starts(log), 1) if start} == oracle.log_starts(log)


@given(logs(), filters())
def test_positions_may_be_left_out(log: list[SessionEvent], filter_: EventFilter) -> None:
    """F-9: positions are the events' own, or 1, 2, 3… where all are None."""
    bare = [made.replace(position=None) for made in log]
    assert filter_.apply(bare) == filter_.apply(log)
    assert filter_.apply(iter(bare)) == filter_.apply(log)


@given(logs(), filters())
def test_a_single_event_matches_as_in_a_log(log: list[SessionEvent], filter_: EventFilter) -> None:
    assert [filter_.matches(made) for made in log] == [
        oracle.meets(filter_, made, place) for place, made in enumerate(log, 1)
    ]


@pytest.mark.parametrize("positions", [(1, None), (None, 2), (2, 1), (1, 1), (3, 3)])
def test_positions_that_make_no_log_are_refused(positions: tuple[int | None, ...]) -> None:
    log = [made.replace(position=position) for made, position in zip((user(1), assistant(2)), positions, strict=True)]
    with pytest.raises(InvalidValueError, match="rising positions"):
        EventFilter.all().apply(log)


def test_the_rest_of_a_log_can_be_filtered_too() -> None:
    rest = stored([turn(1), turn(5), turn(9)])[4:]
    assert [made.position for made in EventFilter.last(5).apply(rest)] == [5, 6, 7, 8, 9, 10, 11, 12]


@pytest.mark.parametrize(
    "filter_", [EventFilter.all(), EventFilter.active(), EventFilter.last(1), EventFilter(page_size=1)]
)
def test_an_empty_log_is_empty(reader: Reader, filter_: EventFilter) -> None:
    assert reader.write([]).read(filter_) == []


EXTREMES: tuple[EventFilter, ...] = (
    EventFilter(since=datetime.min.replace(tzinfo=UTC)),
    EventFilter(until=datetime.max.replace(tzinfo=UTC)),
    EventFilter(since=datetime.max.replace(tzinfo=UTC)),
    EventFilter(until=datetime.min.replace(tzinfo=UTC)),
    EventFilter(after=0),
    EventFilter(before=0),
    EventFilter(after=10**30),
    EventFilter(before=10**30),
    EventFilter(after=10**30, before=5),
    EventFilter(after=2, before=3),
    EventFilter(after=3, before=3),
    EventFilter.last(10**30),
    EventFilter.last(10**30, whole_turns=False),
    EventFilter(page=10**30, page_size=10**30),
    EventFilter(page=0, page_size=10**30),
    EventFilter(keyword="x" * 100_000),
    EventFilter(keywords=[f"term {n}" for n in range(2_000)]),
    EventFilter(branch=".".join("b" * 127), active_view=True),
    EventFilter(event_types={EventType.of(f"TEST.T{n}") for n in range(2_000)}),
)


@pytest.mark.parametrize("filter_", EXTREMES, ids=lambda made: str(made)[-60:])
def test_extremes_are_figures_like_any_other(reader: Reader, filter_: EventFilter) -> None:
    """No engine's limit on integers, parameters or times shows."""
    old, new = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    log = [turn(1), [user(5, timestamp=old), assistant(6, timestamp=new, branch="b")], summary(7, [(5, 6)])]
    whole = stored(log)
    assert reader.write(log).read(filter_) == chosen(whole, oracle.expected(filter_, whole))
