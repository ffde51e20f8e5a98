"""Real failures of comparable systems, in their smallest form, over the service."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compaction.building import Summariser, positions
from turnlog import (
    AssistantMessage,
    EventFilter,
    Message,
    SessionService,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from turnlog.compaction import (
    SummarizingCompactionStrategy,
    TokenCountTrigger,
    TurnCountTrigger,
    WindowCompactionStrategy,
)

VIEW = EventFilter.active()
KEEP_ONE = WindowCompactionStrategy(last_turns=1)
LONG = "because " * 40


def question(number: int, *, calls: int = 1) -> list[Message]:
    """A turn: a question, rounds of one call, and the answer."""
    said: list[Message] = [UserMessage(f"question {number} {LONG}")]
    for call in range(calls):
        said.append(AssistantMessage(tool_calls=[ToolCall(f"{number}.{call}", "look", "{}")]))
        said.append(ToolMessage([ToolResult(f"{number}.{call}", f"found {number}.{call} {LONG}")]))
    return [*said, AssistantMessage(f"answer {number} {LONG}")]


@pytest.fixture(params=["memory:", "sqlite:"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionService]:
    url = request.param if request.param == "memory:" else f"sqlite:{tmp_path}/c.db"
    with SessionService.open(url) as opened:
        opened.create("s")
        yield opened


def say(service: SessionService, messages: list[Message]) -> None:
    for message in messages:
        service.append_message("s", message)


def test_case_b37_a_question_leaves_with_its_tools_and_the_summary_stands_before_what_is_kept(
    service: SessionService,
) -> None:
    for number in (1, 2, 3):
        say(service, question(number))
    told = Summariser()
    result = service.compact("s", SummarizingCompactionStrategy(told, KEEP_ONE))
    assert positions(result.covered_events) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert all(f"question {number}" in told.requests[0].text for number in (1, 2))
    view = service.active_messages("s")
    assert [message.text for message in view[1:2]] == ["Told 1."]
    assert view[2:] == question(3)


def test_case_b40_a_question_whose_first_answer_is_a_call_is_there_after_each_step(service: SessionService) -> None:
    turn = question(1)
    for length, message in enumerate(turn, 1):
        service.append_message("s", message)
        assert service.compact("s", SummarizingCompactionStrategy(Summariser(), KEEP_ONE)).is_unchanged
        assert service.active_messages("s") == turn[:length]


def test_case_b45_many_calls_in_one_turn_reach_a_trigger_on_size(service: SessionService) -> None:
    say(service, question(1))
    say(service, question(2, calls=50))
    by_turns, by_size = TurnCountTrigger(3), TokenCountTrigger(2_000)
    assert service.compact("s", KEEP_ONE, trigger=by_turns).is_unchanged
    assert positions(service.compact("s", KEEP_ONE, trigger=by_turns | by_size).covered_events) == [1, 2, 3, 4]
    assert service.active_messages("s") == question(2, calls=50)


def test_case_b50_nothing_is_summarised_of_a_first_message_whatever_the_window(service: SessionService) -> None:
    say(service, [UserMessage("hi")])
    told = Summariser()
    strategy = SummarizingCompactionStrategy(told, WindowCompactionStrategy(max_tokens=1))
    result = service.compact("s", strategy, trigger=TokenCountTrigger(1))
    assert result.is_unchanged
    assert result.reason
    assert (told.requests, service.version("s")) == ([], 1)


def test_case_b54_each_of_ten_compactions_reaches_its_target(service: SessionService) -> None:
    target = 600
    for number in range(1, 41):
        say(service, question(number, calls=0))
        if number % 4:
            continue
        result = service.compact("s", WindowCompactionStrategy(max_tokens=target), trigger=TokenCountTrigger(target))
        assert not result.is_unchanged
        assert result.tokens_after <= target < result.tokens_before
        assert service.active_messages("s")[-2:] == question(number, calls=0)
        assert positions(service.events("s", VIEW))[-1] == service.version("s") - 1
