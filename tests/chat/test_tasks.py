"""H-13, H-9, C-8: cancellation, tools side by side, and background work of an async client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, ContextVar
from datetime import timedelta
from typing import Any

import pytest

from tests.chat._async.talking import Talk
from tests.chat.gates import PATIENCE, Gate, Hanging, cancelled, check_next_turn
from tests.chat.speaking import asks, lines, logged, look_up
from turnlog import (
    AppendResult,
    AsyncSessionService,
    InvalidValueError,
    SessionBusyError,
    SessionEvent,
    Turn,
    open_async_store,
)
from turnlog.chat import AsyncChatClient, AsyncSessionAdvisors, ToolContext, ToolRequest, tool
from turnlog.chat.advisor import AsyncNextToolCall
from turnlog.compaction import SummarizingCompactionStrategy, SummaryRequest, TurnCountTrigger, WindowCompactionStrategy
from turnlog.log.messages import ToolResult
from turnlog.models.scripted import AsyncScriptedModel, Line, ScriptedModel
from turnlog.testing.factories import user

LONG = "so much was said " * 50
TENANT: ContextVar[str] = ContextVar("tenant", default="nobody")


@pytest.fixture
async def service() -> AsyncIterator[AsyncSessionService]:
    async with AsyncSessionService(open_async_store("memory:"), turn_wait=timedelta()) as opened:
        yield opened


class TestCancellation:
    async def test_during_a_tool(self, service: AsyncSessionService) -> None:
        """B18: the call stays open in the log, and no later prompt shows it."""
        gate = Gate()

        async def work(key: str) -> str:
            await gate.wait()
            return key

        talk = Talk(service, asks("c1", "c2", name="work"), "never", tools=[work])
        task = asyncio.create_task(talk.client.call("hi", session_id="s", run_id="r"))
        await gate.is_reached()
        await cancelled(task)
        assert await talk.log() == ["user: hi", "assistant: calls c1, c2"]
        gate.go_on.set()
        assert (await talk.client.call("hi", session_id="s", run_id="r")).text == "never"
        await check_next_turn(service)

    async def test_during_a_model_call(self, service: AsyncSessionService) -> None:
        model = Hanging(asks("c1"))
        client = AsyncChatClient(model, advisors=AsyncSessionAdvisors(service), tools=[look_up])
        task = asyncio.create_task(client.call("hi", session_id="s"))
        await model.gate.is_reached()
        await cancelled(task)
        assert logged(await service.events("s")) == ["user: hi", "assistant: calls c1", "tool c1: found c1"]
        await check_next_turn(service)

    @pytest.mark.parametrize("number", [1, 2, 3, 4])
    async def test_during_a_store(
        self, service: AsyncSessionService, monkeypatch: pytest.MonkeyPatch, number: int
    ) -> None:
        """Each append of the turn is finished, however often the caller is cancelled meanwhile; B62."""
        gate, appends = Gate(), 0
        append = service.repository.append

        async def slow(session_id: str, events: Sequence[SessionEvent], **options: Any) -> AppendResult:
            nonlocal appends
            appends += 1
            if appends == number:
                await gate.wait()
            return await append(session_id, events, **options)

        monkeypatch.setattr(service.repository, "append", slow)
        talk = Talk(service, asks("c1"), "done", tools=[look_up])
        task = asyncio.create_task(talk.client.call("hi", session_id="s", run_id="r"))
        await gate.is_reached()
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        gate.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asyncio.shield(task), PATIENCE)
        turn = ["user: hi", "assistant: calls c1", "tool c1: found c1", "assistant: done"]
        assert await talk.log() == turn[:number]
        await talk.client.call("hi", session_id="s", run_id="r")
        assert await talk.log() == turn
        await check_next_turn(service)

    async def test_while_waiting_for_a_turn(self) -> None:
        """Nothing is being written then: the caller goes at once, not when the wait is over."""
        async with AsyncSessionService(open_async_store("memory:"), turn_wait=timedelta(hours=1)) as service:
            await service.create("s")
            await service.append("s", user(1), turn=Turn("held", take=True))
            looked = asyncio.Event()
            version = service.repository.version

            async def looking(session_id: str) -> int:
                looked.set()
                return await version(session_id)

            service.repository.version = looking  # type: ignore[method-assign]
            task = asyncio.create_task(Talk(service, "never").client.call("hi", session_id="s"))
            await asyncio.wait_for(looked.wait(), PATIENCE)
            await cancelled(task)
            assert await service.version("s") == 1


class TestTools:
    async def test_tools_of_one_reply_run_at_the_same_time(self) -> None:
        """Async ones as tasks, sync ones in threads: each waits for all of them."""
        begun: list[str] = []
        all_begun = asyncio.Event()
        loop = asyncio.get_running_loop()
        in_threads = threading.Event()

        def note(key: str) -> None:
            begun.append(key)
            if len(begun) == 4:
                all_begun.set()
                in_threads.set()

        async def meet(key: str) -> str:
            if key in "ab":
                note(key)
                await asyncio.wait_for(all_begun.wait(), PATIENCE)
                return key
            return await asyncio.to_thread(block, key)

        def block(key: str) -> str:
            loop.call_soon_threadsafe(note, key)
            assert in_threads.wait(PATIENCE)
            return key

        model = AsyncScriptedModel([asks(*"abcd", name="meet"), "done"])
        await AsyncChatClient(model, tools=[meet]).call("hi")
        assert lines(model.prompts[1].messages[2:]) == [f"tool {key}: {key}" for key in "abcd"]

    async def test_no_more_than_the_cap(self) -> None:
        running: list[str] = []
        most: list[int] = []

        async def work(key: str) -> str:
            running.append(key)
            most.append(len(running))
            await asyncio.sleep(0)
            running.remove(key)
            return key

        model = AsyncScriptedModel([asks(*"abcdefgh", name="work"), "done"])
        await AsyncChatClient(model, tools=[work], tools_at_once=2).call("hi")
        assert (len(most), max(most)) == (8, 2)

    async def test_sync_tools_run_in_threads_with_the_callers_context(self) -> None:
        """So that a slow one does not block the loop."""
        seen: list[tuple[str, bool]] = []

        def note(key: str) -> str:
            seen.append((TENANT.get(), threading.current_thread() is threading.main_thread()))
            return key

        _ = TENANT.set("ada")
        model = AsyncScriptedModel([asks("a", "b", name="note"), asks("c", name="note"), "done"])
        await AsyncChatClient(model, tools=[note]).call("hi")
        assert seen == [("ada", False)] * 3

    async def test_an_executor_replaces_these_threads(self) -> None:
        """H-13"""
        seen: list[str] = []

        def note(key: str) -> str:
            seen.append(threading.current_thread().name)
            return key

        with ThreadPoolExecutor(1, "mine") as executor:
            model = AsyncScriptedModel([asks("a", "b", name="note"), "done"])
            await AsyncChatClient(model, tools=[note], executor=executor).call("hi")
        assert seen == ["mine_0"] * 2

    async def test_an_object_with_an_async_call_is_a_tool(self) -> None:
        class Searching:
            async def __call__(self, key: str) -> str:
                return f"searched {key}"

        model = AsyncScriptedModel([asks("a", name="search"), "done"])
        await AsyncChatClient(model, tools=[tool(Searching(), name="search")]).call("hi")
        assert lines(model.prompts[1].messages[2:]) == ["tool a: searched a"]

    async def test_when_an_advisor_raises_the_others_are_cancelled(self) -> None:
        begun: list[str] = []
        ended: list[str] = []
        other = asyncio.Event()

        class Strict:
            async def around_tool_call(self, request: ToolRequest, call_next: AsyncNextToolCall) -> ToolResult:
                if request.call.id == "a":
                    await asyncio.wait_for(other.wait(), PATIENCE)
                    raise PermissionError
                return await call_next(request)

        async def work(key: str) -> str:
            begun.append(key)
            other.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(key)
            return key

        client = AsyncChatClient(AsyncScriptedModel([asks("a", "b", name="work")]), advisors=[Strict()], tools=[work])
        with pytest.raises(PermissionError):
            await client.call("hi")
        assert (begun, ended) == (["b"], ["b"])


class TestBackground:
    """C-8: with ``async_compaction`` the reply is returned first."""

    def summarizing(self, service: AsyncSessionService, *said: Line) -> tuple[Talk, Gate, list[str]]:
        gate = Gate()
        seen: list[str] = []

        async def summarize(_: SummaryRequest) -> str:
            seen.append(TENANT.get())
            await gate.wait()
            return "They talked."

        strategy = SummarizingCompactionStrategy(summarize, WindowCompactionStrategy(last_turns=1))
        trigger = TurnCountTrigger(2)
        talk = Talk(service, *said, compaction_trigger=trigger, compaction_strategy=strategy, async_compaction=True)
        return talk, gate, seen

    async def test_it_runs_behind_the_reply_with_the_callers_context(self, service: AsyncSessionService) -> None:
        talk, gate, seen = self.summarizing(service, LONG, "2", "3")
        await talk.client.call("a", session_id="s")
        token = TENANT.set("ada")
        assert (await talk.client.call("b", session_id="s")).text == "2"
        TENANT.reset(token)
        await gate.is_reached()
        assert not await talk.advisors.close(timedelta())
        assert len(await talk.log()) == 4
        gate.go_on.set()
        assert await talk.advisors.close()
        assert seen == ["ada"]
        await talk.client.call("c", session_id="s")
        assert talk.prompts[2][1:] == ["assistant: They talked.", "user: b", "assistant: 2", "user: c"]

    async def test_a_turn_that_overtakes_it_stays_in_the_view(self, service: AsyncSessionService) -> None:
        """Seed 004: it lands with the same summary, and no second model call."""
        talk, gate, seen = self.summarizing(service, LONG, "2", "3", "4")
        await talk.client.call("a", session_id="s")
        await talk.client.call("b", session_id="s")
        await gate.is_reached()
        await talk.client.call("c", session_id="s")
        gate.go_on.set()
        assert await talk.advisors.close()
        assert len(seen) == 1
        await talk.client.call("d", session_id="s")
        kept = ["assistant: They talked.", "user: b", "assistant: 2", "user: c", "assistant: 3", "user: d"]
        assert talk.prompts[3][1:] == kept

    async def test_what_a_finished_call_has_left_running_begins_a_turn_of_its_own(
        self, service: AsyncSessionService
    ) -> None:
        """H-12: it has the context of the finished call, on the same branch."""
        gate = Gate()
        left: list[asyncio.Task[str]] = []
        talk = Talk(service, asks("c1", name="leave"), "1", "2")

        async def later() -> str:
            await gate.wait()
            return (await talk.client.call("later", session_id="s")).text

        async def leave(key: str) -> str:
            left.append(asyncio.create_task(later()))
            return key

        await talk.client.call("go", session_id="s", tools=[leave])
        gate.go_on.set()
        assert await asyncio.wait_for(left[0], PATIENCE) == "2"
        assert (await talk.log())[-2:] == ["user: later", "assistant: 2"]


async def test_a_second_call_on_a_branch_waits_for_the_first(service: AsyncSessionService) -> None:
    """H-12: one at a time per branch, though both are part of one turn."""
    patient = AsyncSessionService(service.repository)
    advisors = AsyncSessionAdvisors(patient)
    model = Hanging("did it", "did it", hangs_at=0)

    async def delegate(key: str) -> str:
        client = AsyncChatClient(model, advisors=advisors)
        return (await client.call(f"do {key}", session_id="s", branch="x")).text

    talk = Talk(patient, asks("a", "b", name="delegate"), "done", tools=[delegate])
    task = asyncio.create_task(talk.client.call("go", session_id="s"))
    await model.gate.is_reached()
    for _ in range(50):
        await asyncio.sleep(0)
    assert [said for said in await talk.log() if said.startswith("[x]")] == ["[x] user: do a"]
    model.gate.go_on.set()
    await asyncio.wait_for(task, PATIENCE)
    assert [said for said in await talk.log() if said.startswith("[x]")] == [
        *("[x] user: do a", "[x] assistant: did it"),
        *("[x] user: do b", "[x] assistant: did it"),
    ]


async def test_what_is_made_for_threads_is_refused() -> None:
    """When the client is made."""
    model: Any = ScriptedModel(["1"])
    with pytest.raises(InvalidValueError, match="ScriptedModel is a model for threads: use it with ChatClient"):
        AsyncChatClient(model)


async def test_a_token_without_its_context_does_not_share_the_holders_branch(service: AsyncSessionService) -> None:
    """H-12: one call at a time per branch, though nothing says here that the second is made from inside the first."""
    refused: list[str] = []
    talk = Talk(service, asks("c1", name="intrude"), "1", "2")

    async def intrude(key: str, context: ToolContext) -> str:
        async def call() -> None:
            with pytest.raises(SessionBusyError):
                await talk.client.call("me too", session_id="s", turn=context.turn)
            refused.append((await talk.client.call("me too", session_id="s", turn=context.turn, branch="x")).text)

        await asyncio.create_task(call(), context=Context())
        return key

    await talk.client.call("go", session_id="s", tools=[intrude])
    assert refused == ["1"]
