"""Calls at once on one session, in threads, tasks and processes: one turn at a time, each whole (H-11)."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.chat.caller import lines, look
from tests.chat.strict import check_prompt
from tests.chat.test_scripts import check_log
from tests.concurrency.processes import WorkerProcess
from turnlog import (
    AssistantMessage,
    EventFilter,
    SessionBusyError,
    SessionEvent,
    SessionService,
    StoreUnavailableError,
    ToolCall,
    TurnInterruptedError,
    UserMessage,
    open_store,
)
from turnlog.chat import AsyncChatClient, AsyncSessionAdvisors, ChatClient, SessionAdvisors, tool
from turnlog.chat.guard import guarded
from turnlog.log.events import EventType
from turnlog.models.protocol import Prompt
from turnlog.models.scripted import AsyncScriptedModel, ScriptedModel
from turnlog.service import AsyncSessionService
from turnlog.testing.faults import CallFault, FaultyCalls, with_faults


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    """Where the calls meet; other stores run these tests with a fixture of their own."""
    return f"sqlite:{tmp_path}/s.db"


#: A call leaves a user message, a reply with two calls, two results, and the answer.
EVENTS_OF_A_TURN = 5


def check_turns(log: list[SessionEvent], turns: int) -> None:
    """Each turn stands in the log as one block, whole and of one run; together they make a valid prompt."""
    check_log(log)
    assert len(log) == turns * EVENTS_OF_A_TURN
    for start in range(0, len(log), EVENTS_OF_A_TURN):
        turn = log[start : start + EVENTS_OF_A_TURN]
        assert len({event.run_id for event in turn}) == 1
        assert isinstance(turn[0].message, UserMessage)
        assert turn[-1].content.text == f"{turn[0].content.text} answered"
    check_prompt(guarded(log).messages)


def test_threads_take_turns(store_url: str) -> None:
    with SessionService.open(store_url) as service:
        barrier = threading.Barrier(8)

        def work(name: str) -> list[Prompt]:
            model = ScriptedModel(lines(name, 6))
            client = ChatClient(model, advisors=SessionAdvisors(service), tools=[look])
            barrier.wait()
            for number in range(6):
                assert client.call(f"{name} {number}", session_id="s").text == f"{name} {number} answered"
            return model.prompts

        with ThreadPoolExecutor(8) as pool:
            prompts = [prompt for seen in pool.map(work, "abcdefgh") for prompt in seen]
        check_turns(service.events("s"), 48)
    for prompt in prompts:
        check_prompt(prompt.messages)


async def test_tasks_take_turns(store_url: str) -> None:
    async with AsyncSessionService.open(store_url) as service:

        async def work(name: str) -> None:
            model = AsyncScriptedModel(lines(name, 6))
            client = AsyncChatClient(model, advisors=AsyncSessionAdvisors(service), tools=[look])
            for number in range(6):
                assert (await client.call(f"{name} {number}", session_id="s")).text == f"{name} {number} answered"
            for prompt in model.prompts:
                check_prompt(prompt.messages)

        await asyncio.gather(*(work(name) for name in "abcdefgh"))
        check_turns(await service.events("s"), 48)


def test_processes_take_turns(store_url: str) -> None:
    with SessionService.open(store_url) as service:
        service.create("s")
        with ExitStack() as stack:
            callers = [
                stack.enter_context(WorkerProcess("call", "tests.chat.caller", url=store_url, name=name, calls=8))
                for name in "abcd"
            ]
            for caller in callers:
                assert caller.hear() == "ready"
            for caller in callers:
                caller.tell("go")
            assert [caller.hear() for caller in callers] == ["done"] * 4
        check_turns(service.events("s"), 32)


def test_tasks_and_threads_take_turns_with_one_another(store_url: str) -> None:
    """Whatever does not share a process's lock meets at the lease on the session."""

    async def in_tasks() -> None:
        async with AsyncSessionService.open(store_url) as service:
            client = AsyncChatClient(
                AsyncScriptedModel(lines("tasks", 8)), advisors=AsyncSessionAdvisors(service), tools=[look]
            )
            for number in range(8):
                await client.call(f"tasks {number}", session_id="s")

    with SessionService.open(store_url) as service:
        client = ChatClient(ScriptedModel(lines("threads", 8)), advisors=SessionAdvisors(service), tools=[look])
        other = threading.Thread(target=lambda: asyncio.run(in_tasks()))
        other.start()
        for number in range(8):
            client.call(f"threads {number}", session_id="s")
        other.join()
        check_turns(service.events("s"), 16)


