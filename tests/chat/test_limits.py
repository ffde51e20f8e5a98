"""H-4: what becomes of the calls of a batch under the limits of a turn."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from turnlog.chat.limits import Limits, Spent, batch_of
from turnlog.log.messages import ToolCall, ToolStatus

_batches = st.lists(st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=5), max_size=6)
_limits = st.builds(Limits, rounds=st.integers(0, 5), calls=st.integers(0, 12), calls_per_tool=st.integers(0, 6))


def calls(names: list[str]) -> list[ToolCall]:
    return [ToolCall(f"{name}{number}", name) for number, name in enumerate(names)]


@given(_batches, _limits)
def test_every_call_runs_or_has_one_result_in_the_order_of_the_calls(batches: list[list[str]], limits: Limits) -> None:
    spent = Spent()
    for batch in map(calls, batches):
        decided = batch_of(batch, limits, spent)
        assert 0 <= decided.run <= len(batch)
        assert [result.id for result in decided.refused] == [call.id for call in batch[decided.run :]]
        assert [result.name for result in decided.refused] == [call.name for call in batch[decided.run :]]
        assert all(result.status is ToolStatus.NOT_RUN for result in decided.refused)
        assert decided.is_breached == (decided.run < len(batch))


@given(_batches, _limits)
def test_no_more_runs_than_the_limits_say(batches: list[list[str]], limits: Limits) -> None:
    spent = Spent()
    ran: list[str] = []
    rounds = 0
    for batch in map(calls, batches):
        decided = batch_of(batch, limits, spent)
        rounds += bool(decided.run)
        ran += [call.name for call in batch[: decided.run]]
    assert rounds <= limits.rounds
    assert len(ran) <= limits.calls
    assert all(ran.count(name) <= limits.calls_per_tool for name in "ab")


@given(_batches)
def test_what_the_limits_allow_runs(batches: list[list[str]]) -> None:
    names = [name for batch in batches for name in batch]
    most = max(names.count("a"), names.count("b"))
    limits = Limits(rounds=len(batches), calls=len(names), calls_per_tool=most)
    spent = Spent()
    assert all(not batch_of(calls(batch), limits, spent).is_breached for batch in batches)


@given(_batches.filter(bool), _limits)
def test_one_result_names_the_limit_and_the_others_say_that_they_come_behind(
    batches: list[list[str]], limits: Limits
) -> None:
    spent = Spent()
    for batch in map(calls, batches):
        refused = batch_of(batch, limits, spent).refused
        if refused:
            assert refused[0].text.startswith("Not run: the limit of ")
        assert all(result.text == "Not run: a call before this one reached a limit." for result in refused[1:])


@given(_batches, _limits)
def test_what_an_earlier_attempt_spent_counts_the_same(batches: list[list[str]], limits: Limits) -> None:
    """H-8: a retry counts the steps again, and decides as the first attempt did."""
    first, second = Spent(), Spent()
    decided = [batch_of(calls(batch), limits, first) for batch in batches]
    assert [batch_of(calls(batch), limits, second) for batch in batches] == decided
    assert first == second
