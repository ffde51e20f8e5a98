"""The read guard: a prompt never holds a tool call without its results, nor a result without its call (H-6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import Struct

from turnlog.log.events import SessionEvent
from turnlog.log.messages import AssistantMessage, Message, ToolMessage, ToolResult, ToolStatus

#: Why a call may have lost its results; a warning names them, as one of them is the likely cause.
CAUSES = "a filter that hides tool messages, a run that failed before its tools had answered, or an import"


class Guarded(Struct, frozen=True):
    """A history that any provider takes, and the positions of what was left out and is worth a warning."""

    messages: tuple[Message, ...]
    left_out: tuple[int, ...] = ()


def guarded(
    events: Sequence[SessionEvent],
    is_expected: Callable[[SessionEvent], bool] = lambda _: False,
    behind: Sequence[Message] = (),
) -> Guarded:
    """The messages of ``events`` in their order, tool traffic only where it is complete.

    An assistant message with calls stays if the tool messages that directly follow give each call a final result, of
    which the last is taken; otherwise it goes, and so do its results. A result for no such call goes alone. The same
    events always give the same messages. Calls left open that ``is_expected`` says are left out without a word, and so
    are their results. ``behind`` are the messages that the prompt goes on with: results among them answer too.
    """
    told = [event for event in events if event.message is not None]
    messages: list[Message] = []
    left_out: list[int] = []
    expected: set[str] = set()
    index = 0
    while index < len(told):
        event = told[index]
        following = _tool_run(told, index + 1)
        if isinstance(event.message, AssistantMessage) and event.message.tool_calls:
            later = _final_ids(behind) if following == len(told) else frozenset[str]()
            kept, dropped = _round(event.message, told[index:following], later)
            messages += kept
            if not kept and is_expected(event):
                expected.update(call.id for call in event.message.tool_calls)
            else:
                left_out += dropped
            index = following
            continue
        if isinstance(event.message, ToolMessage):
            if not (is_expected(event) and expected.issuperset(result.id for result in event.message.results)):
                left_out.append(event.position or 0)
        elif event.message is not None:
            messages.append(event.message)
        index += 1
    return Guarded(tuple(messages), tuple(left_out))


def _tool_run(events: Sequence[SessionEvent], index: int) -> int:
    while index < len(events) and isinstance(events[index].message, ToolMessage):
        index += 1
    return index


def _round(
    message: AssistantMessage, events: Sequence[SessionEvent], later: frozenset[str]
) -> tuple[list[Message], list[int]]:
    """What of one assistant message with calls and the tool messages behind it is sent, and what is left out.

    ``events`` are the message's own and those of the tool messages; ``later`` the calls that are answered behind them.
    """
    answering = events[1:]
    asked = Counter(call.id for call in message.tool_calls)
    final = _last_final_results(answering)
    if any(count > 1 or not (call_id in final or call_id in later) for call_id, count in asked.items()):
        return [], [event.position or 0 for event in events]
    kept: list[Message] = [message]
    left_out: list[int] = []
    for number, event in enumerate(answering):
        results = _results_of(event)
        wanted = tuple(
            result
            for place, result in enumerate(results)
            if result.id in asked and result.id not in later and final.get(result.id) == (number, place)
        )
        if wanted:
            kept.append(_with_results(event.message, wanted))
        if any(result.id not in asked for result in results):
            left_out.append(event.position or 0)
    return kept, left_out


def _last_final_results(answering: Sequence[SessionEvent]) -> dict[str, tuple[int, int]]:
    """Where the last final result of each call stands: two may be one object."""
    return {
        result.id: (number, place)
        for number, event in enumerate(answering)
        for place, result in enumerate(_results_of(event))
        if result.status is not ToolStatus.INTERIM
    }


def _final_ids(messages: Sequence[Message]) -> frozenset[str]:
    return frozenset(
        result.id
        for message in messages
        if isinstance(message, ToolMessage)
        for result in message.results
        if result.status is not ToolStatus.INTERIM
    )


def _results_of(event: SessionEvent) -> Sequence[ToolResult]:
    return event.message.results if isinstance(event.message, ToolMessage) else ()


def _with_results(message: Message | None, results: tuple[ToolResult, ...]) -> ToolMessage:
    """The message itself where nothing of it is left out: what came with it is sent untouched."""
    if isinstance(message, ToolMessage) and len(message.results) == len(results):
        return message
    return ToolMessage(results)
