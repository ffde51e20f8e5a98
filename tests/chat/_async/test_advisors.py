"""H-1: advisors wrap a call, each model call, and each tool call; ``call_next`` may be called again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chat._async.talking import Talk, metadata_of
from tests.chat.speaking import DIRECT, asks, lines, look_up
from turnlog import (
    AssistantMessage,
    AsyncSessionService,
    InvalidValueError,
    ToolResult,
    ToolStatus,
    UserMessage,
)
from turnlog.chat import (
    RESPONSE_EVENT_IDS,
    AsyncChatClient,
    AsyncSessionAdvisors,
    AsyncSessionMemoryAdvisor,
    AsyncSessionTurnAdvisor,
    ChatResult,
    MessageFilter,
    ModelRequest,
    Outcome,
    ToolRequest,
    TurnRequest,
)
from turnlog.chat.advisor import AsyncNextModelCall, AsyncNextToolCall, AsyncNextTurn
from turnlog.errors import RunMismatchError
from turnlog.models.protocol import Reply
from turnlog.models.scripted import AsyncScriptedModel


class Noting:
    """Notes what it wraps, in each scope."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self.name = name
        self.notes = notes

    async def around_turn(self, request: TurnRequest, call_next: AsyncNextTurn) -> ChatResult:
        self.notes.append(f"{self.name} turn")
        result = await call_next(request)
        self.notes.append(f"{self.name} turn ends")
        return result

    async def around_model_call(self, request: ModelRequest, call_next: AsyncNextModelCall) -> Reply:
        self.notes.append(f"{self.name} model")
        return await call_next(request)

    async def around_tool_call(self, request: ToolRequest, call_next: AsyncNextToolCall) -> ToolResult:
        self.notes.append(f"{self.name} tool {request.call.id}")
        return await call_next(request)


class Twice:
    """Asks the model again whatever it said."""

    def __init__(self, times: int = 2) -> None:
        self.times = times

    async def around_model_call(self, request: ModelRequest, call_next: AsyncNextModelCall) -> Reply:
        for _ in range(self.times - 1):
            await call_next(request)
        return await call_next(request)


async def test_the_first_is_outermost_in_each_scope() -> None:
    notes: list[str] = []
    model = AsyncScriptedModel([asks("c1"), "done"])
    client = AsyncChatClient(model, advisors=[Noting("a", notes), Noting("b", notes)], tools=[look_up])
    await client.call("hi")
    assert notes == [
        *("a turn", "b turn"),
        *("a model", "b model"),
        *("a tool c1", "b tool c1"),
        *("a model", "b model"),
        *("b turn ends", "a turn ends"),
    ]


async def test_both_advisors_are_the_session(service: AsyncSessionService) -> None:
    """Seed 004: turn, then memory; both give history, compaction, and the results of a loop without a last round."""
    advisors = AsyncSessionAdvisors(service)
    assert list(advisors) == [advisors.turn, advisors.memory]
    assert (len(advisors), advisors[0], advisors[1], advisors[-1]) == (
        2,
        advisors.turn,
        advisors.memory,
        advisors.memory,
    )
    assert advisors[:] == (advisors.turn, advisors.memory)
    assert isinstance(advisors.turn, AsyncSessionTurnAdvisor)
    assert isinstance(advisors.memory, AsyncSessionMemoryAdvisor)


async def test_the_order_of_the_two_does_not_matter(service: AsyncSessionService) -> None:
    advisors = AsyncSessionAdvisors(service)
    model = AsyncScriptedModel([asks("c1"), "1", "2"])
    client = AsyncChatClient(model, advisors=[advisors.memory, advisors.turn], tools=[look_up])
    await client.call("a", session_id="s")
    await client.call("b", session_id="s")
    assert [event.type.name for event in await service.events("s")] == ["MESSAGE"] * 6
    assert len(model.prompts[2].messages) == 5


