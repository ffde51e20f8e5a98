"""C-3, C-4, C-5: where a window cuts."""

from __future__ import annotations

import pytest

from tests.compaction.building import positions, request_of
from turnlog import InvalidValueError, ToolMessage, ToolResult, ToolStatus
from turnlog.compaction import WindowCompactionStrategy
from turnlog.testing.factories import (
    assistant,
    calls,
    conversation,
    event,
    own,
    results,
    summary,
    system,
    turn,
    user,
)


@pytest.mark.parametrize(
    ("strategy", "kept"),
    [
        ({"last_turns": 1}, [9, 10, 11, 12]),
        ({"last_turns": 2}, [5, 6, 7, 8, 9, 10, 11, 12]),
        ({"last_events": 4}, [9, 10, 11, 12]),
        ({"last_events": 5}, [9, 10, 11, 12]),  # lands inside a turn: forward to the next start
        ({"last_events": 1}, [9, 10, 11, 12]),  # no start behind it: back to the last one
        ({"last_events": 8}, [5, 6, 7, 8, 9, 10, 11, 12]),
        ({"max_tokens": 1}, [9, 10, 11, 12]),  # a turn larger than the budget is kept whole
    ],
)
def test_a_cut_falls_on_a_turn_start(strategy: dict[str, int], kept: list[int]) -> None:
    plan = WindowCompactionStrategy(**strategy)(request_of(conversation(3)))
    assert not plan.reason
    assert positions(plan.preserved) == kept


@pytest.mark.parametrize("strategy", [{"last_turns": 3}, {"last_events": 12}, {"max_tokens": 10_000}])
def test_a_view_that_fits_is_left_alone(strategy: dict[str, int]) -> None:
    assert WindowCompactionStrategy(**strategy)(request_of(conversation(3))).reason == "the view fits"


def test_a_token_budget_is_kept_to_the_token() -> None:
    request = request_of([system(1), *conversation(3, first=2)])
    two_turns = request.tokens_of(request.events[:1]) + request.tokens_of(request.events[5:])
    assert len(WindowCompactionStrategy(max_tokens=two_turns)(request).preserved) == 8
    assert len(WindowCompactionStrategy(max_tokens=two_turns - 1)(request).preserved) == 4


def test_case_b13_a_single_oversized_turn_is_left_whole_with_a_reason() -> None:
    plan = WindowCompactionStrategy(max_tokens=5)(request_of(turn(1)))
    assert plan.reason == "the newest turn alone is kept whole, whatever its size"


def test_a_view_without_any_user_message_is_left_alone() -> None:
    plan = WindowCompactionStrategy(last_turns=1)(request_of([system(1), assistant(2), assistant(3)]))
    assert plan.reason == "the view holds no turn"


def test_case_b05_b14_the_system_message_in_force_is_pinned_and_superseded_ones_leave_at_the_cut() -> None:
    log = [system(1, "old"), *turn(2), system(6, "new"), *turn(7)]
    plan = WindowCompactionStrategy(last_turns=1)(request_of(log))
    assert positions(plan.pinned) == [6]
    assert positions(plan.preserved) == [7, 8, 9, 10]
    uncut = WindowCompactionStrategy(last_turns=2)(request_of(log))
    assert uncut.reason  # C-5: superseded ones leave at a cut, not before


def test_preamble_and_an_earlier_summary_are_pinned() -> None:
    log = [assistant(1, "Welcome!"), own(2), *turn(3), *turn(7), *summary(11, [(7, 10)], pinned=[(1, 2)]), *turn(14)]
    plan = WindowCompactionStrategy(last_turns=1)(request_of(log))
    assert positions(plan.pinned) == [1, 2, 12, 13]
    assert positions(plan.preserved) == [14, 15, 16, 17]


def test_own_types_and_branches_leave_with_the_turn_around_them() -> None:
    log = [user(1), own(2), user(3, branch="sub"), assistant(4, branch="sub"), assistant(5), *turn(6), own(10)]
    plan = WindowCompactionStrategy(last_turns=1)(request_of(log))
    assert positions(plan.preserved) == [6, 7, 8, 9, 10]


def test_case_b12_b55_the_open_turn_keeps_its_question_and_its_open_calls() -> None:
    log = [*turn(1), user(5), calls(6, "open")]
    plan = WindowCompactionStrategy(max_tokens=1)(request_of(log))
    assert positions(plan.preserved) == [5, 6]


def test_a_dead_call_of_an_earlier_turn_never_blocks_a_cut() -> None:
    log = [user(1), calls(2, "dead"), *turn(3), *turn(7)]
    plan = WindowCompactionStrategy(last_turns=1)(request_of(log))
    assert positions(plan.preserved) == [7, 8, 9, 10]


def test_case_b16_a_pending_call_keeps_its_turn_until_it_is_answered() -> None:
    waiting = event(3, ToolMessage((ToolResult("slow", "started", ToolStatus.INTERIM),)))
    log = [user(1), calls(2, "slow"), waiting, *turn(4), *turn(8)]
    plan = WindowCompactionStrategy(last_turns=1)(request_of(log))
    assert positions(plan.preserved) == [1, 2, 3, 8, 9, 10, 11]
    answered = [user(1), calls(2, "slow"), waiting, results(4, "slow"), *turn(5), *turn(9)]
    assert positions(WindowCompactionStrategy(last_turns=1)(request_of(answered)).preserved) == [9, 10, 11, 12]


@pytest.mark.parametrize("wrong", [{}, {"last_turns": 1, "max_tokens": 5}, {"last_turns": 0}, {"last_events": True}])
def test_exactly_one_bound_is_given(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidValueError):
        WindowCompactionStrategy(**wrong)


def test_run_openings_stay_together() -> None:
    """V-5: user messages in a row of one run are one opening."""
    log = [*turn(1), user(5, run="r"), user(6, run="r"), assistant(7)]
    plan = WindowCompactionStrategy(last_turns=1)(request_of(log))
    assert positions(plan.preserved) == [5, 6, 7]


def test_another_base_branch_takes_roots_place() -> None:
    log = [made.replace(branch="base") for made in (*turn(1), *turn(5))]
    log.insert(4, assistant(99, "root note"))
    plan = WindowCompactionStrategy(last_turns=1)(request_of(log))
    assert positions(plan.preserved) == [6, 7, 8, 9]
