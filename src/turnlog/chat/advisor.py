"""What an advisor is: it wraps a whole call, each model call, or each tool call (H-1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeAlias, TypeVar, runtime_checkable

from turnlog.chat.request import ChatResult, ModelRequest, ToolRequest, TurnRequest
from turnlog.errors import InvalidValueError
from turnlog.log.messages import ToolResult
from turnlog.models.protocol import Reply

Q = TypeVar("Q")
R = TypeVar("R")

#: What an advisor calls to go on: the next advisor, or what is innermost.
NextTurn: TypeAlias = Callable[[TurnRequest], ChatResult]
NextModelCall: TypeAlias = Callable[[ModelRequest], Reply]
NextToolCall: TypeAlias = Callable[[ToolRequest], ToolResult]
AsyncNextTurn: TypeAlias = Callable[[TurnRequest], Awaitable[ChatResult]]
AsyncNextModelCall: TypeAlias = Callable[[ModelRequest], Awaitable[Reply]]
AsyncNextToolCall: TypeAlias = Callable[[ToolRequest], Awaitable[ToolResult]]
#: A tool call that is ready to be made.
OutcomeOf: TypeAlias = Callable[[], ToolResult]
AsyncOutcomeOf: TypeAlias = Callable[[], Awaitable[ToolResult]]


@runtime_checkable
class TurnAdvisor(Protocol):
    """Wraps a whole call, however its tool loop ends."""

    def around_turn(self, request: TurnRequest, call_next: NextTurn) -> ChatResult:
        """Do something before, instead of, or after ``call_next``, which may be called again."""
        ...


@runtime_checkable
class ModelCallAdvisor(Protocol):
    """Wraps each model call inside the tool loop; it sees whole replies, when streaming too."""

    def around_model_call(self, request: ModelRequest, call_next: NextModelCall) -> Reply:
        """Do something before, instead of, or after ``call_next``, which may be called again."""
        ...


@runtime_checkable
class ToolCallAdvisor(Protocol):
    """Wraps each tool call; those of one reply run side by side."""

    def around_tool_call(self, request: ToolRequest, call_next: NextToolCall) -> ToolResult:
        """Do something before, instead of, or after ``call_next``, which may be called again."""
        ...


@runtime_checkable
class AsyncTurnAdvisor(Protocol):
    """:class:`TurnAdvisor` for tasks."""

    async def around_turn(self, request: TurnRequest, call_next: AsyncNextTurn) -> ChatResult:
        """Do something before, instead of, or after ``call_next``, which may be called again."""
        ...


@runtime_checkable
class AsyncModelCallAdvisor(Protocol):
    """:class:`ModelCallAdvisor` for tasks."""

    async def around_model_call(self, request: ModelRequest, call_next: AsyncNextModelCall) -> Reply:
        """Do something before, instead of, or after ``call_next``, which may be called again."""
        ...


@runtime_checkable
class AsyncToolCallAdvisor(Protocol):
    """:class:`ToolCallAdvisor` for tasks."""

    async def around_tool_call(self, request: ToolRequest, call_next: AsyncNextToolCall) -> ToolResult:
        """Do something before, instead of, or after ``call_next``, which may be called again."""
        ...


#: Any of the three, or several in one object.
Advisor: TypeAlias = TurnAdvisor | ModelCallAdvisor | ToolCallAdvisor
AsyncAdvisor: TypeAlias = AsyncTurnAdvisor | AsyncModelCallAdvisor | AsyncToolCallAdvisor

#: What an advisor may wrap.
SCOPES: Final = ("around_turn", "around_model_call", "around_tool_call")


def check_advisors(advisors: Sequence[object]) -> None:
    """Refuse what wraps nothing: it would be left out without a word."""
    for advisor in advisors:
        if not any(callable(getattr(advisor, scope, None)) for scope in SCOPES):
            raise InvalidValueError(f"{type(advisor).__name__} is no advisor: it has none of {', '.join(SCOPES)}")


def wrapped(advisors: Sequence[object], scope: str, innermost: Callable[[Q], R]) -> Callable[[Q], R]:
    """``innermost`` inside the advisors of this scope, the first outermost. Each step can be called again."""
    call = innermost
    for advisor in reversed(advisors):
        around: Callable[[Q, Callable[[Q], R]], R] | None = getattr(advisor, scope, None)
        if around is not None:
            call = _step(around, call)
    return call


def _step(around: Callable[[Q, Callable[[Q], R]], R], following: Callable[[Q], R]) -> Callable[[Q], R]:
    return lambda request: around(request, following)
