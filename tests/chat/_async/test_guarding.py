"""H-6: prompts of logs that were left open, and the warning that says so; the log is never repaired."""

from __future__ import annotations

import logging

import pytest

from tests.chat._async.talking import Talk
from tests.chat.speaking import asks, logged, look_up
from turnlog import AssistantMessage, AsyncSessionService, EventFilter, MessageType, Native, ReasoningPart
from turnlog.testing.factories import assistant, calls, event, results, user


@pytest.fixture
async def broken(service: AsyncSessionService) -> AsyncSessionService:
    """A session with two calls that were never answered, and a result for no call."""
    await service.create("s")
    log = [user(1, "a"), calls(2, "x"), user(3, "b"), calls(4, "y"), results(5, "z"), assistant(6, "1")]
    await service.append("s", log)
    return service


async def test_what_is_not_whole_is_left_out_with_one_warning(
    broken: AsyncSessionService, caplog: pytest.LogCaptureFixture
) -> None:
    """Seed 004, B19: one per prompt, naming the session, the positions, and the likely causes."""
    talk = Talk(broken, "2")
    await talk.client.call("c", session_id="s")
    assert talk.prompts == [["user: a", "user: b", "assistant: 1", "user: c"]]
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("turnlog.chat", logging.WARNING)
    assert "session 's'" in record.message
    assert "positions 2, 4, 5 " in record.message
    for cause in ("a filter that hides tool messages", "a run that failed before its tools had answered", "an import"):
        assert cause in record.message


async def test_the_log_is_untouched(broken: AsyncSessionService) -> None:
    """Seed 004: the repair is of the prompt, each time the same."""
    before = await broken.events("s")
    talk = Talk(broken, "2", "3")
    await talk.client.call("c", session_id="s")
    await talk.client.call("d", session_id="s")
    assert (await broken.events("s"))[: len(before)] == before
    assert talk.prompts[1][: len(talk.prompts[0])] == talk.prompts[0]


async def test_the_rounds_of_a_call_do_not_warn_again(
    broken: AsyncSessionService, caplog: pytest.LogCaptureFixture
) -> None:
    """Their history is the same."""
    talk = Talk(broken, asks("c1"), asks("c2"), "2", "3", tools=[look_up])
    await talk.client.call("c", session_id="s")
    assert len(caplog.records) == 1
    await talk.client.call("d", session_id="t")
    assert len(caplog.records) == 1


async def test_a_warning_names_no_more_positions_than_can_be_read(
    service: AsyncSessionService, caplog: pytest.LogCaptureFixture
) -> None:
    await service.create("s")
    await service.append("s", [user(1), *(calls(n, "x") for n in range(2, 60))])
    await Talk(service, "2").client.call("c", session_id="s")
    (record,) = caplog.records
    assert "20, 21, … are" in record.message
    assert "22" not in record.message


async def test_a_whole_log_warns_of_nothing(service: AsyncSessionService, caplog: pytest.LogCaptureFixture) -> None:
    talk = Talk(service, asks("c1", "c2"), "1", "2", tools=[look_up])
    await talk.client.call("a", session_id="s")
    await talk.client.call("b", session_id="s")
    assert not caplog.records


async def test_windows_keep_calls_and_results_together(
    service: AsyncSessionService, caplog: pytest.LogCaptureFixture
) -> None:
    """Seed 004, B03, B08, B10: a window is extended to the start of its turn, so the guard has nothing to do."""
    await Talk(service, asks("c1", "c2"), asks("c3"), "1", tools=[look_up]).client.call("a", session_id="s")
    whole = logged(await service.events("s"))
    for size in range(1, len(whole) + 1):
        await service.fork("s", f"fork {size}")
        talk = Talk(service, "2")
        await talk.client.call("b", session_id=f"fork {size}", event_filter=EventFilter.last(size))
        assert talk.prompts == [[*whole, "user: b"]]
    assert not caplog.records


async def test_a_keyword_that_cuts_a_round_costs_the_round(
    service: AsyncSessionService, caplog: pytest.LogCaptureFixture
) -> None:
    """Criteria aside from windows may hide a half: the other half goes too, and the warning says why."""
    talk = Talk(service, asks("c1", text="secret"), "1", "2", tools=[look_up])
    await talk.client.call("a", session_id="s")
    found = EventFilter(keyword="found", message_types={MessageType.TOOL})
    await talk.client.call("b", session_id="s", event_filter=found)
    assert talk.prompts[2] == ["user: b"]
    assert "positions 3 are" in caplog.text


async def test_case_b132_reasoning_stays_with_its_answer_or_goes_with_it(service: AsyncSessionService) -> None:
    """What a provider must get back is sent untouched; of a call without results nothing is sent."""
    thought = ReasoningPart(text="hm", signature="sealed")
    original = Native("anthropic", {"content": [{"type": "thinking", "thinking": "hm", "signature": "sealed"}]})
    whole = AssistantMessage([thought], tool_calls=asks("c1").tool_calls, native=original)
    dead = AssistantMessage([thought], tool_calls=asks("c2").tool_calls, native=original)
    await service.create("s")
    log = [user(1, "a"), event(2, whole), results(3, "c1"), event(4, dead), user(5, "b"), assistant(6, "1")]
    await service.append("s", log)
    talk = Talk(service, "2")
    await talk.client.call("c", session_id="s")
    sent = talk.model.prompts[0].messages
    assert [each for each in sent if isinstance(each, AssistantMessage)] == [whole, AssistantMessage("1")]
    assert sent[1].native == original
