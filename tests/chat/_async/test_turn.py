"""H-4: what the turn advisor stores of a loop that ends without a model round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.chat._async.talking import Talk
from tests.chat.guarding import check_pairing
from tests.chat.speaking import DIRECT, asks, look_up
from turnlog import (
    AppendResult,
    AssistantMessage,
    AsyncSessionService,
    InvalidValueError,
    SessionEvent,
    ToolCall,
    ToolStatus,
)
from turnlog.chat import AsyncSessionTurnAdvisor, Limits, OnBreach, Outcome, ToolError, tool
from turnlog.compaction import TurnCountTrigger, WindowCompactionStrategy

TELL_MODEL = OnBreach.TELL_MODEL


async def test_results_that_return_directly_are_stored(service: AsyncSessionService) -> None:
    """Seed 004: the results that came back directly; the next turn has the whole round."""
    talk = Talk(service, asks("c1", "c2", name="hand_over"), "2", tools=[DIRECT])
    result = await talk.client.call("a", session_id="s")
    assert (result.outcome, result.text) == (Outcome.DIRECT, "handed over c1\nhanded over c2")
    assert [each.id for each in result.results] == ["c1", "c2"]
    assert result.rounds == 1
    await talk.client.call("b", session_id="s")
    stored = ["user: a", "assistant: calls c1, c2", "tool c1: handed over c1", "tool c2: handed over c2"]
    assert talk.prompts[1] == [*stored, "user: b"]


async def test_the_loop_goes_on_unless_all_calls_return_directly(service: AsyncSessionService) -> None:
    """H-4: every call of the batch."""
    calls = (ToolCall("c1", "hand_over", '{"key": "c1"}'), ToolCall("c2", "look_up", '{"key": "c2"}'))
    talk = Talk(service, AssistantMessage(tool_calls=calls), "done", tools=[DIRECT, look_up])
    result = await talk.client.call("a", session_id="s")
    assert (result.outcome, result.text, result.results) == (Outcome.REPLY, "done", ())
    assert len(await talk.log()) == 5


async def test_a_result_may_decide_whether_it_is_returned(service: AsyncSessionService) -> None:
    def find(key: str) -> str:
        if key == "c1":
            raise ToolError("try another")
        return key

    found = tool(find, return_direct=lambda result: result.status is ToolStatus.OK)
    talk = Talk(service, asks("c1", name="find"), asks("c2", name="find"), tools=[found])
    result = await talk.client.call("a", session_id="s")
    assert (result.outcome, result.text, result.rounds) == (Outcome.DIRECT, "c2", 2)


async def test_a_broken_limit_of_calls_ends_the_turn(service: AsyncSessionService) -> None:
    """Seed 004: results of the calls that ran, the breach for the one that broke the limit, a note for those after."""
    ran: list[str] = []

    def note(key: str) -> str:
        ran.append(key)
        return f"noted {key}"

    talk = Talk(service, asks("a", "b", "c", "d", name="note"), "2", tools=[note], limits=Limits(calls=2))
    result = await talk.client.call("hi", session_id="s")
    assert (result.outcome, sorted(ran)) == (Outcome.LIMIT, ["a", "b"])
    assert [each.id for each in result.results] == ["a", "b", "c", "d"]
    assert (await talk.log())[2:] == [
        "tool a: noted a",
        "tool b: noted b",
        "tool c: Not run: the limit of 2 tool calls in one turn is reached. (not_run)",
        "tool d: Not run: a call before this one reached a limit. (not_run)",
    ]
    await talk.client.call("and?", session_id="s")
    check_pairing(talk.model.prompts[1].messages)
    assert len(talk.prompts[1]) == 7


async def test_a_broken_limit_of_one_tool(service: AsyncSessionService) -> None:
    limits = Limits(calls_per_tool=1)
    talk = Talk(service, asks("a", text="one"), asks("b", text="two"), tools=[look_up], limits=limits)
    result = await talk.client.call("hi", session_id="s")
    assert (result.outcome, result.rounds) == (Outcome.LIMIT, 2)
    assert "limit of 1 calls of look_up" in result.text
    assert (await talk.log())[1::2] == ["assistant: one + calls a", "assistant: two + calls b"]


async def test_a_broken_limit_of_rounds(service: AsyncSessionService) -> None:
    talk = Talk(service, asks("a"), asks("b", "c"), tools=[look_up], limits=Limits(rounds=1))
    result = await talk.client.call("hi", session_id="s")
    assert result.outcome is Outcome.LIMIT
    assert [(each.id, each.status) for each in result.results] == [("b", "not_run"), ("c", "not_run")]
    assert len(await talk.log()) == 6


def test_the_defaults_are_40_rounds_150_calls_40_of_a_tool() -> None:
    default = Limits()
    assert (default.rounds, default.calls, default.calls_per_tool) == (40, 150, 40)
    assert default.on_breach is OnBreach.STOP


async def test_the_model_may_be_told_of_a_breach(service: AsyncSessionService) -> None:
    """With ``TELL_MODEL`` the turn goes on, and ends with a reply."""
    limits = Limits(calls=1, on_breach=TELL_MODEL)
    talk = Talk(service, asks("a", "b"), "enough", tools=[look_up], limits=limits)
    result = await talk.client.call("hi", session_id="s")
    assert (result.outcome, result.text, result.results) == (Outcome.REPLY, "enough", ())
    assert talk.prompts[1][2:] == [
        "tool a: found a",
        "tool b: Not run: the limit of 1 tool calls in one turn is reached. (not_run)",
    ]
    assert len(talk.model.prompts[1].tools) == 1


async def test_a_model_that_is_told_and_asks_again_is_stopped(service: AsyncSessionService) -> None:
    """Its last round has no tools; what it then asks for is refused, stored, and the turn ends."""
    limits = Limits(rounds=1, on_breach=TELL_MODEL)
    talk = Talk(service, asks("a"), asks("b"), asks("c"), "2", tools=[look_up], limits=limits)
    result = await talk.client.call("hi", session_id="s")
    assert (result.outcome, [each.id for each in result.results]) == (Outcome.LIMIT, ["c"])
    assert [len(prompt.tools) for prompt in talk.model.prompts] == [1, 1, 0]
    assert len(await talk.log()) == 7
    await talk.client.call("and?", session_id="s")
    check_pairing(talk.model.prompts[3].messages)
    assert len(talk.prompts[3]) == 8


async def test_a_direct_result_is_not_returned_on_a_breach_that_the_model_is_told_of(
    service: AsyncSessionService,
) -> None:
    limits = Limits(calls=1, on_breach=TELL_MODEL)
    talk = Talk(service, asks("a", "b", name="hand_over"), "enough", tools=[DIRECT], limits=limits)
    assert (await talk.client.call("hi", session_id="s")).outcome is Outcome.REPLY


async def test_the_results_of_a_batch_are_stored_in_one_append(
    service: AsyncSessionService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H-4: never some of a batch's results without the others; B69."""
    batches: list[int] = []
    append = service.repository.append

    async def counting(session_id: str, events: Sequence[SessionEvent], **options: Any) -> AppendResult:
        batches.append(len(events))
        return await append(session_id, events, **options)

    monkeypatch.setattr(service.repository, "append", counting)
    talk = Talk(service, asks("a", "b", "c", name="hand_over"), tools=[DIRECT])
    await talk.client.call("hi", session_id="s")
    assert batches == [1, 1, 3]


@pytest.mark.parametrize("wrong", [{"rounds": -1}, {"calls": 1.5}, {"calls_per_tool": True}, {"on_breach": "stop"}])
def test_limits_are_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidValueError):
        Limits(**wrong)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def test_trigger_and_strategy_are_set_together(service: AsyncSessionService) -> None:
    """Seed 004: one alone is an error when the advisor is made."""
    with pytest.raises(InvalidValueError, match="set together"):
        AsyncSessionTurnAdvisor(service, compaction_trigger=TurnCountTrigger(2))
    with pytest.raises(InvalidValueError, match="set together"):
        AsyncSessionTurnAdvisor(service, compaction_strategy=WindowCompactionStrategy(last_turns=1))
