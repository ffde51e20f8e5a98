"""Whatever a session went through, no compaction can hurt it (C-1 to C-5, A-1 to A-5): generated logs, real ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compaction.building import COUNTER, Summariser, positions, service_with
from tests.log.conversations import conversations
from turnlog import (
    AssistantMessage,
    EventFilter,
    SessionEvent,
    SessionService,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from turnlog.compaction import CompactionResult, SummarizingCompactionStrategy, WindowCompactionStrategy
from turnlog.compaction.request import view_parts
from turnlog.log.tokens import message_tokens
from turnlog.testing.factories import SESSION_ID, event
from turnlog.testing.strategies import batches

VIEW = EventFilter(active_view=True)


def windows() -> st.SearchStrategy[WindowCompactionStrategy]:
    return st.one_of(
        st.builds(WindowCompactionStrategy, last_turns=st.integers(1, 4)),
        st.builds(WindowCompactionStrategy, last_events=st.integers(1, 12)),
        st.builds(WindowCompactionStrategy, max_tokens=st.integers(1, 120)),
    )


def strategies_to_try() -> st.SearchStrategy[Any]:
    def summarizing(window: WindowCompactionStrategy, overlap: int, size: int) -> SummarizingCompactionStrategy:
        told = Summariser(lambda request: f"T{len(request.events)}")
        return SummarizingCompactionStrategy(told, window, overlap, max_summary_tokens=4, max_input_tokens=size)

    return windows() | st.builds(summarizing, windows(), st.integers(0, 3), st.integers(20, 200))


def operations() -> st.SearchStrategy[list[tuple[str, Any]]]:
    turn_sizes = st.integers(1, 3)
    return st.lists(
        st.one_of(
            st.tuples(st.just("compact"), strategies_to_try()),
            st.tuples(st.just("append"), turn_sizes),
            st.tuples(st.just("rewind"), st.floats(0, 1)),
            st.tuples(st.just("clear"), st.none()),
        ),
        max_size=10,
    )


def answered_calls(events: Sequence[SessionEvent]) -> set[tuple[int, int]]:
    """Pairs of a call's and its result's position, each result with the nearest call of its id before it."""
    calls: dict[str, int] = {}
    pairs = set()
    for made in sorted(events, key=lambda each: each.position or 0):
        if isinstance(made.message, AssistantMessage):
            calls |= {call.id: made.position or 0 for call in made.message.tool_calls}
        elif isinstance(made.message, ToolMessage):
            pairs |= {(calls[result.id], made.position or 0) for result in made.message.results if result.id in calls}
    return pairs


def tokens(events: Sequence[SessionEvent]) -> int:
    return sum(message_tokens(made.message, COUNTER) for made in events if made.message is not None)


def check_compaction(
    result: CompactionResult, before: list[SessionEvent], after: list[SessionEvent], service: SessionService
) -> None:
    assert result.boundary is not None
    parts = view_parts(before)
    starts = {turn[0].position for turn in parts.turns}
    pinned = {made.position for made in (*parts.systems, *parts.preamble)}
    first = after[0]
    assert first.position in pinned or first.is_synthetic or first.position in starts
    left, kept = {*positions(before)} - {*positions(after)}, {*positions(after)}
    assert {*positions(parts.turns[-1])} <= kept, "the newest turn is kept whole"
    for turn in parts.turns:
        inside = {*positions(turn)}
        assert inside <= left or inside <= kept, "a turn stays or leaves whole"
    for call, answer in answered_calls(before):
        assert (call in kept) == (answer in kept) or not any({call, answer} <= {*positions(t)} for t in parts.turns)
    assert tokens(after) < tokens(before), "tokens never grow"
    covered = [made for made in before if made.is_message and made.position in left]
    assert service.expand(SESSION_ID, result.boundary) == covered == list(result.covered_events)
    for made in after:
        if made.is_synthetic and made.metadata["turnlog.boundary"] == result.boundary.id:
            assert service.expand(SESSION_ID, made) == covered


def expanded(service: SessionService, made: SessionEvent) -> set[int]:
    """The originals behind an event of a view: itself, or recursively what its boundary covers."""
    if not made.is_synthetic:
        return {made.position or 0}
    return {place for inner in service.expand(SESSION_ID, made) for place in expanded(service, inner)}


def run(service: SessionService, todo: list[tuple[str, Any]]) -> None:
    views = {service.version(SESSION_ID): service.events(SESSION_ID, VIEW)}
    serial = 10_000
    for what, how in todo:
        log = service.events(SESSION_ID)
        before = service.events(SESSION_ID, VIEW)
        if what == "compact":
            result = service.compact(SESSION_ID, how)
            if not result.is_unchanged:
                check_compaction(result, before, service.events(SESSION_ID, VIEW), service)
        elif what == "append":
            for _ in range(how):
                serial += 2
                service.append(SESSION_ID, event(serial, UserMessage(f"question {serial}")))
                service.append(SESSION_ID, event(serial + 1, AssistantMessage(f"answer {serial}")))
        elif what == "rewind":
            service.rewind(SESSION_ID, int(len(log) * how))
        else:
            service.clear(SESSION_ID)
        assert service.events(SESSION_ID)[: len(log)] == log, "the log only grows"
        views[service.version(SESSION_ID)] = service.events(SESSION_ID, VIEW)
        for version, view in views.items():
            assert service.events(SESSION_ID, VIEW, as_of=version) == view, "every earlier view stays readable"


@pytest.mark.parametrize("url", ["memory:", "sqlite::memory:"])
@settings(max_examples=60)
@given(log=batches(max_batches=14), todo=operations())
def test_no_compaction_can_hurt_a_generated_conversation(
    url: str, log: list[list[SessionEvent]], todo: list[tuple[str, Any]]
) -> None:
    with service_with(url, log) as service:
        run(service, todo)


@pytest.mark.parametrize("url", ["sqlite::memory:"])
@settings(max_examples=60)
@given(log=batches(max_batches=14), todo=st.lists(strategies_to_try(), max_size=10), growth=st.integers(0, 2))
def test_every_message_is_in_the_view_or_covered_by_exactly_one_boundary(
    url: str, log: list[list[SessionEvent]], todo: list[Any], growth: int
) -> None:
    grown = [batch for batch in log if not batch[0].is_boundary]
    with service_with(url, grown) as service:
        boundaries = []
        for number, strategy in enumerate(todo):
            result = service.compact(SESSION_ID, strategy)
            boundaries += [] if result.boundary is None else [result.boundary]
            for extra in range(growth):
                made = event(20_000 + 10 * number + extra, UserMessage("more " * 9))
                service.append(SESSION_ID, made)
        covered = [place for made in boundaries for place in positions(service.expand(SESSION_ID, made))]
        view = service.events(SESSION_ID, EventFilter.active())
        messages = [made for made in service.events(SESSION_ID) if made.is_message]
        assert sorted([*covered, *positions(view)]) == positions(messages)
        originals = {place for made in view for place in expanded(service, made)}
        hidden = {place for made in boundaries if not has_summary(made) for place in covered_by(service, made)}
        assert originals | hidden >= {made.position for made in messages if not made.is_synthetic}


def has_summary(made: SessionEvent) -> bool:
    return bool((made.payload or {})["end"] > (made.position or 0))


def covered_by(service: SessionService, made: SessionEvent) -> set[int]:
    return {place for inner in service.expand(SESSION_ID, made) for place in expanded(service, inner)} | {
        *positions(service.expand(SESSION_ID, made))
    }


@pytest.mark.parametrize("keep", [{"last_turns": 2}, {"last_events": 7}, {"max_tokens": 900}])
@pytest.mark.parametrize("with_summary", [False, True])
def test_no_compaction_can_hurt_a_real_conversation(data: Path, keep: dict[str, int], *, with_summary: bool) -> None:
    window = WindowCompactionStrategy(**keep)
    strategy = SummarizingCompactionStrategy(Summariser(), window) if with_summary else window
    for name, messages in conversations(data):
        with service_with("memory:", []) as service:
            for number, message in enumerate(messages):
                service.append(SESSION_ID, event(number, message))
                if not isinstance(message, UserMessage):
                    continue
                before = service.events(SESSION_ID, VIEW)
                result = service.compact(SESSION_ID, strategy)
                if not result.is_unchanged:
                    check_compaction(result, before, service.events(SESSION_ID, VIEW), service)
            kept = [made.content for made in service.events(SESSION_ID) if made.is_message and not made.is_synthetic]
            assert kept == messages, name
            first = service.active_messages(SESSION_ID)[0]
            assert first == messages[0], name
            assert isinstance(first, SystemMessage), name
