"""The tool loop: model rounds and tool rounds in turn, until there is a reply or a reason to stop (H-1, H-4, H-9)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Final

from turnlog.chat.advisor import AsyncNextModelCall, AsyncNextToolCall, AsyncOutcomeOf, wrapped
from turnlog.chat.colours import call_tool_async, side_by_side_async
from turnlog.chat.context import RESPONSE_EVENT_IDS
from turnlog.chat.event_ids import digest
from turnlog.chat.holding import ACTIVE
from turnlog.chat.limits import Batch, Limits, OnBreach, Spent, batch_of
from turnlog.chat.output import Output
from turnlog.chat.request import (
    ChatResult,
    ModelRequest,
    Outcome,
    ToolRequest,
    TurnRequest,
    as_reply,
    checked_reply,
)
from turnlog.chat.tools import (
    ToolContext,
    arguments_for,
    checked_result,
    error_result,
    result_of,
    tools_by_name,
    unknown_tool,
)
from turnlog.errors import InvalidReplyError
from turnlog.log.messages import AssistantMessage, Message, ToolMessage, ToolResult
from turnlog.log.names import new_id
from turnlog.models.protocol import Reply, Usage

_log: Final = logging.getLogger("turnlog.chat")


class AsyncToolLoop:
    """One turn's loop. ``generate`` is the model call, its advisors aside."""

    def __init__(
        self,
        request: TurnRequest,
        generate: AsyncNextModelCall,
        advisors: Sequence[object],
        limits: Limits,
        most_at_once: int,
        *,
        details: bool,
        output: Output | None = None,
        output_retries: int = 0,
        executor: Executor | None = None,
    ) -> None:
        self._request = request
        self._generate = generate
        self._output = output
        self._output_retries = output_retries
        self._executor = executor
        self._limits = limits
        self._most_at_once = most_at_once
        self._details = details
        self._tools = tools_by_name(request.tools)
        self._call_model = wrapped(advisors, "around_model_call", self._ask_model)
        self._call_tool = wrapped(advisors, "around_tool_call", self._run_tool)
        self._messages: list[Message] = [*request.messages, *request.steps]
        self._spent = Spent()
        self._usage = Usage()
        self._rounds = 0
        self._last: Reply | None = None
        #: In place of a run that is stored: keys of calls must not repeat in another turn.
        self._id = new_id()
        self._count_steps()

    def _count_steps(self) -> None:
        """What an earlier attempt has used up counts; its last batch is counted when its calls run."""
        steps = self._request.steps
        for index, message in enumerate(steps):
            if isinstance(message, AssistantMessage) and message.tool_calls and index < len(steps) - 1:
                batch_of(message.tool_calls, self._limits, self._spent)

    async def run(self) -> ChatResult:
        """Go on from where the messages end."""
        while True:
            asking = self._messages[-1] if self._messages else None
            if not (isinstance(asking, AssistantMessage) and asking.tool_calls):
                asking = await self._ask()
                if not asking.tool_calls:
                    return self._ended(Outcome.REPLY)
            batch = batch_of(asking.tool_calls, self._limits, self._spent)
            results = await self._results(asking, batch)
            if batch.is_breached and self._limits.on_breach is OnBreach.STOP:
                return self._ended(Outcome.LIMIT, results)
            if not batch.is_breached and self._is_direct(asking, results):
                return self._ended(Outcome.DIRECT, results)
            self._messages += [ToolMessage((result,)) for result in results]
            if self._spent.rounds > self._limits.rounds + 1:  # asked without tools, and it asked for some again
                return self._ended(Outcome.LIMIT, results)

    async def _ask(self) -> AssistantMessage:
        """One model round; without tools once the rounds are used up and the model has been told."""
        is_last = self._spent.rounds > self._limits.rounds
        tools = () if is_last else tuple(tool.spec for tool in self._tools.values())
        request = ModelRequest(
            messages=tuple(self._messages),
            context=self._request.context,
            tools=tools,
            options=self._request.options,
            output_schema=self._request.output_schema,
        )
        after_tools = bool(self._messages) and isinstance(self._messages[-1], ToolMessage)
        reply = checked_reply(await self._call_model(request), may_be_empty=after_tools)
        self._rounds += 1
        self._last = reply
        self._messages.append(reply.message)
        return reply.message

    async def _ask_model(self, request: ModelRequest) -> Reply:
        """Ask the model; what cannot be read as the wanted type is asked for again, unseen by advisors and log."""
        attempt, problem = request, ""
        for _ in range(self._output_retries + 1):
            reply = as_reply(await self._generate(attempt))
            if reply.usage is not None:
                self._usage += reply.usage
            problem = "" if self._output is None else self._output.problem(reply)
            if self._output is None or not problem:
                return reply
            attempt = self._output.again(request, problem)
        raise InvalidReplyError(f"the reply cannot be read as it was asked for: {problem}")

    async def _results(self, asking: AssistantMessage, batch: Batch) -> tuple[ToolResult, ...]:
        """One result for each call, in the order of the calls."""
        ids = self._request.context.get(RESPONSE_EVENT_IDS) or [self._id, self._rounds]
        requests = [
            ToolRequest(
                call=call,
                tool=self._tools.get(call.name),
                context=self._request.context,
                idempotency_key=digest(*ids, index),
            )
            for index, call in enumerate(asking.tool_calls[: batch.run])
        ]
        calls = [_of(self._call_tool, request) for request in requests]
        ran = await side_by_side_async(calls, self._most_at_once) if calls else []
        return (
            *(checked_result(result, request.call) for result, request in zip(ran, requests, strict=True)),
            *batch.refused,
        )

    async def _run_tool(self, request: ToolRequest) -> ToolResult:
        """Run one call; whatever goes wrong is told to the model."""
        tool, call = request.tool, request.call
        if tool is None:
            return unknown_tool(call, tuple(self._tools))
        active = ACTIVE.get()
        context = ToolContext(
            call=call,
            idempotency_key=request.idempotency_key,
            context=request.context,
            turn=None if active is None else active.turn.token,
        )
        try:
            returned = await call_tool_async(tool.function, arguments_for(tool, call, context), self._executor)
            return result_of(call, returned)
        except Exception as error:  # noqa: BLE001 - a tool is a user's function, and its failure the model's to know
            _log.info("tool %r failed", call.name, exc_info=True)
            return error_result(call, error, details=self._details)

    def _is_direct(self, asking: AssistantMessage, results: Sequence[ToolResult]) -> bool:
        found = [self._tools.get(call.name) for call in asking.tool_calls]
        says = [tool is not None and tool.ends_turn(result) for tool, result in zip(found, results, strict=True)]
        return all(says)

    def _ended(self, outcome: Outcome, results: tuple[ToolResult, ...] = ()) -> ChatResult:
        replies = (message for message in reversed(self._messages) if isinstance(message, AssistantMessage))
        return ChatResult(
            message=next(replies, None),
            outcome=outcome,
            usage=self._usage,
            context=self._request.context,
            results=results,
            rounds=self._rounds,
            model=None if self._last is None else self._last.model,
            finish_reason="stop" if self._last is None else self._last.finish_reason,
        )


def _of(call: AsyncNextToolCall, request: ToolRequest) -> AsyncOutcomeOf:
    return lambda: call(request)
