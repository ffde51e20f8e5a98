"""Tools that give the results of a recorded conversation again (H-9)."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Sequence

from turnlog.chat.tools import Tool, ToolContext
from turnlog.log.messages import AssistantMessage, Message, ToolCall, ToolMessage, ToolResult, ToolStatus
from turnlog.models.protocol import ToolSpec
from turnlog.models.recording import results_of


def replay_tools(messages: Sequence[Message]) -> tuple[Tool, ...]:
    """A tool for each name that a recording calls; a call gives the recorded result as it is, whatever its arguments.

    Results come in the order of the calls: an id that several replies use has a result for each time. A call whose
    result is not recorded, or that is made once too often, is answered with the status ``not_run``. Where the recording
    ends in results, its last batch returns directly.
    """
    results: defaultdict[str, deque[ToolResult]] = defaultdict(deque)
    names: dict[str, None] = {}
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            names |= dict.fromkeys(call.name for call in message.tool_calls)
            answers = {each.id: each for each in results_of(messages, index) if each.status is not ToolStatus.INTERIM}
            for call in message.tool_calls:
                results[call.id].append(answers.get(call.id) or _not_recorded(call))
    recorded = _Results(results, ends=bool(messages) and isinstance(messages[-1], ToolMessage))
    return tuple(
        Tool(
            spec=ToolSpec(name, "", {"type": "object", "properties": {}}),
            function=recorded.give,
            arguments=None,
            context_name="context",
            return_direct=recorded.are_over,
        )
        for name in names
    )


class _Results:
    """The results that are left, by the ids of their calls; ``ends``: the conversation does with the last of them."""

    def __init__(self, results: dict[str, deque[ToolResult]], *, ends: bool) -> None:
        self._results = results
        self._ends = ends
        self._lock = threading.Lock()

    def give(self, context: ToolContext) -> ToolResult:
        """The result of the call."""
        with self._lock:
            waiting = self._results.get(context.call.id)
            return waiting.popleft() if waiting else _not_recorded(context.call)

    def are_over(self, _result: ToolResult) -> bool:
        """Whether the conversation has ended with the batch whose results have been given last."""
        with self._lock:
            return self._ends and not any(self._results.values())


def _not_recorded(call: ToolCall) -> ToolResult:
    return ToolResult(call.id, "Not run: the recording has no result of this call.", ToolStatus.NOT_RUN, call.name)
