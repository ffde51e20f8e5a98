"""The active view as position ranges (A-1 to A-4), and what a boundary's payload may say (A-3)."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.errors import UnreadableDataError
from turnlog.log.event_filter import EventFilter
from turnlog.log.events import SessionEvent
from turnlog.log.view import (
    MOST_RANGES,
    Boundary,
    BoundaryError,
    Range,
    positions_of,
    ranges_of,
    read_boundary,
    segments,
    without,
)
from turnlog.testing.factories import assistant, boundary, calls, own, results, summary, system, turn, user
from turnlog.testing.strategies import logs, stored

FULL = Boundary(
    view=((1, 2), (12, 13), (8, 10)),
    end=13,
    strategy="summary",
    covered=(3, 7),
    tokens_before=1000,
    tokens_after=200,
    model="m",
    usage={"input_tokens": 5},
)


def payload(**changes: Any) -> dict[str, Any]:
    """A payload that is good at position 11, with changes; None leaves a key out."""
    made = {"view": [[1, 2]], "end": 11, "strategy": "window"} | changes
    return {name: value for name, value in made.items() if value is not None}


@pytest.mark.parametrize("made", [FULL, Boundary(view=(), end=11, strategy="clear")])
def test_case_B44_a_payload_reads_back_as_the_same_value(made: Boundary) -> None:  # noqa: N802 - the case's id
    kept: dict[str, Any] = json.loads(json.dumps(made.payload()))
    assert read_boundary(kept, 11) == made


def test_a_payload_leaves_out_what_is_not_known() -> None:
    assert Boundary(view=((1, 2),), end=3, strategy="window").payload() == {
        "view": [[1, 2]],
        "end": 3,
        "strategy": "window",
    }


@pytest.mark.parametrize(
    "view", [[], [[1, 1]], [[1, 10]], [[12, 13], [1, 10]], [[10, 10], [9, 9], [1, 8]], [[12, 12], [13, 13]]]
)
def test_a_view_may_name_any_positions_of_the_log_in_any_order(view: list[list[int]]) -> None:
    assert read_boundary(payload(view=view, end=13), 11).view == tuple((low, high) for low, high in view)


BAD_VIEWS: tuple[object, ...] = (
    None,
    "1-2",
    {"1": 2},
    [1, 2],
    [[1]],
    [[1, 2, 3]],
    [["1", "2"]],
    [[1.0, 2.0]],
    [[True, True]],
    [[1, None]],
    [[0, 1]],
    [[-1, 1]],
    [[2, 1]],
    [[11, 11]],  # the boundary itself
    [[10, 12]],  # across it
    [[1, 14]],  # beyond the batch
    [[14, 14]],
    [[1, 2], [2, 3]],
    [[1, 2], [1, 2]],
    [[5, 6], [1, 9]],
    [[1, 1]] * 2,
)


@pytest.mark.parametrize("view", BAD_VIEWS, ids=str)
def test_a_view_that_names_no_positions_is_refused(view: object) -> None:
    """A-3, R-10: never replaced by something empty."""
    with pytest.raises(BoundaryError):
        read_boundary(payload(view=view, end=13), 11)


@pytest.mark.parametrize("end", [None, 10, 0, -1, "11", 11.0, True])
def test_a_batch_ends_at_or_behind_its_boundary(end: object) -> None:
    with pytest.raises(BoundaryError, match="ends at"):
        read_boundary(payload(end=end), 11)


@pytest.mark.parametrize("strategy", [None, 1, ["window"]])
def test_a_boundary_names_its_strategy(strategy: object) -> None:
    with pytest.raises(BoundaryError, match="strategy"):
        read_boundary(payload(strategy=strategy), 11)


@pytest.mark.parametrize("covered", [[1], [0, 5], [5, 1], [5, 11], [12, 12], "1-2", [1, "2"], [True, 5], 3])
def test_a_range_covered_lies_before_the_boundary(covered: object) -> None:
    with pytest.raises(BoundaryError):
        read_boundary(payload(covered=covered, end=13), 11)
    assert read_boundary(payload(covered=[1, 10]), 11).covered == (1, 10)


@pytest.mark.parametrize("nothing", [None, {}])
def test_an_empty_payload_is_refused(nothing: dict[str, Any] | None) -> None:
    with pytest.raises(BoundaryError):
        read_boundary(nothing, 11)


def test_a_boundary_names_at_most_1000_ranges() -> None:
    assert MOST_RANGES == 1000
    spans = [[2 * n + 1, 2 * n + 1] for n in range(1001)]
    assert len(read_boundary(payload(view=spans[:1000], end=5000), 5000).view) == 1000
    with pytest.raises(BoundaryError, match="at most 1000"):
        read_boundary(payload(view=spans, end=5000), 5000)


def test_an_error_shows_no_megabytes() -> None:
    with pytest.raises(BoundaryError) as caught:
        read_boundary(payload(view=[["x" * 1_000_000]]), 11)
    assert len(str(caught.value)) < 300


def test_without_a_boundary_the_view_is_the_log() -> None:
    assert segments(None, 7) == ((1, 7),)
    assert segments(None, 0) == ()


def test_the_view_is_what_the_boundary_names_and_all_behind_its_batch() -> None:
    """A-2"""
    assert segments(FULL, 13) == ((1, 2), (12, 13), (8, 10))
    assert segments(FULL, 14) == ((1, 2), (12, 13), (8, 10), (14, 14))
    assert segments(FULL, 20) == ((1, 2), (12, 13), (8, 10), (14, 20))
    assert segments(Boundary(view=(), end=11, strategy="clear"), 11) == ()
    assert segments(Boundary(view=(), end=11, strategy="clear"), 12) == ((12, 12),)


@pytest.mark.parametrize(
    ("positions", "ranges"),
    [
        ([], ()),
        ([5], ((5, 5),)),
        ([1, 2, 3], ((1, 3),)),
        ([1, 2, 4, 5, 3], ((1, 2), (4, 5), (3, 3))),
        ([3, 2, 1], ((3, 3), (2, 2), (1, 1))),
        ([2, 3, 1, 2], ((2, 3), (1, 2))),
    ],
)
def test_ranges_walk_the_positions_in_their_order(positions: list[int], ranges: tuple[Range, ...]) -> None:
    assert ranges_of(positions) == ranges
    assert list(positions_of(ranges)) == positions


POSITIONS = st.lists(st.integers(1, 30), unique=True)


@given(POSITIONS)
def test_ranges_and_positions_say_the_same(positions: list[int]) -> None:
    ranges = ranges_of(positions)
    assert list(positions_of(ranges)) == positions
    assert all(after != high + 1 for (_, high), (after, _) in pairwise(ranges))


@given(POSITIONS, POSITIONS)
def test_without_takes_away_exactly_the_removed(positions: list[int], removed: list[int]) -> None:
    left = without(ranges_of(positions), ranges_of(removed))
    assert list(positions_of(left)) == [position for position in positions if position not in removed]


@pytest.mark.parametrize(
    ("ranges", "removed", "left"),
    [
        ((), ((1, 5),), ()),
        (((1, 10),), (), ((1, 10),)),
        (((1, 10),), ((1, 10),), ()),
        (((1, 10),), ((3, 4), (7, 7)), ((1, 2), (5, 6), (8, 10))),
        (((5, 10), (1, 4)), ((4, 5),), ((6, 10), (1, 3))),
        (((1, 3),), ((3, 9),), ((1, 2),)),
        (((3, 9),), ((1, 3),), ((4, 9),)),
        (((1, 10),), ((2, 6), (4, 8)), ((1, 1), (9, 10))),
    ],
)
def test_without_keeps_the_order(
    ranges: tuple[Range, ...], removed: tuple[Range, ...], left: tuple[Range, ...]
) -> None:
    assert without(ranges, removed) == left


def view_of(*log: SessionEvent) -> list[int | None]:
    return [made.position for made in EventFilter(active_view=True).apply(log)]


def test_the_newest_boundary_alone_defines_the_view() -> None:
    """A-1"""
    log = [*turn(1), *turn(5), *summary(9, [(5, 8)]), *turn(12)]
    assert view_of(*log) == [10, 11, 5, 6, 7, 8, 12, 13, 14, 15]
    assert view_of(*log, boundary(16, [(12, 15)]), user(17)) == [12, 13, 14, 15, 17]
    assert view_of(*log, boundary(16, [])) == []


def test_pinned_events_come_first_then_the_summary_then_the_preserved() -> None:
    """A-2"""
    log = [system(1), *turn(2), *turn(6), *summary(10, [(6, 9)], pinned=[(1, 1)]), user(13)]
    assert view_of(*log) == [1, 11, 12, 6, 7, 8, 9, 13]


def test_boundaries_are_never_part_of_the_view() -> None:
    """A-2"""
    log = [*turn(1), *summary(5, [(1, 4)]), own(8), user(9), boundary(10, [(6, 7), (8, 9)]), own(11)]
    assert view_of(*log) == [6, 7, 8, 9, 11]
    assert all(not made.is_boundary for made in EventFilter(active_view=True).apply(log))


def test_an_own_type_event_is_in_the_view_while_its_position_lies_in_it() -> None:
    """A-2"""
    log = [user(1), own(2), assistant(3), user(4), own(5), boundary(6, [(4, 5)]), own(7)]
    assert view_of(*log) == [4, 5, 7]
    assert [made.position for made in EventFilter.active().apply(log)] == [4]


def test_events_that_came_while_the_compaction_ran_stay_in_the_view() -> None:
    """A background compaction lands inside a turn: what the boundary does not cover is named as preserved."""
    log = [*turn(1), user(5), calls(6, "c"), *summary(7, [(5, 6)]), results(10, "c"), assistant(11)]
    assert view_of(*log) == [8, 9, 5, 6, 10, 11]


def test_a_shadow_prompt_starts_a_turn_of_every_view() -> None:
    """V-5, also where only a part of a log is held that lacks the boundary."""
    log = [user(1), assistant(2), *summary(3)[1:], assistant(6)]
    assert [made.id for made in EventFilter(active_view=True, last=1).apply(log)] == ["e4", "e5", "e6"]
    assert [made.id for made in EventFilter(last=1).apply(log)] == ["e1", "e2", "e4", "e5", "e6"]


def test_covered_events_stay_in_the_log() -> None:
    """A-4"""
    log = [*turn(1), *summary(5), user(8)]
    assert [made.position for made in EventFilter.all().apply(log)] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [made.position for made in EventFilter(keyword="answer 1").apply(log)] == [4]


BROKEN = (
    [*turn(1), boundary(5, [(1, 9)], end=9)],  # the rest of its batch is missing
    [user(1), boundary(2, [(1, 1)]).replace(payload={})],
    [user(1), boundary(2, [(2, 2)])],
    [user(3, position=3), boundary(4, [(1, 3)], position=4)],  # positions that the log does not hold
)


@pytest.mark.parametrize("log", BROKEN)
def test_a_payload_that_names_no_view_is_unreadable_data(log: list[SessionEvent]) -> None:
    """A-3, R-10: an error that names session and position; the log itself can still be read."""
    with pytest.raises(UnreadableDataError) as caught:
        EventFilter.active().apply(log)
    assert (caught.value.session_id, caught.value.position) == ("s", log[-1].position or len(log))
    assert len(EventFilter.all().apply(log)) == len(log)


@given(logs())
def test_every_message_is_in_the_view_or_covered_by_one_boundary_at_least(log: list[SessionEvent]) -> None:
    """A-2: a boundary covers what the view before it had and the view after it lacks."""
    covered: set[int] = set()
    before: set[int] = set()
    end = 0
    for position, made in enumerate(log, 1):
        if made.is_boundary:
            end = read_boundary(made.payload, position).end
            now = {each.position or 0 for each in EventFilter.active().apply(log[:end])}
            covered |= before - now
            before = now
        elif made.is_message and position > end:
            before.add(position)
    view = {made.position or 0 for made in EventFilter.active().apply(log)}
    messages = {made.position or 0 for made in log if made.is_message}
    assert view <= messages
    assert messages <= view | covered


def test_stored_positions_count_from_one() -> None:
    assert [made.position for made in stored([turn(1), turn(5)])] == list(range(1, 9))
