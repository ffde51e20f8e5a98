"""Results next to their calls: whatever the order in which they came, and nothing is lost (P-1, B10, B15)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.formats.foreign import Entry
from turnlog.formats.pairing import results_next_to_calls
from turnlog.log.messages import AssistantMessage, ToolCall, ToolMessage, ToolResult, UserMessage


def said(text: str, branch: str | None = None) -> Entry:
    return Entry(line=1, message=UserMessage(text), branch=branch)


def asked(*ids: str, branch: str | None = None) -> Entry:
    return Entry(line=1, message=AssistantMessage(tool_calls=[ToolCall(id_, "look") for id_ in ids]), branch=branch)


def answered(*ids: str, branch: str | None = None) -> Entry:
    return Entry(line=1, message=ToolMessage([ToolResult(id_, "5") for id_ in ids]), branch=branch)


def shown(entry: Entry) -> str:
    message = entry.message
    if isinstance(message, AssistantMessage):
        return "?" + ",".join(call.id for call in message.tool_calls)
    if isinstance(message, ToolMessage):
        return "!" + ",".join(result.id for result in message.results)
    return message.text if message is not None else ""


def ordered(*entries: Entry) -> list[str]:
    calls, results = Counter[str](), Counter[str]()
    for entry in entries:
        if isinstance(entry.message, AssistantMessage):
            calls.update(call.id for call in entry.message.tool_calls)
        if isinstance(entry.message, ToolMessage):
            results.update(result.id for result in entry.message.results)
    return [shown(entry) for entry in results_next_to_calls(entries, results, calls)]


def test_what_is_in_order_stays_as_it_is() -> None:
    entries = [said("hi"), asked("a", "b"), answered("a"), answered("b"), said("and?"), asked("a"), answered("a")]
    assert ordered(*entries) == ["hi", "?a,b", "!a", "!b", "and?", "?a", "!a"]


def test_a_later_result_comes_to_its_call_and_what_was_between_follows() -> None:
    assert ordered(asked("a"), said("wait"), answered("a"), said("go on")) == ["?a", "!a", "wait", "go on"]


def test_results_of_two_calls_that_come_in_one_message_go_each_to_its_own() -> None:
    """B15: two delayed answers in one event."""
    assert ordered(asked("a"), said("x"), asked("b"), answered("a", "b")) == ["?a", "!a", "x", "?b", "!b"]


def test_a_call_that_is_never_answered_holds_nothing_back() -> None:
    assert ordered(asked("a"), said("x"), asked("b"), answered("b")) == ["?a", "x", "?b", "!b"]


def test_a_result_before_its_call_waits_for_it() -> None:
    assert ordered(answered("a"), said("x"), asked("a"), said("y")) == ["x", "?a", "!a", "y"]


def test_a_result_without_a_call_stays_where_it_is() -> None:
    assert ordered(said("x"), answered("z"), said("y")) == ["x", "!z", "y"]


def test_a_second_result_is_kept() -> None:
    assert ordered(asked("a"), answered("a"), answered("a")) == ["?a", "!a", "!a"]


def test_branches_do_not_wait_for_one_another() -> None:
    entries = [asked("a"), said("work", "agent"), asked("b", branch="agent"), answered("b", branch="agent")]
    assert ordered(*entries, answered("a"), said("x")) == ["?a", "work", "?b", "!b", "!a", "x"]


@pytest.mark.parametrize("is_reversed", [False, True])
def test_thousands_of_calls_that_are_answered_at_the_end_are_each_looked_at_once(is_reversed: bool) -> None:  # noqa: FBT001
    """However results are nested or delayed, nothing is held and taken up again and again."""
    ids = [str(number) for number in range(5_000)]
    answers = list(reversed(ids)) if is_reversed else ids
    after = ordered(*[asked(id_) for id_ in ids], *[answered(id_) for id_ in answers])
    assert after == [part for id_ in ids for part in (f"?{id_}", f"!{id_}")]


ids = st.sampled_from("abc")
entries = st.one_of(
    st.text("xyz", max_size=2).map(said),
    st.lists(ids, min_size=1, max_size=2).map(lambda found: asked(*found)),
    st.lists(ids, min_size=1, max_size=2).map(lambda found: answered(*found)),
)


@given(st.lists(entries, max_size=12))
def test_nothing_is_lost_or_doubled_and_the_rest_keeps_its_order(found: list[Entry]) -> None:
    before = [part for entry in found for part in _parts(shown(entry))]
    after = ordered(*found)
    assert Counter(part for entry in after for part in _parts(entry)) == Counter(before)
    others = [shown(entry) for entry in found if not shown(entry).startswith("!")]
    assert [entry for entry in after if not entry.startswith("!")] == others


EVERYTHING = [asked("a", "b"), asked("c"), answered("a"), answered("b"), answered("c"), said("x"), said("y")]


@given(st.permutations(EVERYTHING))
def test_in_whatever_order_a_call_that_is_answered_is_followed_by_its_results(found: list[Entry]) -> None:
    after = ordered(*found)
    both = after.index("?a,b") + 1
    assert sorted(after[both : both + 2]) == ["!a", "!b"]
    assert after[after.index("?c") + 1] == "!c"


def _parts(text: str) -> list[str]:
    return [f"!{id_}" for id_ in text[1:].split(",")] if text.startswith("!") else [text]
