"""Results next to their calls, in a log where they came later: a provider takes them nowhere else."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator

from turnlog.formats.foreign import Entry
from turnlog.log.messages import AssistantMessage, ToolMessage, ToolResult


def results_next_to_calls(entries: Iterable[Entry], results: Counter[str], calls: Counter[str]) -> Iterator[Entry]:
    """The entries in order, but for results, which follow the message that asked for them, and what came before them.

    ``results`` and ``calls`` say how often an id stands in results and in calls of all entries; both are counted down.
    What stands between a call and its result is held back meanwhile, on each branch by itself. A call without a result
    waits for nothing, and a result without a call stays where it is. Each entry is looked at a fixed number of times.
    """
    lanes: dict[str | None, _Lane] = {}
    for entry in entries:
        lane = lanes.get(entry.branch)
        if lane is None:
            lane = lanes[entry.branch] = _Lane(results, calls)
        yield from lane.arrive(entry)
    for lane in lanes.values():
        yield from lane.end()


class _Lane:
    """The entries of one branch."""

    def __init__(self, results: Counter[str], calls: Counter[str]) -> None:
        self._results_to_come = results
        self._calls_to_come = calls
        #: Calls that stand at the end of what was said, whose results are still to come.
        self._waiting = set[str]()
        #: What came since.
        self._held = deque[Entry]()
        self._held_calls = Counter[str]()
        #: Results of calls that are held, or still to come.
        self._early: dict[str, list[Entry]] = {}

    def arrive(self, entry: Entry) -> Iterator[Entry]:
        """What can be said now that ``entry`` came."""
        message = entry.message
        if isinstance(message, ToolMessage):
            for alone, result in _each_result(entry, message):
                yield from self._arrive_result(alone, result)
            return
        calls = [] if not isinstance(message, AssistantMessage) else [call.id for call in message.tool_calls]
        self._calls_to_come.subtract(calls)
        if self._waiting:
            self._held.append(entry)
            self._held_calls.update(calls)
        else:
            yield from self._say(entry)

    def end(self) -> Iterator[Entry]:
        """What is left."""
        while self._held:
            self._waiting.clear()
            yield from self._release()
        for early in self._early.values():
            yield from early

    def _arrive_result(self, entry: Entry, result: ToolResult) -> Iterator[Entry]:
        self._results_to_come[result.id] -= 1
        if result.id in self._waiting:
            self._waiting.discard(result.id)
            yield entry
            yield from self._release()
        elif self._held_calls[result.id] > 0 or self._calls_to_come[result.id] > 0:
            self._early.setdefault(result.id, []).append(entry)
        elif self._waiting:
            self._held.append(entry)
        else:
            yield entry

    def _release(self) -> Iterator[Entry]:
        while self._held and not self._waiting:
            entry = self._held.popleft()
            if isinstance(entry.message, AssistantMessage):
                self._held_calls.subtract(call.id for call in entry.message.tool_calls)
            yield from self._say(entry)

    def _say(self, entry: Entry) -> Iterator[Entry]:
        yield entry
        for call in entry.message.tool_calls if isinstance(entry.message, AssistantMessage) else ():
            early = self._early.pop(call.id, None)
            if early is not None:
                yield from early
            elif self._results_to_come[call.id] > 0:
                self._waiting.add(call.id)


def _each_result(entry: Entry, message: ToolMessage) -> Iterator[tuple[Entry, ToolResult]]:
    """The results one by one: each follows its own call. An original that says several says none of them."""
    if len(message.results) == 1:
        yield entry, message.results[0]
        return
    for result in message.results:
        yield entry.with_message(ToolMessage((result,), metadata=message.metadata)), result
