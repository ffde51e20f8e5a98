"""H-6: the read guard, over any events at all."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chat.guarding import check_pairing
from tests.chat.speaking import lines
from turnlog.chat import guarded
from turnlog.log.events import SessionEvent
from turnlog.log.messages import AssistantMessage, Message, ToolMessage, ToolResult, ToolStatus, UserMessage
from turnlog.testing.factories import assistant, calls, event, own, results, user

_CALL_IDS = ("a", "b")


def result(call_id: str, text: str = "found", status: ToolStatus = ToolStatus.OK) -> ToolResult:
    return ToolResult(call_id, text, status)


def _asking(call_ids: Sequence[str]) -> Message:
    message = calls(1, *call_ids).content
    return message if call_ids else AssistantMessage("answer")


_results = st.builds(result, st.sampled_from(_CALL_IDS), st.sampled_from(["one", "two"]), st.sampled_from(ToolStatus))
_messages = st.one_of(
    st.just(UserMessage("question")),
    st.lists(st.sampled_from(_CALL_IDS), max_size=2).map(_asking),
    st.lists(_results, max_size=3).map(tuple).map(ToolMessage),
)


@st.composite
def _events(draw: st.DrawFn) -> list[SessionEvent]:
    """Any messages in any order; some of them the very same object, as a store in memory may return it."""
    few = draw(st.lists(_messages, min_size=1, max_size=5))
    chosen = draw(st.lists(st.one_of(st.none(), st.sampled_from(few)), max_size=12))
    return [
        own(n, position=n) if message is None else event(n, message, position=n) for n, message in enumerate(chosen, 1)
    ]


@given(_events())
def test_whatever_the_log_holds_the_prompt_is_paired(log: list[SessionEvent]) -> None:
    """B07, B19, B23: exactly one result per call, none without a call."""
    check_pairing(guarded(log).messages)


@given(_events())
def test_the_same_log_gives_the_same_prompt(log: list[SessionEvent]) -> None:
    """B19: the repair is the same each time, so that a provider's cache of the prompt holds."""
    assert guarded(log) == guarded(list(log))


@given(_events())
def test_guarding_again_changes_nothing(log: list[SessionEvent]) -> None:
    once = guarded(log)
    again = guarded([event(n, message, position=n) for n, message in enumerate(once.messages, 1)])
    assert again.messages == once.messages
    assert not again.left_out


@given(_events())
def test_all_but_tool_traffic_stays_in_order(log: list[SessionEvent]) -> None:
    def others(messages: Sequence[Message]) -> list[Message]:
        return [
            message
            for message in messages
            if not isinstance(message, ToolMessage)
            and not (isinstance(message, AssistantMessage) and message.tool_calls)
        ]

    assert others(guarded(log).messages) == others([each.content for each in log if each.is_message])


@given(st.lists(st.lists(st.sampled_from(_CALL_IDS), min_size=1, unique=True), max_size=4), st.booleans())
def test_complete_rounds_stay_as_they_are(rounds: list[list[str]], together: bool) -> None:  # noqa: FBT001 - drawn
    """The messages themselves, with what a provider must get back; results in one message or in several."""
    log: list[SessionEvent] = []
    for number, asked in enumerate(rounds):
        log += [user(10 * number), calls(10 * number + 1, *asked)]
        log += [results(10 * number + 2, *asked)] if together else [results(10 * number + 2, each) for each in asked]
        log += [assistant(10 * number + 3)]
    kept = guarded(log)
    assert all(mine is theirs.content for mine, theirs in zip(kept.messages, log, strict=True))
    assert kept.left_out == ()


def placed(*log: SessionEvent) -> list[SessionEvent]:
    return [each.at(position) for position, each in enumerate(log, 1)]


def test_a_call_without_all_results_goes_with_those_it_has() -> None:
    """B19, B21: missing results take the assistant message, its reasoning and the other results away."""
    log = placed(user(1), calls(2, "a", "b", content="let me see"), results(3, "a"), user(4))
    assert lines(guarded(log).messages) == ["user: question", "user: question"]
    assert guarded(log).left_out == (2, 3)


@pytest.mark.parametrize("status", [ToolStatus.OK, ToolStatus.ERROR, ToolStatus.NOT_RUN])
def test_any_final_result_answers(status: ToolStatus) -> None:
    log = placed(calls(1, "a"), event(2, ToolMessage((result("a", status=status),))))
    assert len(guarded(log).messages) == 2