def later() -> datetime:
    """A clock on which every lease that began before is over."""
    return datetime.now(UTC) + timedelta(minutes=1)


def test_the_turn_of_a_process_that_was_killed_is_taken_over(store_url: str) -> None:
    with SessionService.open(store_url) as service:
        service.create("s")
    with WorkerProcess("hang", "tests.chat.caller", url=store_url) as holder:
        assert holder.hear() == "ready"
        assert holder.hear() == "stuck"
    with SessionService(open_store(store_url), turn_wait=timedelta()) as service:
        client = ChatClient(ScriptedModel(["too early"]), advisors=SessionAdvisors(service))
        with pytest.raises(SessionBusyError):
            client.call("second", session_id="s")
        assert service.version("s") == 2, "nothing was stored"
    with SessionService(open_store(store_url, clock=later)) as service:
        model = ScriptedModel(lines("second", 1))
        ChatClient(model, advisors=SessionAdvisors(service), tools=[look]).call("second", session_id="s")
        for prompt in model.prompts:
            check_prompt(prompt.messages)
        said = [type(event.message).__name__ for event in service.events("s")]
        assert said[:3] == ["UserMessage", "AssistantMessage", "UserMessage"]


def test_a_holder_that_was_taken_over_stores_nothing_more(store_url: str) -> None:
    """It may have been asleep: its next write says so, and nothing of it lands in the other's turn."""

    @tool
    def sleep() -> str:
        """Sleep so long that somebody else takes over."""
        with SessionService(open_store(store_url, clock=later)) as other:
            ChatClient(ScriptedModel(["over"]), advisors=SessionAdvisors(other)).call("second", session_id="s")
        return "awake"

    with SessionService.open(store_url) as service:
        model = ScriptedModel([AssistantMessage(None, tool_calls=[ToolCall("c0", "sleep", "{}")]), "never said"])
        client = ChatClient(model, advisors=SessionAdvisors(service), tools=[sleep])
        with pytest.raises(TurnInterruptedError):
            client.call("first", session_id="s")
        said = [event.content.text for event in service.events("s")]
        assert said == ["first", "", "second", "over"]
        assert len(model.prompts) == 1


def test_what_is_no_part_of_the_turn_waits_and_own_events_pass(store_url: str) -> None:
    """Message events without the token, clear and rewind wait; own-type events do not."""
    with SessionService(open_store(store_url), turn_wait=timedelta()) as service:
        progress = EventType.of("APP.PROGRESS")

        @tool
        def disturb() -> str:
            """Try to write in the middle of the turn."""
            with pytest.raises(SessionBusyError):
                service.append_message("s", UserMessage("in between"))
            with pytest.raises(SessionBusyError):
                service.clear("s")
            with pytest.raises(SessionBusyError):
                service.rewind("s", 1)
            service.append("s", SessionEvent(session_id="s", type=progress, payload={"step": 1}))
            return "done"

        model = ScriptedModel([AssistantMessage(None, tool_calls=[ToolCall("c0", "disturb", "{}")]), "said"])
        result = ChatClient(model, advisors=SessionAdvisors(service), tools=[disturb]).call("go", session_id="s")
        assert result.text == "said"
        assert [str(event.type) for event in service.events("s")].count("APP.PROGRESS") == 1
        assert len(service.events("s", EventFilter.active())) == 4
        assert service.append_message("s", UserMessage("afterwards")).position == 6


def test_a_turn_whose_taking_got_no_answer_is_given_back(store_url: str) -> None:
    """The store may have taken it: the next call must not wait for the lease of one that is over."""
    with open_store(store_url) as store:
        calls = FaultyCalls(CallFault(operation="append", takes_effect=True))
        service = SessionService(with_faults(store, calls), turn_wait=timedelta())
        client = ChatClient(ScriptedModel(["there"]), advisors=SessionAdvisors(service))
        with pytest.raises(StoreUnavailableError):
            client.call("anybody?", session_id="s")
        assert client.call("and now?", session_id="s").text == "there"
        assert [event.content.text for event in store.events("s")] == ["anybody?", "and now?", "there"]
