"""C-2: triggers fire at or above, and compose with each other and with any callable."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compaction.building import COUNTER, request_of
from turnlog import InvalidValueError, SessionEvent
from turnlog.compaction import (
    CompactionRequest,
    ContextWindowTrigger,
    TokenCountTrigger,
    TurnCountTrigger,
    always,
)
from turnlog.log.messages import MessageMetadata
from turnlog.log.tokens import message_tokens
from turnlog.testing.factories import assistant, conversation, summary, system, user

REQUEST = request_of(conversation(3))


def never(_request: CompactionRequest) -> bool:
    return False


@pytest.mark.parametrize(("turns", "fires"), [(2, True), (3, True), (4, False)])
def test_turns_count_at_or_above(turns: int, *, fires: bool) -> None:
    assert TurnCountTrigger(turns)(REQUEST) is fires


def test_tokens_count_everything_on_the_base_branch() -> None:
    log = [system(1), *conversation(2, first=2), user(10, "elsewhere " * 50, branch="sub")]
    request = request_of(log)
    expected = sum(message_tokens(event.content, COUNTER) for event in log if event.branch is None)
    assert request.tokens == expected
    assert TokenCountTrigger(expected)(request)
    assert not TokenCountTrigger(expected + 1)(request)


def test_a_shadow_prompt_is_no_turn_but_its_tokens_count() -> None:
    log = [*conversation(1), *summary(5, [(1, 4)])]
    request = request_of(log)
    assert request.turns == 1
    assert request.tokens > request_of(conversation(1)).tokens


def test_composition_takes_any_callable_on_either_side() -> None:
    assert (TurnCountTrigger(3) | never)(REQUEST)
    assert (never | TurnCountTrigger(3))(REQUEST)
    assert not (TurnCountTrigger(3) & never)(REQUEST)
    assert not (never & TurnCountTrigger(3))(REQUEST)
    assert (always() & (TurnCountTrigger(9) | TokenCountTrigger(1)))(REQUEST)
    three: Any = 3
    with pytest.raises(InvalidValueError, match="callable"):
        _ = always() | three


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "3"])
def test_counts_are_checked_when_the_trigger_is_made(wrong: Any) -> None:
    for kind in (TurnCountTrigger, TokenCountTrigger):
        with pytest.raises(InvalidValueError):
            kind(wrong)
    with pytest.raises(InvalidValueError):
        ContextWindowTrigger(0.8, wrong)


@pytest.mark.parametrize("wrong", [0, 1.01, -0.5, True, "half"])
def test_a_share_is_above_0_and_up_to_1(wrong: Any) -> None:
    with pytest.raises(InvalidValueError):
        ContextWindowTrigger(wrong, 1_000)


def reply(n: int, tokens: int) -> SessionEvent:
    message = assistant(n).content.replace(metadata={MessageMetadata.USAGE: {"input_tokens": tokens}})
    return assistant(n).replace(message=message)


@pytest.mark.parametrize(("tokens", "fires"), [(799, False), (800, True)])
def test_a_reported_input_is_taken_as_it_is(tokens: int, *, fires: bool) -> None:
    """CASE B33, B47: what was sent counts, tool schemas included and output excluded."""
    log = [user(1), reply(2, tokens)]
    assert ContextWindowTrigger(0.8, 1_000)(request_of(log)) is fires


def test_a_report_from_before_the_boundary_speaks_of_another_view() -> None:
    log = [user(1), reply(2, 5_000), *summary(3, [(1, 2)])]
    assert not ContextWindowTrigger(0.8, 1_000)(request_of(log))
    assert ContextWindowTrigger(0.8, 1_000)(request_of([*log, user(6), reply(7, 900)]))