async def test_inside_the_memory_a_second_model_call_leaves_one_reply(service: AsyncSessionService) -> None:
    """Two model calls, one stored reply: what an advisor between memory and model throws away was never said."""
    talk = Talk(service)
    model = AsyncScriptedModel(["first", "second"])
    result = await AsyncChatClient(model, advisors=[*talk.advisors, Twice()]).call("hi", session_id="s")
    assert result.text == "second"
    assert model.prompts[0] == model.prompts[1]
    assert await talk.log() == ["user: hi", "assistant: second"]


@pytest.mark.parametrize("times", [2, 3, 4])
async def test_outside_the_memory_a_repeated_model_call_stores_the_request_once(
    service: AsyncSessionService, times: int
) -> None:
    """Every reply was given and is stored; the question was asked once, and each prompt ends with it."""
    talk = Talk(service, "0")
    await talk.client.call("before", session_id="s")
    replies = [f"reply {number}" for number in range(times)]
    model = AsyncScriptedModel(replies)
    result = await AsyncChatClient(model, advisors=[Twice(times), *talk.advisors]).call("hi", session_id="s")
    assert result.text == replies[-1]
    assert all(prompt == model.prompts[0] for prompt in model.prompts)
    assert (await talk.log())[2:] == ["user: hi", *(f"assistant: {reply}" for reply in replies)]
    events = await service.events("s")
    assert result.session.request_event_id == events[2].id
    assert result.session.response_event_ids == [events[-1].id]


async def test_outside_the_memory_tool_results_are_stored_once_too(service: AsyncSessionService) -> None:
    talk = Talk(service)
    model = AsyncScriptedModel([asks("c0"), asks("c1"), "first", "second"])
    client = AsyncChatClient(model, advisors=[Twice(), *talk.advisors], tools=[look_up])
    await client.call("hi", session_id="s")
    log = await talk.log()
    assert log == [
        "user: hi",
        *("assistant: calls c0", "assistant: calls c1", "tool c1: found c1"),
        *("assistant: first", "assistant: second"),
    ]


async def test_an_advisor_may_say_the_same_again_behind_a_reply(service: AsyncSessionService) -> None:
    """A request that carries the stored reply says something new behind it, however alike."""

    class GoOn:
        async def around_model_call(self, request: ModelRequest, call_next: AsyncNextModelCall) -> Reply:
            reply = await call_next(request)
            messages = request.messages
            for _ in range(2):
                messages = (*messages, reply.message, UserMessage("go on"))
                reply = await call_next(request.replace(messages=messages))
            return reply

    talk = Talk(service)
    model = AsyncScriptedModel(["1", "2", "3"])
    await AsyncChatClient(model, advisors=[GoOn(), *talk.advisors]).call("go on", session_id="s")
    assert await talk.log() == [
        *("user: go on", "assistant: 1"),
        *("user: go on", "assistant: 2"),
        *("user: go on", "assistant: 3"),
    ]
    assert [len(prompt.messages) for prompt in model.prompts] == [1, 3, 5]


async def test_the_request_event_is_that_of_the_last_model_call(service: AsyncSessionService) -> None:
    """H-5: absent where nothing of its request was stored, though an earlier one's was."""

    class Hinting:
        async def around_model_call(self, request: ModelRequest, call_next: AsyncNextModelCall) -> Reply:
            reply = await call_next(request)
            return await call_next(request.replace(messages=(*request.messages, reply.message, UserMessage("hint"))))

    talk = Talk(service, message_filter=~MessageFilter.contains_text("hint"))
    client = AsyncChatClient(AsyncScriptedModel(["1", "2"]), advisors=[Hinting(), *talk.advisors])
    result = await client.call("hi", session_id="s")
    assert result.session.request_event_id is None
    assert await talk.log() == ["user: hi", "assistant: 1", "assistant: 2"]


async def test_around_turn_may_run_the_turn_again(service: AsyncSessionService) -> None:
    """Outside the session the second run is a retry of the first: finished, it is answered from the log (H-8)."""

    class Again:
        async def around_turn(self, request: TurnRequest, call_next: AsyncNextTurn) -> ChatResult:
            first = await call_next(request)
            second = await call_next(request)
            assert first.text == second.text
            return second

    talk = Talk(service)
    model = AsyncScriptedModel(["hello"])
    await AsyncChatClient(model, advisors=[Again(), *talk.advisors]).call("hi", session_id="s")
    assert await talk.log() == ["user: hi", "assistant: hello"]