def test_an_interim_result_never_answers() -> None:
    """V-1: alone it leaves its call open; beside a final one it is left out."""
    interim = event(2, ToolMessage((result("a", "working", ToolStatus.INTERIM),)))
    assert guarded(placed(calls(1, "a"), interim)).messages == ()
    assert guarded(placed(calls(1, "a"), interim)).left_out == (1, 2)
    finished = placed(calls(1, "a"), interim, results(3, "a"), interim)
    assert lines(guarded(finished).messages) == ["assistant: calls a", "tool a: found"]
    assert guarded(finished).left_out == ()


def test_of_several_final_results_the_last_is_sent() -> None:
    """H-6; the first stands alone in its message, which then goes."""
    log = placed(calls(1, "a", "b"), results(2, "a", content="early"), results(3, "b"), results(4, "a", content="late"))
    assert lines(guarded(log).messages) == ["assistant: calls a, b", "tool b: found", "tool a: late"]


def test_the_same_message_stored_twice_answers_once() -> None:
    """B65: a result that a client has stored again is not sent again, though it is the same object in memory."""
    twice = results(2, "a")
    assert lines(guarded(placed(calls(1, "a"), twice, twice)).messages) == ["assistant: calls a", "tool a: found"]


def test_case_b23_a_result_for_no_such_call_goes_alone() -> None:
    """The others of its message stay; the message goes when nothing remains."""
    log = placed(calls(1, "a", "b"), results(2, "a", "b", "z"), results(3, "y"), assistant(4))
    kept = guarded(log)
    assert lines(kept.messages) == ["assistant: calls a, b", "tool a: found; b: found", "assistant: answer"]
    assert kept.left_out == (2, 3)


def test_case_b07_one_matching_id_proves_nothing_for_the_others() -> None:
    log = placed(calls(1, "b"), results(2, "a"), results(3, "b"))
    assert lines(guarded(log).messages) == ["assistant: calls b", "tool b: found"]
    assert guarded(log).left_out == (2,)


def test_a_result_that_does_not_directly_follow_answers_nothing() -> None:
    log = placed(calls(1, "a"), user(2), results(3, "a"))
    assert lines(guarded(log).messages) == ["user: question"]
    assert guarded(log).left_out == (1, 3)


def test_events_of_own_types_come_between_without_harm() -> None:
    """H-6 is over message events: progress that a tool has noted is not part of the pairing."""
    log = placed(calls(1, "a"), own(2), results(3, "a"))
    assert lines(guarded(log).messages) == ["assistant: calls a", "tool a: found"]


def test_case_b86_ids_used_again_belong_to_the_nearest_call() -> None:
    log = placed(calls(1, "a"), results(2, "a", content="first"), calls(3, "a"), results(4, "a", content="second"))
    assert len(guarded(log).messages) == 4
    assert guarded([log[0], *log[2:]]).messages == (log[2].content, log[3].content)


def test_a_call_that_is_expected_to_be_open_is_left_out_in_silence() -> None:
    """H-12: and so are its results, which other events have come between."""
    log = placed(calls(1, "a"), user(2, branch="x"), results(3, "a"), assistant(4), results(5, "z"))
    kept = guarded(log, lambda each: each.branch is None)
    assert lines(kept.messages) == ["user: question", "assistant: answer"]
    assert kept.left_out == (5,)


def test_results_that_the_request_brings_answer_too() -> None:
    """Seed 004: a loop may send only the last tool results; the call then lies in the history alone."""
    log = placed(user(1), calls(2, "a", "b"), results(3, "a"))
    brought = [ToolMessage((result("b"),))]
    assert lines(guarded(log, behind=brought).messages) == ["user: question", "assistant: calls a, b", "tool a: found"]
    assert lines(guarded(log, behind=[UserMessage("b")]).messages) == ["user: question"]
    both = [ToolMessage((result("a", "late"), result("b")))]
    assert lines(guarded(log, behind=both).messages) == ["user: question", "assistant: calls a, b"]
    assert lines(guarded([*log, user(4).at(4)], behind=both).messages) == ["user: question", "user: question"]


def test_one_id_for_two_calls_cannot_be_answered() -> None:
    log = placed(user(1), calls(2, "a", "a"), results(3, "a"), results(4, "a"))
    assert lines(guarded(log).messages) == ["user: question"]
