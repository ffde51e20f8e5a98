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
    waits for nothing, and a result without a call stays where it is.
    """
    lanes: dict[str | None, _Lane] = {}
    for entry in entries:
        lane = lanes.setdefault(entry.branch, _Lane(results, calls))
        yield from lane.arrive(entry)
    for lane in lanes.values():
        yield from lane.end()


class _Lane:
    """The entries of one branch."""

    def __init__(self, results: Counter[str], calls: Counter[str]) -> None:
        self._results = results
        self._calls = calls
        self._waiting = set[str]()
        self._held = deque[Entry]()
        self._held_calls = Counter[str]()
        self._held_results = Counter[str]()
        #: Results that stand before their call.
        self._early: dict[str, list[Entry]] = {}

    def arrive(self, entry: Entry) -> Iterator[Entry]:
        """What can be said now that ``entry`` came."""
        if isinstance(entry.message, ToolMessage):
            self._results.subtract(result.id for result in entry.message.results)
        elif isinstance(entry.message, AssistantMessage):
            self._calls.subtract(call.id for call in entry.message.tool_calls)
        yield from self._put(entry)

    def end(self) -> Iterator[Entry]:
        """What is left."""
        while self._held:
            self._waiting.clear()
            yield from self._release()
        for early in self._early.values():
            yield from early

    def _put(self, entry: Entry) -> Iterator[Entry]:
        if isinstance(entry.message, ToolMessage):
            for alone, result in _each_result(entry, entry.message):
                yield from self._put_result(alone, result)
        elif self._waiting:
            self._hold(entry)
        else:
            yield entry
            if isinstance(entry.message, AssistantMessage):
                yield from self._ask(entry.message)

    def _put_result(self, entry: Entry, result: ToolResult) -> Iterator[Entry]:
        if result.id in self._waiting:
            self._waiting.discard(result.id)
            yield entry
            if not self._waiting:
                yield from self._release()
        elif self._waiting:
            self._hold(entry)
        elif self._calls[result.id] > 0 or self._held_calls[result.id] > 0:
            self._early.setdefault(result.id, []).append(entry)
        else:
            yield entry

    def _ask(self, message: AssistantMessage) -> Iterator[Entry]:
        for call in message.tool_calls:
            early = self._early.pop(call.id, None)
            if early is not None:
                yield from early
            elif self._results[call.id] > 0 or self._held_results[call.id] > 0:
                self._waiting.add(call.id)

    def _hold(self, entry: Entry) -> None:
        self._held.append(entry)
        self._count_held(entry, 1)

    def _release(self) -> Iterator[Entry]:
        held, self._held = self._held, deque[Entry]()
        for entry in held:
            self._count_held(entry, -1)
            yield from self._put(entry)

    def _count_held(self, entry: Entry, by: int) -> None:
        if isinstance(entry.message, ToolMessage):
            for result in entry.message.results:
                self._held_results[result.id] += by
        elif isinstance(entry.message, AssistantMessage):
            for call in entry.message.tool_calls:
                self._held_calls[call.id] += by


def _each_result(entry: Entry, message: ToolMessage) -> Iterator[tuple[Entry, ToolResult]]:
    """The results one by one: each follows its own call. An original that says several says none of them."""
    if len(message.results) == 1:
        yield entry, message.results[0]
        return
    for result in message.results:
        yield entry.with_message(ToolMessage((result,), metadata=message.metadata)), result