async def test_around_turn_may_say_something_else(service: AsyncSessionService) -> None:
    """That is another run, and a turn of its own; the first is its history."""

    class Improving:
        async def around_turn(self, request: TurnRequest, call_next: AsyncNextTurn) -> ChatResult:
            for _ in range(2):
                draft = await call_next(request)
                request = request.replace(messages=(UserMessage(f"Better than {draft.text}?"),))
            return await call_next(request)

    talk = Talk(service)
    model = AsyncScriptedModel(["1", "2", "3", "4"])
    client = AsyncChatClient(model, advisors=[Improving(), *talk.advisors])
    result = await client.call("hi", session_id="s")
    log = ["user: hi", "assistant: 1", "user: Better than 1?", "assistant: 2", "user: Better than 2?", "assistant: 3"]
    assert await talk.log() == log
    assert lines(model.prompts[2].messages) == log[:5]
    runs = [event.run_id for event in await service.events("s")]
    assert (len(set(runs)), runs[-1]) == (3, result.session.run_id)
    with pytest.raises(RunMismatchError):
        await client.call("hi", session_id="s", run_id="named")


async def test_around_turn_may_run_a_failed_turn_again(service: AsyncSessionService) -> None:
    class Retry:
        async def around_turn(self, request: TurnRequest, call_next: AsyncNextTurn) -> ChatResult:
            try:
                return await call_next(request)
            except ConnectionError:
                return await call_next(request)

    talk = Talk(service)
    model = AsyncScriptedModel([asks("c1"), ConnectionError(), "done"])
    client = AsyncChatClient(model, advisors=[Retry(), *talk.advisors], tools=[look_up])
    assert (await client.call("hi", session_id="s")).text == "done"
    assert await talk.log() == ["user: hi", "assistant: calls c1", "tool c1: found c1", "assistant: done"]


async def test_an_advisor_may_answer_in_the_models_place(service: AsyncSessionService) -> None:
    """A canned reply is stored like any other; the model is not asked."""

    class Canned:
        async def around_model_call(self, request: ModelRequest, call_next: AsyncNextModelCall) -> Reply:
            del request, call_next
            return Reply(message=AssistantMessage("no"))

    talk = Talk(service)
    client = AsyncChatClient(AsyncScriptedModel([]), advisors=[*talk.advisors, Canned()])
    assert (await client.call("hi", session_id="s")).text == "no"
    assert await talk.log() == ["user: hi", "assistant: no"]


async def test_an_advisor_may_answer_for_a_tool(service: AsyncSessionService) -> None:
    """Its result is given the id of the call, so that every call of a batch has one."""

    class Denying:
        async def around_tool_call(self, request: ToolRequest, call_next: AsyncNextToolCall) -> ToolResult:
            if request.call.id == "c1":
                return ToolResult("other", "denied", ToolStatus.ERROR)
            return await call_next(request)

    talk = Talk(service)
    model = AsyncScriptedModel([asks("c1", "c2"), "done"])
    client = AsyncChatClient(model, advisors=[*talk.advisors, Denying()], tools=[look_up])
    await client.call("hi", session_id="s")
    assert (await talk.log())[2:4] == ["tool c1: denied (error)", "tool c2: found c2"]


async def test_a_tool_advisor_returns_a_result() -> None:
    class Forgetful:
        async def around_tool_call(self, request: ToolRequest, call_next: AsyncNextToolCall) -> Any:
            await call_next(request)

    model = AsyncScriptedModel([asks("c1")])
    with pytest.raises(InvalidValueError, match="around_tool_call returns a ToolResult"):
        await AsyncChatClient(model, advisors=[Forgetful()], tools=[look_up]).call("hi")


