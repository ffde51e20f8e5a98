"""C-8, H-4: the turn advisor compacts once the call has returned; it is best effort."""

from __future__ import annotations

from contextvars import ContextVar
from datetime import timedelta

import pytest

from tests.chat._async.talking import Talk
from tests.chat.speaking import asks, look_up
from turnlog import AssistantMessage, AsyncSessionService
from turnlog.chat import AsyncChatClient, AsyncSessionAdvisors
from turnlog.compaction import (
    ContextWindowTrigger,
    SummarizingCompactionStrategy,
    SummaryRequest,
    TurnCountTrigger,
    WindowCompactionStrategy,
)
from turnlog.models.protocol import Reply, Usage
from turnlog.models.scripted import AsyncScriptedModel, Line

LAST = WindowCompactionStrategy(last_turns=1)
TENANT: ContextVar[str] = ContextVar("tenant", default="nobody")


async def test_compaction_runs_behind_the_call(service: AsyncSessionService) -> None:
    """Seed 004: once the call has returned; so never inside a tool loop, however many rounds."""
    said: list[Line] = ["1", asks("c1"), asks("c2"), "2", "3"]
    talk = Talk(service, *said, tools=[look_up], compaction_trigger=TurnCountTrigger(2), compaction_strategy=LAST)
    await talk.client.call("a", session_id="s")
    assert await service.version("s") == 2
    await talk.client.call("b", session_id="s")
    assert all(prompt[0] == "user: a" for prompt in talk.prompts[1:])
    events = await service.events("s")
    assert [event.position for event in events if event.is_boundary] == [9]
    await talk.client.call("c", session_id="s")
    assert talk.prompts[4][0] == "user: b"


async def test_a_summary_is_made_with_the_callers_context(service: AsyncSessionService) -> None:
    seen: list[str] = []

    def summarize(_: SummaryRequest) -> str:
        seen.append(TENANT.get())
        return "They talked."

    strategy = SummarizingCompactionStrategy(summarize, LAST)
    long = "so much " * 100
    talk = Talk(service, long, "2", "3", compaction_trigger=TurnCountTrigger(2), compaction_strategy=strategy)
    _ = TENANT.set("ada")
    await talk.client.call("a", session_id="s")
    await talk.client.call("b", session_id="s")
    assert seen == ["ada"]
    await talk.client.call("c", session_id="s")
    assert talk.prompts[2][1:] == ["assistant: They talked.", "user: b", "assistant: 2", "user: c"]


async def test_a_compaction_that_fails_is_logged_and_the_reply_returned(
    service: AsyncSessionService, caplog: pytest.LogCaptureFixture
) -> None:
    """Seed 004: best effort. A trigger is any callable, and may raise anything."""

    def broken(_: object) -> bool:
        raise RuntimeError("no counter")

    talk = Talk(service, "1", "2", compaction_trigger=broken, compaction_strategy=LAST)
    assert (await talk.client.call("a", session_id="s")).text == "1"
    (record,) = caplog.records
    assert "session 's': its compaction failed" in record.message
    assert record.exc_info is not None
    assert (await talk.client.call("b", session_id="s")).text == "2"


async def test_after_a_failed_call_nothing_is_compacted(service: AsyncSessionService) -> None:
    """C-8"""
    asked: list[object] = []

    def noting(request: object) -> bool:
        asked.append(request)
        return True

    talk = Talk(service, ConnectionError("no"), compaction_trigger=noting, compaction_strategy=LAST)
    with pytest.raises(ConnectionError):
        await talk.client.call("a", session_id="s")
    assert not asked


async def test_without_a_trigger_nothing_is_compacted(service: AsyncSessionService) -> None:
    talk = Talk(service, *"123456")
    for word in "abcdef":
        await talk.client.call(word, session_id="s")
    assert not [event for event in await service.events("s") if event.is_boundary]
    assert await talk.advisors.close()


async def test_close_has_nothing_to_wait_for(service: AsyncSessionService) -> None:
    advisors = AsyncSessionAdvisors(service)
    assert await advisors.close(timedelta())
    assert await advisors.turn.close()


async def test_a_sub_agents_call_does_not_compact(service: AsyncSessionService) -> None:
    """It ends inside its caller's turn; once that has ended, the session is compacted, and once only; B55."""
    advisors = AsyncSessionAdvisors(service, compaction_trigger=TurnCountTrigger(2), compaction_strategy=LAST)

    async def delegate(key: str) -> str:
        client = AsyncChatClient(AsyncScriptedModel([f"did {key}"]), advisors=advisors)
        return (await client.call(key, session_id="s", branch=f"sub.{key}")).text

    model = AsyncScriptedModel(["1", asks("a", "b", name="delegate"), "2"])
    client = AsyncChatClient(model, advisors=advisors, tools=[delegate])
    await client.call("first", session_id="s")
    await client.call("second", session_id="s")
    events = await service.events("s")
    assert [event.is_boundary for event in events] == [False] * 11 + [True]


async def test_a_sub_agent_with_a_session_of_its_own_compacts_it(service: AsyncSessionService) -> None:
    advisors = AsyncSessionAdvisors(service, compaction_trigger=TurnCountTrigger(2), compaction_strategy=LAST)

    async def delegate(key: str) -> str:
        client = AsyncChatClient(AsyncScriptedModel([f"did {key}"]), advisors=advisors)
        return (await client.call(key, session_id="sub", branch="sub")).text

    model = AsyncScriptedModel([asks("a", name="delegate"), asks("b", name="delegate"), "2"])
    await AsyncChatClient(model, advisors=advisors, tools=[delegate]).call("go", session_id="s")
    assert [event.is_boundary for event in await service.events("sub")] == [False] * 4 + [True]


async def test_a_trigger_may_go_by_what_the_provider_reported(service: AsyncSessionService) -> None:
    """C-2: the tokens of the last model call are kept with the reply."""

    def used(text: str, tokens: int) -> Reply:
        return Reply(message=AssistantMessage(text), usage=Usage(tokens, 1))

    full = ContextWindowTrigger(0.8, 1_000)
    talk = Talk(service, "1", used("2", 700), used("3", 800), compaction_trigger=full, compaction_strategy=LAST)
    for said in "abc":
        await talk.client.call(said, session_id="s")
    events = await service.events("s")
    assert [event.is_boundary for event in events] == [False] * 6 + [True]
    assert events[5].content.metadata == {"turnlog.usage": {"input_tokens": 800, "output_tokens": 1}}


async def test_a_compaction_that_lands_inside_a_turn_does_not_change_its_prompts(service: AsyncSessionService) -> None:
    """H-3: the history is that of the turn's beginning, and a provider's cache holds; the next turn's is shorter."""

    async def tidy(key: str) -> str:
        done = await service.compact("s", LAST)
        return f"{key}: {len(done.covered_events)} left"

    talk = Talk(service, "1", "2", asks("c1", name="tidy"), "3", "4", tools=[tidy])
    for said in "abcd":
        await talk.client.call(said, session_id="s")
    before = ["user: a", "assistant: 1", "user: b", "assistant: 2", "user: c"]
    assert talk.prompts[2] == before
    assert talk.prompts[3] == [*before, "assistant: calls c1", "tool c1: c1: 4 left"]
    assert talk.prompts[4][0] == "user: c"
