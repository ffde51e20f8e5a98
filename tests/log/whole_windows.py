"""What F-5 promises of a window without other criteria, checked from outside: on what was read, not on how."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from turnlog.log.events import SessionEvent
from turnlog.log.messages import AssistantMessage, ToolMessage


def check_window(got: Sequence[int], order: Sequence[SessionEvent], starts: Collection[int], n: int) -> None:
    """``got`` are the positions that ``last(n)`` gave of ``order``, in which turns start at ``starts``."""
    positions = [position_of(event) for event in order]
    first = len(positions) - len(got)
    assert list(got) == positions[first:], "a window is the end of what is read"
    assert len(got) >= min(n, len(positions)), "a window is a lower bound"
    preamble = next((place for place, position in enumerate(positions) if position in starts), len(positions))
    may_begin = [place <= preamble or positions[place] in starts for place in range(len(positions))]
    assert not got or may_begin[first], "a window begins with a turn or in the preamble"
    shorter = range(first + 1, len(positions) - min(n, len(positions)) + 1)
    assert not any(may_begin[place] for place in shorter if place < len(positions)), "no shorter window will do"
    for call, result in pairs(order):
        if min(call, result) >= preamble:
            assert (call >= first) == (result >= first), "a window holds both halves of a pair or none"
    for shadow, told in summaries(order):
        if shadow >= preamble:
            assert (shadow >= first) == (told >= first), "a window holds a summary whole or not at all"


def pairs(order: Sequence[SessionEvent]) -> Iterator[tuple[int, int]]:
    """The places of calls and results: a result answers the newest call of its id before it on its branch."""
    calls: dict[tuple[str | None, str], int] = {}
    for place, event in enumerate(order):
        if isinstance(event.message, AssistantMessage):
            calls |= {(event.branch, call.id): place for call in event.message.tool_calls}
        elif isinstance(event.message, ToolMessage):
            for result in event.message.results:
                if (event.branch, result.id) in calls:
                    yield calls[event.branch, result.id], place


def summaries(order: Sequence[SessionEvent]) -> Iterator[tuple[int, int]]:
    """The places of each summary's two events."""
    shadows: dict[object, int] = {}
    for place, event in enumerate(order):
        if event.is_shadow_prompt:
            shadows[event.metadata["turnlog.boundary"]] = place
        elif event.is_synthetic:
            yield shadows[event.metadata["turnlog.boundary"]], place


def position_of(event: SessionEvent) -> int:
    """Its position, which it has."""
    assert event.position is not None
    return event.position
