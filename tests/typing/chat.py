"""What mypy and basedpyright make of a user's own advisors and tools.

Nothing here runs: ``scripts/lint`` checks it. The ignore comments mark what must *not* type-check; an idle one is an
error.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, assert_type

from turnlog import AssistantMessage, AsyncSessionService, EventFilter, Message, SessionService, UserMessage
from turnlog.chat import (
    Advisor,
    AsyncAdvisor,
    AsyncChatClient,
    AsyncChatStream,
    AsyncSessionAdvisors,
    AsyncSessionMemoryAdvisor,
    AsyncSessionTurnAdvisor,
    CallContext,
    ChatClient,
    ChatResult,
    ChatStream,
    Limits,
    MessageFilter,
    ModelRequest,
    OnBreach,
    Outcome,
    SessionAdvisors,
    SessionMemoryAdvisor,
    SessionTurnAdvisor,
    Tool,
    ToolContext,
    ToolError,
    ToolRequest,
    TurnRequest,
    schema_tool,
    tool,
)
from turnlog.chat.advisor import (
    AsyncNextModelCall,
    AsyncNextToolCall,
    AsyncNextTurn,
    NextModelCall,
    NextToolCall,
    NextTurn,
)
from turnlog.compaction import TurnCountTrigger, WindowCompactionStrategy
from turnlog.log.messages import ToolResult, ToolStatus
from turnlog.models import AsyncScriptedModel, ChatModel, Delta, Prompt, Reply, ScriptedModel, StreamItem, Usage


class Timing:
    """An advisor of all three scopes."""

    def around_turn(self, request: TurnRequest, call_next: NextTurn) -> ChatResult:
        _ = assert_type(request.messages, tuple[Message, ...])
        _ = assert_type(request.context, dict[str, Any])
        result = call_next(request.replace(options={"temperature": 0}))
        return assert_type(result, ChatResult)

    def around_model_call(self, request: ModelRequest, call_next: NextModelCall) -> Reply:
        first = assert_type(call_next(request), Reply)
        return first if first.message.text else call_next(request.replace(messages=(UserMessage("Again."),)))

    def around_tool_call(self, request: ToolRequest, call_next: NextToolCall) -> ToolResult:
        _ = assert_type(request.tool, Tool | None)
        _ = assert_type(request.idempotency_key, str)
        if request.call.name == "forbidden":
            return ToolResult(request.call.id, "Not allowed.", ToolStatus.ERROR)
        return call_next(request)


class AsyncTiming:
    """The same for tasks."""

    async def around_turn(self, request: TurnRequest, call_next: AsyncNextTurn) -> ChatResult:
        return await call_next(request)

    async def around_model_call(self, request: ModelRequest, call_next: AsyncNextModelCall) -> Reply:
        return assert_type(await call_next(request), Reply)

    async def around_tool_call(self, request: ToolRequest, call_next: AsyncNextToolCall) -> ToolResult:
        return await call_next(request)


class Wrong:
    """Its method gives no reply."""

    def around_model_call(self, request: ModelRequest, call_next: NextModelCall) -> str:
        return call_next(request).message.text


class Nothing:
    """It wraps nothing."""


def weather(city: str, context: ToolContext, days: int = 1) -> dict[str, int]:
    """The weather in a city."""
    if not city:
        raise ToolError("which city?")
    _ = assert_type(context.turn, str | None)
    return {city: days}


async def search(text: str) -> list[str]:
    """Search."""
    return [text]


class Model:
    """A user's own model."""

    def generate(self, prompt: Prompt) -> Reply:
        return Reply(message=AssistantMessage(prompt.messages[-1].type), usage=Usage(1, 2))

    def stream(self, prompt: Prompt) -> Iterator[StreamItem]:
        yield Delta(text="…")
        yield self.generate(prompt)


def tools() -> None:
    _ = assert_type(tool(weather), Tool)
    _ = assert_type(tool(search, name="find", description="Find.", return_direct=True), Tool)
    _ = tool(weather, return_direct=lambda result: result.status is ToolStatus.OK)
    _ = schema_tool(weather, name="weather", parameters={"type": "object"})
    _ = tool("weather")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    _ = schema_tool(weather, name="weather")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def advisors(service: SessionService) -> None:
    mine: Advisor = Timing()
    wrong: Advisor = Wrong()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    nothing: Advisor = Nothing()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    sync: AsyncAdvisor = Timing()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    both = SessionAdvisors(
        service,
        compaction_trigger=TurnCountTrigger(20),
        compaction_strategy=WindowCompactionStrategy(last_turns=10),
        async_compaction=True,
        event_filter=EventFilter.last(50),
        message_filter=~MessageFilter.contains_text("secret") & (lambda message: bool(message.metadata)),
    )
    _ = assert_type(both.turn, SessionTurnAdvisor)
    _ = assert_type(both.memory, SessionMemoryAdvisor)
    _ = assert_type(both.close(timedelta(seconds=5)), bool)
    _ = ChatClient(Model(), advisors=both), ChatClient(Model(), advisors=[*both, mine])
    _ = ChatClient(Model(), advisors=[wrong, nothing])
    _ = ChatClient(Model(), advisors=[sync])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    _ = SessionAdvisors(service, event_filter="last")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def sync_client(service: SessionService) -> None:
    model: ChatModel = Model()
    limits = Limits(rounds=5, on_breach=OnBreach.TELL_MODEL)
    client = ChatClient(
        model, advisors=SessionAdvisors(service), tools=[weather, tool(weather, name="w")], limits=limits
    )
    result = client.call("hi", session_id="s", run_id="r", principal="ada", session_metadata={"team": "a"})
    _ = assert_type(result, ChatResult)
    _ = assert_type(result.text, str)
    _ = assert_type(result.message, AssistantMessage | None)
    _ = assert_type(result.outcome, Outcome)
    _ = assert_type(result.usage, Usage)
    _ = assert_type(result.results, tuple[ToolResult, ...])
    _ = assert_type(result.session, CallContext)
    _ = assert_type(result.session.request_event_id, str | None)
    _ = assert_type(result.session.response_event_ids, list[str])
    _ = client.call(UserMessage("hi"), context=SessionAdvisors.session("s"))
    _ = client.call([UserMessage("hi"), AssistantMessage("hello"), UserMessage("and?")], output_type=list[int])
    with client.stream("hi", session_id="s") as stream:
        _ = assert_type(stream, ChatStream)
        for delta in stream:
            _ = assert_type(delta, Delta)
        _ = assert_type(stream.result(), ChatResult)
    _ = ChatClient(
        ScriptedModel(
            ["hello", AssistantMessage("hello"), ConnectionError(), lambda prompt: f"{len(prompt.messages)} messages"]
        )
    )
    _ = client.call(7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    _ = ChatClient(AsyncScriptedModel([]))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def async_client(service: AsyncSessionService) -> None:
    both = AsyncSessionAdvisors(service)
    _ = assert_type(both.turn, AsyncSessionTurnAdvisor)
    _ = assert_type(both.memory, AsyncSessionMemoryAdvisor)
    mine: AsyncAdvisor = AsyncTiming()
    client = AsyncChatClient(AsyncScriptedModel(["hello"]), advisors=[*both, mine], tools=[weather, search])
    _ = assert_type(await client.call("hi", session_id="s", branch="x", turn=None), ChatResult)
    async with client.stream("hi", session_id="s") as stream:
        _ = assert_type(stream, AsyncChatStream)
        async for delta in stream:
            _ = assert_type(delta.text, str)
        _ = assert_type(await stream.result(), ChatResult)
    _ = assert_type(await both.close(), bool)
    client.call("hi")  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]
