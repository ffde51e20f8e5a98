"""Limits of a turn, and what becomes of the calls of a batch under them (H-4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct, field

from turnlog.errors import InvalidValueError
from turnlog.log.messages import ToolCall, ToolResult, ToolStatus
from turnlog.log.windows import check_count


class OnBreach(StrEnum):
    """What happens when a limit is reached: the turn ends, or the model is told and goes on without the tool."""

    STOP = "stop"
    TELL_MODEL = "tell_model"


class Limits(Struct, frozen=True, kw_only=True):
    """How much one turn may do: model calls that asked for tools, tool calls in all, and calls of one tool.

    With ``TELL_MODEL`` the model is told of a breach, and once the rounds are used up, asked a last time without tools.
    """

    rounds: int = 40
    calls: int = 150
    calls_per_tool: int = 40
    on_breach: OnBreach = OnBreach.STOP

    def __post_init__(self) -> None:
        for name in ("rounds", "calls", "calls_per_tool"):
            check_count(name, getattr(self, name), least=0)
        if not isinstance(self.on_breach, OnBreach):
            raise InvalidValueError(f"on_breach must be an OnBreach, not {self.on_breach!r:.60}")


class Spent(Struct):
    """What a turn has used up so far; tool calls that did not run count too, or a model could ask for ever."""

    rounds: int = 0
    calls: int = 0
    by_tool: Counter[str] = field(default_factory=Counter)


class Batch(Struct, frozen=True):
    """What becomes of the calls of one reply: how many at its front run, and the results of the others."""

    run: int
    refused: tuple[ToolResult, ...] = ()

    @property
    def is_breached(self) -> bool:
        """Whether a limit was reached in it."""
        return bool(self.refused)


def batch_of(calls: Sequence[ToolCall], limits: Limits, spent: Spent) -> Batch:
    """Count the batch as spent, and decide: calls run up to the one that breaks a limit; those behind it do not.

    Every call has exactly one result in the end (H-4): its own, the breach for the one that broke the limit, and for
    each behind it a note that it was not run.
    """
    spent.rounds += 1
    if spent.rounds > limits.rounds:
        return Batch(0, _refused(calls, 0, f"the limit of {limits.rounds} rounds of tool calls"))
    breach, first = "", len(calls)
    for index, call in enumerate(calls):
        spent.calls += 1
        spent.by_tool[call.name] += 1
        if breach:
            continue
        if spent.calls > limits.calls:
            breach, first = f"the limit of {limits.calls} tool calls", index
        elif spent.by_tool[call.name] > limits.calls_per_tool:
            breach, first = f"the limit of {limits.calls_per_tool} calls of {call.name}", index
    return Batch(first, _refused(calls, first, breach))


def _refused(calls: Sequence[ToolCall], first: int, breach: str) -> tuple[ToolResult, ...]:
    return tuple(
        ToolResult(
            call.id,
            f"Not run: {breach} in one turn is reached."
            if index == first
            else "Not run: a call before this one reached a limit.",
            ToolStatus.NOT_RUN,
            call.name,
        )
        for index, call in enumerate(calls)
        if index >= first
    )
