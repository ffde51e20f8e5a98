"""The session advisors: the memory inside the tool loop, and the turn around it (H-2, H-3, H-4)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from datetime import timedelta
from typing import Any, Final, overload

from turnlog.chat import context as keys
from turnlog.chat import runs
from turnlog.chat._async.session_call import AsyncSessionCall
from turnlog.chat.advisor import AsyncNextModelCall, AsyncNextTurn
from turnlog.chat.colours import AsyncBackground
from turnlog.chat.handover import StreamAbandonedError
from turnlog.chat.prompt import RequestParts, parts_of, stored_before
from turnlog.chat.request import ChatResult, ModelRequest, Outcome, TurnRequest, checked_reply
from turnlog.compaction.plan import Strategy
from turnlog.compaction.triggers import Trigger
from turnlog.errors import InvalidValueError, RunMismatchError
from turnlog.log.event_filter import EventFilter
from turnlog.log.message_filter import MessageFilter, MessagePredicate, as_message_filter
from turnlog.log.messages import AssistantMessage, Message, MessageMetadata, ToolMessage
from turnlog.models.protocol import Reply, Usage
from turnlog.service import AsyncSessionService

#: How long ``close`` waits for compactions.
_LONGEST_WAIT: Final = timedelta(seconds=30)
#: The run id that a call was given because its caller named none.
_OWN_RUN: Final = keys.private_key("own_run")
_log: Final = logging.getLogger("turnlog.chat")


class AsyncSessionMemoryAdvisor:
    """The history of each model call, and the storing of what it was asked and answered (H-3).

    ``event_filter`` narrows the history, always within the active view; the current turn is carried whole.
    ``message_filter`` decides what is stored; tool calls and results always are. A stream that is abandoned leaves no
    reply, or with ``store_partial_replies`` what had come of it, marked ``turnlog.interrupted``.
    """

    SESSION_ID_CONTEXT_KEY: Final = keys.SESSION_ID
    SESSION_METADATA_CONTEXT_KEY: Final = keys.SESSION_METADATA
    EVENT_FILTER_CONTEXT_KEY: Final = keys.EVENT_FILTER
    REQUEST_EVENT_ID_CONTEXT_KEY: Final = keys.REQUEST_EVENT_ID
    RESPONSE_EVENT_IDS_CONTEXT_KEY: Final = keys.RESPONSE_EVENT_IDS

    def __init__(
        self,
        service: AsyncSessionService,
        *,
        event_filter: EventFilter | None = None,
        message_filter: MessagePredicate | None = None,
        store_partial_replies: bool = False,
    ) -> None:
        self._service = service
        self._event_filter = EventFilter.active() if event_filter is None else keys.checked_filter(event_filter)
        self._message_filter = (
            MessageFilter.skip_empty_messages() if message_filter is None else as_message_filter(message_filter)
        )
        self._store_partial_replies = store_partial_replies

    async def around_turn(self, request: TurnRequest, call_next: AsyncNextTurn) -> ChatResult:
        """Hold the turn for the whole call; a retry of a known run is gone on with, or answered from the log (H-8)."""
        async with AsyncSessionCall.of(self._service, request.context) as call:
            is_own = not call.is_known_run or request.context.get(_OWN_RUN) == call.run_id
            earlier = await self._earlier(call, request) if call.is_known_run else None
            request.context[keys.RUN_ID] = call.run_id
            if is_own:
                request.context[_OWN_RUN] = call.run_id
            if earlier is None:
                return await call_next(request)
            request.context[keys.RESPONSE_EVENT_IDS] = earlier.response_event_ids
            if earlier.outcome is None:
                return await call_next(request.replace(steps=earlier.steps))
            if earlier.request_event_id is not None:
                request.context[keys.REQUEST_EVENT_ID] = earlier.request_event_id
            return _answered(earlier, request)

    async def _earlier(self, call: AsyncSessionCall, request: TurnRequest) -> runs.EarlierRun | None:
        """What is stored of the run. An advisor outside that says something else in the same call begins another."""
        opening = [message for message in parts_of(request.messages).trailing if self._is_stored(message)]
        try:
            return await call.earlier(opening)
        except RunMismatchError:
            if request.context.get(_OWN_RUN) != call.run_id:
                raise  # the caller has named it
            call.begin_run()
            return None

    async def around_model_call(self, request: ModelRequest, call_next: AsyncNextModelCall) -> Reply:
        """Store the end of the request, put the history before it, and store the reply."""
        async with AsyncSessionCall.of(self._service, request.context) as call:
            if call.is_known_run and not call.is_begun:
                await call.resume()  # the loop is not ours, and the run's first rounds were calls of their own
            parts = parts_of(request.messages)
            run_before = await self._store_request(call, parts, request.context)
            systems, history = await call.history(parts, self._event_filter, run_before)
            messages = (*systems, *history, *parts.before, *parts.trailing)
            try:
                reply = checked_reply(
                    await call_next(request.replace(messages=messages)), may_be_empty=parts.is_behind_tools
                )
            except StreamAbandonedError as abandoned:
                await self._store_partial(call, abandoned.text)
                raise
            message = with_usage(reply.message, reply.usage)
            stored = await call.store([message] if self._is_stored(message) else [])
            request.context[keys.RESPONSE_EVENT_IDS] = stored
            return reply

    async def _store_request(self, call: AsyncSessionCall, parts: RequestParts, context: dict[str, Any]) -> int:
        """Store what the request ends with, unless this run has stored it before; how much the run held before it."""
        context.pop(keys.REQUEST_EVENT_ID, None)
        wanted = [message for message in parts.trailing if self._is_stored(message)]
        before = stored_before(call.stored, parts.before, wanted)
        if before is None:
            before = len(call.stored)
            await call.store(wanted)
        elif not call.is_begun:
            await call.take()
        if wanted:
            context[keys.REQUEST_EVENT_ID] = call.stored_ids[before + len(wanted) - 1]
        return before

    async def _store_partial(self, call: AsyncSessionCall, text: str) -> None:
        message = AssistantMessage(text)
        if self._store_partial_replies and text and self._is_stored(message):
            await call.store([message], {runs.INTERRUPTED: True})

    def _is_stored(self, message: Message) -> bool:
        if isinstance(message, ToolMessage) or (isinstance(message, AssistantMessage) and message.tool_calls):
            return True
        return self._message_filter(message)


class AsyncSessionTurnAdvisor:
    """The session around a whole call: made on first use, complete however the loop ends, compacted behind it (H-4).

    ``compaction_trigger`` and ``compaction_strategy`` go together. Compaction is best effort: a failure is logged and
    never reaches the caller. With ``async_compaction`` it runs after the reply has been returned, in ``executor`` (or
    threads of its own; or tasks), with the caller's context variables.
    """

    def __init__(
        self,
        service: AsyncSessionService,
        *,
        compaction_trigger: Trigger | None = None,
        compaction_strategy: Strategy | None = None,
        async_compaction: bool = False,
        executor: Executor | None = None,
    ) -> None:
        if (compaction_trigger is None) != (compaction_strategy is None):
            raise InvalidValueError("compaction_trigger and compaction_strategy are set together, or neither")
        self._service = service
        self._trigger = compaction_trigger
        self._strategy = compaction_strategy
        self._async_compaction = async_compaction
        self._background = AsyncBackground(executor)

    async def around_turn(self, request: TurnRequest, call_next: AsyncNextTurn) -> ChatResult:
        """Find or create the session; store the results that the loop ended with; then compact."""
        async with AsyncSessionCall.of(self._service, request.context) as call:
            session_id, owns_turn = call.session_id, call.owns_turn
            result = await call_next(request)
            await _store_results(call, result)
        if owns_turn:  # a sub-agent's call ends in the middle of its caller's turn
            await self._compact(session_id)
        return result

    async def _compact(self, session_id: str) -> None:
        trigger, strategy = self._trigger, self._strategy
        if trigger is None or strategy is None:
            return

        async def compact() -> None:
            try:
                await self._service.compact(session_id, strategy, trigger=trigger)
            except Exception:  # noqa: BLE001 - best effort: whatever it is, the reply has been given
                _log.exception("session %r: its compaction failed; the view is as it was", session_id)

        if not self._async_compaction:
            await compact()
            return
        try:
            await self._background.start(compact)
        except RuntimeError as error:
            _log.warning("session %r: its compaction cannot be started: %s", session_id, error)

    async def close(self, wait: timedelta = _LONGEST_WAIT) -> bool:
        """Wait, at most so long, for compactions that are running; whether all have ended."""
        return await self._background.wait(wait.total_seconds())


class AsyncSessionAdvisors(Sequence[AsyncSessionTurnAdvisor | AsyncSessionMemoryAdvisor]):
    """The two, turn then memory, for ``AsyncChatClient(model, advisors=…)`` (H-2)."""

    def __init__(
        self,
        service: AsyncSessionService,
        *,
        compaction_trigger: Trigger | None = None,
        compaction_strategy: Strategy | None = None,
        async_compaction: bool = False,
        executor: Executor | None = None,
        event_filter: EventFilter | None = None,
        message_filter: MessagePredicate | None = None,
        store_partial_replies: bool = False,
    ) -> None:
        self.turn = AsyncSessionTurnAdvisor(
            service,
            compaction_trigger=compaction_trigger,
            compaction_strategy=compaction_strategy,
            async_compaction=async_compaction,
            executor=executor,
        )
        self.memory = AsyncSessionMemoryAdvisor(
            service,
            event_filter=event_filter,
            message_filter=message_filter,
            store_partial_replies=store_partial_replies,
        )

    @staticmethod
    def session(session_id: str) -> dict[str, Any]:
        """The context that names the session of a call: ``call("…", context=SessionAdvisors.session("s1"))``."""
        return {keys.SESSION_ID: session_id}

    @overload
    def __getitem__(self, index: int) -> AsyncSessionTurnAdvisor | AsyncSessionMemoryAdvisor: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[AsyncSessionTurnAdvisor | AsyncSessionMemoryAdvisor]: ...
    def __getitem__(
        self, index: int | slice
    ) -> (
        AsyncSessionTurnAdvisor
        | AsyncSessionMemoryAdvisor
        | Sequence[AsyncSessionTurnAdvisor | AsyncSessionMemoryAdvisor]
    ):
        return (self.turn, self.memory)[index]

    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Iterator[AsyncSessionTurnAdvisor | AsyncSessionMemoryAdvisor]:
        return iter((self.turn, self.memory))

    async def close(self, wait: timedelta = _LONGEST_WAIT) -> bool:
        """Wait, at most so long, for compactions that are running; whether all have ended."""
        return await self.turn.close(wait)


async def _store_results(call: AsyncSessionCall, result: ChatResult) -> None:
    """Store what a loop ended with that no model round has stored; without a memory advisor nothing is (H-4)."""
    if result.outcome is Outcome.REPLY or not call.stored or not result.results:
        return
    messages = [ToolMessage((each,)) for each in result.results]
    if stored_before(call.stored, (), messages) is None:
        await call.store(messages, {runs.OUTCOME: result.outcome.value})


def _answered(earlier: runs.EarlierRun, request: TurnRequest) -> ChatResult:
    """The result of a run that is finished: nothing is asked again."""
    is_reply = earlier.outcome is Outcome.REPLY
    return ChatResult(
        message=earlier.reply,
        outcome=earlier.outcome or Outcome.REPLY,
        usage=Usage(),
        context=request.context,
        results=() if is_reply else earlier.results,
    )


def with_usage(message: AssistantMessage, usage: Usage | None) -> AssistantMessage:
    """The message with what the provider reported of its call, which a trigger may go by (C-2)."""
    if usage is None:
        return message
    reported = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    return message.replace(metadata=message.metadata | {MessageMetadata.USAGE: reported})