async def test_a_tool_call_may_be_made_again(service: AsyncSessionService) -> None:
    """With the same idempotency key: it is the same call."""
    keys: list[str] = []

    class Twofold:
        async def around_tool_call(self, request: ToolRequest, call_next: AsyncNextToolCall) -> ToolResult:
            keys.append(request.idempotency_key)
            await call_next(request)
            return await call_next(request)

    done: list[str] = []

    def note(key: str) -> str:
        done.append(key)
        return str(len(done))

    talk = Talk(service)
    model = AsyncScriptedModel([asks("c1", name="note"), "done"])
    client = AsyncChatClient(model, advisors=[*talk.advisors, Twofold()], tools=[note])
    await client.call("hi", session_id="s")
    assert done == ["c1", "c1"]
    assert len(keys) == 1
    assert (await talk.log())[2] == "tool c1: 2"


async def test_what_an_advisor_raises_reaches_the_caller(service: AsyncSessionService) -> None:
    """Unlike a tool's exception it is not the model's to know; the log stays one that the next turn can use."""

    class Strict:
        async def around_tool_call(self, request: ToolRequest, call_next: AsyncNextToolCall) -> ToolResult:
            del call_next
            raise PermissionError(request.call.name)

    talk = Talk(service, "fine")
    client = AsyncChatClient(AsyncScriptedModel([asks("c1")]), advisors=[*talk.advisors, Strict()], tools=[look_up])
    with pytest.raises(PermissionError):
        await client.call("hi", session_id="s")
    await talk.client.call("and now?", session_id="s")
    assert talk.prompts == [["user: hi", "user: and now?"]]


async def test_memory_alone_gives_history_without_direct_results(
    service: AsyncSessionService, caplog: pytest.LogCaptureFixture
) -> None:
    """Seed 004: no compaction, and the results of a tool that returns directly are not stored."""

    model = AsyncScriptedModel([asks("c1", name="hand_over"), "2"])
    client = AsyncChatClient(model, advisors=[AsyncSessionMemoryAdvisor(service)], tools=[DIRECT])
    result = await client.call("a", session_id="s")
    assert (result.outcome, result.text) == (Outcome.DIRECT, "handed over c1")
    assert [event.content.type for event in await service.events("s")] == ["user", "assistant"]
    await client.call("b", session_id="s")
    assert model.prompts[1].messages == (UserMessage("a"), UserMessage("b"))
    assert len(caplog.records) == 1


async def test_the_turn_advisor_alone_stores_nothing(service: AsyncSessionService) -> None:
    """Seed 004: nothing of the conversation; the session is made."""
    model = AsyncScriptedModel([asks("c1"), "1", "2", asks("c2", name="hand_over")])
    client = AsyncChatClient(model, advisors=[AsyncSessionTurnAdvisor(service)], tools=[look_up, DIRECT])
    result = await client.call("a", session_id="s", session_metadata={"team": "a"})
    await client.call("b", session_id="s")
    assert (await client.call("c", session_id="s")).outcome is Outcome.DIRECT
    assert await service.events("s") == []
    assert model.prompts[2].messages == (UserMessage("b"),)
    assert RESPONSE_EVENT_IDS not in result.context
    assert await metadata_of(service, "s") == {"team": "a"}


async def test_case_b78_a_call_may_be_kept_in_two_stores(service: AsyncSessionService) -> None:
    """Each by advisors of its own; neither's history is sent twice."""
    async with AsyncSessionService.open("memory:") as audit:
        model = AsyncScriptedModel([asks("c1"), "1", "2"])
        advisors = [*AsyncSessionAdvisors(service), *AsyncSessionAdvisors(audit)]
        client = AsyncChatClient(model, advisors=advisors, tools=[look_up])
        await client.call("a", session_id="s")
        await client.call("b", session_id="s")
        kept = [lines([event.content for event in await each.events("s")]) for each in (service, audit)]
        assert kept[0] == kept[1]
        assert lines(model.prompts[2].messages) == kept[0][:5]


async def test_without_advisors_there_is_no_session() -> None:
    model = AsyncScriptedModel(["1", "2"])
    client = AsyncChatClient(model)
    await client.call("a")
    await client.call("b")
    assert model.prompts[1].messages == (UserMessage("b"),)
