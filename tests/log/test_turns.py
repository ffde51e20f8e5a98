"""Where turns start, told from the log read in order (V-5)."""

from __future__ import annotations

import pytest
from hypothesis import given

from turnlog.log.events import SessionEvent
from turnlog.log.turns import TurnState, turn_starts
from turnlog.testing.factories import assistant, boundary, calls, own, results, summary, system, turn, user
from turnlog.testing.strategies import logs


def starts(*log: SessionEvent) -> list[int]:
    """The places, from 1, of the events that start a turn."""
    return [place for place, start in enumerate(turn_starts(log), 1) if start]


def test_an_empty_log_has_no_turns() -> None:
    assert starts() == []


def test_each_user_message_starts_a_turn() -> None:
    assert starts(*turn(1), *turn(5), user(9)) == [1, 5, 9]


def test_user_messages_in_a_row_without_a_run_each_start_a_turn() -> None:
    assert starts(user(1), user(2), user(3)) == [1, 2, 3]


def test_the_preamble_lies_before_the_first_turn() -> None:
    assert starts(system(1), assistant(2), own(3), user(4)) == [4]
    assert starts(system(1), assistant(2), results(3, "c")) == []


def test_messages_in_a_row_of_one_run_are_one_opening() -> None:
    assert starts(user(1, run="r"), user(2, run="r"), user(3, run="r"), assistant(4), user(5)) == [1, 5]


def test_a_run_continues_no_opening_of_another_run_or_of_none() -> None:
    assert starts(user(1, run="r"), user(2, run="s")) == [1, 2]
    assert starts(user(1), user(2, run="r")) == [1, 2]
    assert starts(user(1, run="r"), user(2), user(3, run="r")) == [1, 2, 3]
    assert starts(user(1, run="r"), user(2, run="s"), user(3, run="r")) == [1, 2, 3]


@pytest.mark.parametrize("between", [assistant(2), calls(2, "c"), results(2, "c"), system(2)])
def test_an_opening_ends_with_any_other_message_of_its_branch(between: SessionEvent) -> None:
    assert starts(user(1, run="r"), between, user(3, run="r")) == [1, 3]


BETWEEN = (
    [own(2)],
    [boundary(2, ())],
    summary(2),
    [user(2, branch="a"), assistant(3, branch="a")],
    [user(2, branch="a", run="r")],
)


@pytest.mark.parametrize("between", BETWEEN)
def test_what_is_no_message_of_the_branch_ends_no_opening(between: list[SessionEvent]) -> None:
    assert starts(user(1, run="r"), *between, user(9, run="r"), assistant(10)) == [1]


def test_a_sub_agents_user_message_is_inside_the_turn() -> None:
    log = [
        user(1),
        calls(2, "c"),
        user(3, branch="a"),
        assistant(4, branch="a"),
        user(5, branch="a.b"),
        results(6, "c"),
        user(7),
    ]
    assert starts(*log) == [1, 7]


def test_the_branch_of_the_first_user_message_is_the_base() -> None:
    log = [
        system(1),
        user(2, branch="a"),
        assistant(3, branch="a"),
        user(4),
        user(5, branch="a.b"),
        user(6, branch="a"),
        user(7, branch="A"),
    ]
    assert starts(*log) == [2, 6]


def test_only_a_real_user_message_sets_the_base() -> None:
    log = [
        assistant(1, branch="b"),
        system(2, branch="c"),
        own(3, branch="d"),
        *summary(4, branch="e"),
        user(7, branch="a"),
        user(8),
    ]
    assert starts(*log) == [7]


def test_openings_are_those_of_the_base_branch() -> None:
    log = [
        user(1, branch="a", run="r"),
        assistant(2),
        user(3, branch="a", run="r"),
        assistant(4, branch="a"),
        user(5, branch="a", run="r"),
    ]
    assert starts(*log) == [1, 5]


def test_a_summary_starts_no_turn_of_the_log() -> None:
    """A background compaction may lie inside a turn."""
    assert starts(user(1), calls(2, "c"), *summary(3), results(6, "c"), assistant(7), user(8)) == [1, 8]


def test_the_state_counts_turns_and_versions() -> None:
    state = TurnState()
    seen: list[tuple[int, int, int]] = []
    for made in (system(1), user(2), assistant(3), own(4), user(5), user(6, run="r"), user(7, run="r")):
        state = state.after(made)
        seen.append((state.version, state.turn, state.turns))
    assert seen == [(1, 0, 0), (2, 2, 1), (3, 2, 1), (4, 2, 1), (5, 5, 2), (6, 6, 3), (7, 6, 3)]


@given(logs())
def test_the_state_is_all_that_the_rule_needs(log: list[SessionEvent]) -> None:
    """A store that keeps the state beside the version decides as the whole log does."""
    whole = turn_starts(log)
    for cut in range(len(log) + 1):
        state = TurnState()
        for made in log[:cut]:
            state = state.after(made)
        assert state.turn == max((place for place, start in enumerate(whole[:cut], 1) if start), default=0)
        assert state.turns == sum(whole[:cut])
        if cut < len(log):
            assert (state.after(log[cut]).turn == cut + 1) is whole[cut]


@given(logs())
def test_turns_start_at_real_user_messages_of_one_branch(log: list[SessionEvent]) -> None:
    at = [made for made, start in zip(log, turn_starts(log), strict=True) if start]
    assert all(made.content.type.value == "user" and not made.is_synthetic for made in at)
    assert len({made.branch for made in at}) <= 1
    users = [made for made in log if made.message and made.content.type.value == "user" and not made.is_synthetic]
    assert at[:1] == users[:1]
