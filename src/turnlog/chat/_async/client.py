"""``AsyncChatClient``: one call is one turn (H-1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, Final

from turnlog.chat import context as keys
from turnlog.chat._async.tool_loop import AsyncToolLoop
from turnlog.chat.advisor import AsyncAdvisor, AsyncNextModelCall, check_advisors, wrapped
from turnlog.chat.colours import check_fitting_async, usable_async
from turnlog.chat.handover import AsyncHandover
from turnlog.chat.limits import Limits
from turnlog.chat.output import OutputType, with_output
from turnlog.chat.request import ChatResult, ModelRequest, TurnRequest, messages_of
from turnlog.chat.streaming import AsyncChatStream
from turnlog.chat.tools import Tool, ToolFunction
from turnlog.errors import InvalidReplyError
from turnlog.log.event_filter import EventFilter
from turnlog.log.messages import Message, SystemMessage
from turnlog.log.windows import check_count
from turnlog.models.protocol import AsyncChatModel, Reply

#: Tools that run side by side.
_AT_ONCE: Final = 8


class AsyncChatClient:
    """A model with tools and advisors. It keeps nothing between calls: sessions do, through the session advisors.

    ``advisors`` wrap from the outside in: the first sees a call first and its result last. ``system``, ``tools``,
    ``options`` and ``context`` are defaults; what a call gives replaces a default as a whole. ``limits`` bound a turn.
    Tools of one reply run side by side, at most ``tools_at_once``; ``tool_error_details`` tells the model the texts of
    their exceptions, which may hold what it is not to see. ``executor`` replaces the threads in which streams run, or
    in a client for tasks its sync tools.
    """

    def __init__(  # noqa: PLR0913 - every option is a keyword argument of its own
        self,
        model: AsyncChatModel,
        *,
        advisors: Sequence[AsyncAdvisor] = (),
        system: str | SystemMessage | None = None,
        tools: Sequence[ToolFunction | Tool] = (),
        options: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        tools_at_once: int = _AT_ONCE,
        tool_error_details: bool = False,
        output_retries: int = 2,
        executor: Executor | None = None,
    ) -> None:
        check_advisors(advisors)
        check_fitting_async(model, advisors)
        self._model = model
        self._advisors = tuple(advisors)
        self._system = system
        self._tools = usable_async(tools)
        self._options = keys.dict_of(options, "options")
        self._context = keys.dict_of(context, "context")
        self._limits = limits or Limits()
        self._tools_at_once = check_count("tools_at_once", tools_at_once, least=1)
        self._details = tool_error_details
        self._output_retries = check_count("output_retries", output_retries, least=0)
        self._executor = executor

    async def call(  # noqa: PLR0913 - the same
        self,
        said: str | Message | Sequence[Message],
        *,
        session_id: str | None = None,
        run_id: str | None = None,
        branch: str | None = None,
        principal: str | None = None,
        turn: str | None = None,
        event_filter: EventFilter | None = None,
        session_metadata: Mapping[str, Any] | None = None,
        system: str | SystemMessage | None = None,
        tools: Sequence[ToolFunction | Tool] | None = None,
        options: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        output_type: OutputType | None = None,
    ) -> ChatResult:
        """Run one turn: what the user says, the model's rounds, the tools' rounds, the reply.

        ``said`` is text, a message, or several: user messages at its end are one request. ``run_id`` names the turn, so
        that the call can be made again after a failure (H-8). ``branch`` is a sub-agent's (H-12), ``turn`` the token of
        a turn of another process that it is part of. With ``principal`` the session must be theirs (H-10). With
        ``output_type`` the reply is read as that type, into ``result.output``. ``session_id``, ``run_id`` and the
        like are shorthands for keys of ``context``.
        """
        named = _named(session_id, run_id, branch, principal, turn, event_filter, session_metadata)
        request = self._request(said, system, tools, options, context, named)

        async def generate(asked: ModelRequest) -> Reply:
            return await self._model.generate(asked.prompt())

        return await self._run(request, generate, output_type)

    def stream(  # noqa: PLR0913 - the same
        self,
        said: str | Message | Sequence[Message],
        *,
        session_id: str | None = None,
        run_id: str | None = None,
        branch: str | None = None,
        principal: str | None = None,
        turn: str | None = None,
        event_filter: EventFilter | None = None,
        session_metadata: Mapping[str, Any] | None = None,
        system: str | SystemMessage | None = None,
        tools: Sequence[ToolFunction | Tool] | None = None,
        options: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        output_type: OutputType | None = None,
    ) -> AsyncChatStream:
        """The same turn; the model's deltas can be read as they come, and the result behind them.

        Everything else happens as in :meth:`call`: advisors see whole replies, and the log is the same (H-7).
        """
        named = _named(session_id, run_id, branch, principal, turn, event_filter, session_metadata)
        request = self._request(said, system, tools, options, context, named)

        async def run(handover: AsyncHandover) -> ChatResult:
            async def generate(asked: ModelRequest) -> Reply:
                return await handover.reply_of(lambda: self._model.stream(asked.prompt()))

            return await self._run(request, generate, output_type)

        return AsyncChatStream(run, self._executor)

    def _request(
        self,
        said: str | Message | Sequence[Message],
        system: str | SystemMessage | None,
        tools: Sequence[ToolFunction | Tool] | None,
        options: Mapping[str, Any] | None,
        context: Mapping[str, Any] | None,
        named: dict[str, Any],
    ) -> TurnRequest:
        return TurnRequest(
            messages=messages_of(said, self._system if system is None else system),
            context=keys.of_call(self._context, keys.dict_of(context, "context"), named),
            tools=self._tools if tools is None else usable_async(tools),
            options=self._options if options is None else keys.dict_of(options, "options"),
        )

    async def _run(
        self,
        request: TurnRequest,
        generate: AsyncNextModelCall,
        output_type: OutputType | None,
    ) -> ChatResult:
        output = None if output_type is None else with_output(output_type)
        if output is not None:
            request = request.replace(output_schema=output.schema)

        async def loop(turn: TurnRequest) -> ChatResult:
            return await AsyncToolLoop(
                turn,
                generate,
                self._advisors,
                self._limits,
                self._tools_at_once,
                details=self._details,
                output=output,
                output_retries=self._output_retries,
                executor=self._executor,
            ).run()

        result = await wrapped(self._advisors, "around_turn", loop)(request)
        if not isinstance(result, ChatResult):
            raise InvalidReplyError(f"around_turn returns a ChatResult, not {type(result).__name__}")
        read = output.read(result) if output is not None else None
        return result.replace(context=keys.public(result.context), output=read)


def _named(
    session_id: str | None,
    run_id: str | None,
    branch: str | None,
    principal: str | None,
    turn: str | None,
    event_filter: EventFilter | None,
    session_metadata: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The context that the shorthands make."""
    named = {
        keys.SESSION_ID: session_id,
        keys.RUN_ID: run_id,
        keys.BRANCH: branch,
        keys.PRINCIPAL: principal,
        keys.TURN: turn,
        keys.EVENT_FILTER: event_filter,
        keys.SESSION_METADATA: session_metadata,
    }
    return {key: value for key, value in named.items() if value is not None}
