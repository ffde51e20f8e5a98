"""Logs, drawn by Hypothesis, as a chat client writes them: calls are answered in their turn, cuts fall on turn starts.

It knows where turns start because it begins them itself; nothing here asks the code under test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from turnlog.log.events import EventMetadata, EventType, SessionEvent
from turnlog.log.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolStatus,
    UserMessage,
)
from turnlog.testing.clocks import START
from turnlog.testing.factories import PROGRESS, SESSION_ID


@dataclass
class WholeLog:
    """A log, and what its writer knows of it: positions where turns start, and the view in its order."""

    batches: list[list[SessionEvent]] = field(default_factory=list[list[SessionEvent]])
    starts: set[int] = field(default_factory=set[int])
    shadow_prompts: set[int] = field(default_factory=set[int])
    view: list[int] = field(default_factory=list[int])

    @property
    def events(self) -> list[SessionEvent]:
        """The events with their positions."""
        flat = [event for batch in self.batches for event in batch]
        return [event.replace(position=position) for position, event in enumerate(flat, 1)]

    @property
    def version(self) -> int:
        return sum(map(len, self.batches))

    @property
    def cuts(self) -> list[int]:
        """The places in the view at which a compaction may cut: where a turn starts, and its end."""
        starts = self.starts | self.shadow_prompts
        return [place for place, position in enumerate(self.view) if position in starts]

    def __repr__(self) -> str:
        shown = " ".join(f"{event.position}{_sign(event)}" for event in self.events)
        return f"<WholeLog {shown}; view {self.view}>"


def _sign(event: SessionEvent) -> str:
    sign = "B" if event.is_boundary else "-" if event.message is None else event.content.type.value[0]
    return sign.upper() if event.is_synthetic else sign


@dataclass
class _Writer:
    draw: DrawFn
    base: str | None
    log: WholeLog = field(default_factory=WholeLog)
    pending: list[SessionEvent] = field(default_factory=list[SessionEvent])
    runs: int = 0

    def number(self, least: int, most: int) -> int:
        return self.draw(st.integers(least, most))

    def chance(self) -> bool:
        return self.draw(st.booleans())

    def write(self, message: Message | None, **fields: Any) -> int:
        """Add an event to the batch that is being filled; returns its position."""
        position = self.log.version + len(self.pending) + 1
        moment = START + timedelta(seconds=self.number(0, 2))  # equal times, and times that run back
        given: dict[str, Any] = {"message": message, "branch": self.base} | fields
        self.pending.append(SessionEvent(session_id=SESSION_ID, id=f"e{position}", timestamp=moment, **given))
        self.log.view.append(position)
        return position

    def flush(self) -> None:
        if self.pending:
            self.log.batches.append(self.pending)
            self.pending = []

    def settle(self) -> None:
        """End the batch here, or let it grow; and let happen what may happen at any moment."""
        if self.chance():
            self.flush()
        if self.number(0, 3) == 0:
            self.draw(st.sampled_from((_own_type, _sub_agent, _compaction)))(self)


@st.composite
def whole_logs(draw: DrawFn, *, compactions: bool = True) -> WholeLog:
    """A preamble, turns, and between and inside of them own types, sub-agents and compactions."""
    writer = _Writer(draw, draw(st.sampled_from((None, None, "a", "a.b"))))
    for step in draw(st.lists(st.sampled_from(_PREAMBLE), max_size=3)):
        step(writer)
    steps = _STEPS if compactions else _STEPS[:3]
    for step in draw(st.lists(st.sampled_from(steps), max_size=7)):
        step(writer)
    writer.flush()
    return writer.log


def _turn(writer: _Writer) -> None:
    """An opening of one to three messages, rounds of calls, perhaps a reply."""
    _opening(writer)
    for _ in range(writer.number(0, 2)):
        _round(writer)
    if writer.chance():
        writer.write(AssistantMessage("answer"))
        writer.settle()


def _opening(writer: _Writer) -> None:
    writer.runs += 1
    count = writer.number(1, 3)
    metadata = {EventMetadata.RUN_ID: f"run {writer.runs}"} if count > 1 or writer.chance() else {}
    for place in range(count):
        position = writer.write(UserMessage("question"), metadata=metadata)
        if place == 0:
            writer.log.starts.add(position)
        # A compaction may not cut between the messages of an opening, but it may come then.
        writer.settle()


def _round(writer: _Writer, branch: str | None = None) -> None:
    """Parallel calls, answered in one message or in several, after an interim result or without, in any order."""
    place = {"branch": branch} if branch else {}
    position = writer.log.version + len(writer.pending) + 1
    ids = [f"call {position}.{index}" for index in range(writer.number(1, 3))]
    asked = tuple(ToolCall(call_id, "look_up") for call_id in ids)
    writer.write(AssistantMessage(None, tool_calls=asked), **place)
    if branch is None:
        writer.settle()
    if writer.chance():
        writer.write(ToolMessage((ToolResult(ids[0], "wait", ToolStatus.INTERIM),)), **place)
    answered = writer.draw(st.permutations(ids))
    size = writer.number(1, len(ids))
    for first in range(0, len(ids), size):
        results = tuple(ToolResult(call_id, "found") for call_id in answered[first : first + size])
        writer.write(ToolMessage(results), **place)
        if branch is None:
            writer.settle()


def _own_type(writer: _Writer) -> None:
    branch = writer.base if writer.chance() else "elsewhere"
    writer.write(None, type=PROGRESS, payload={"done": 1}, branch=branch)


def _sub_agent(writer: _Writer) -> None:
    """A sub-agent's question, calls and answer, inside the turn of its caller."""
    if not writer.log.starts:
        return  # the first user message of a log sets the base branch
    branch = "sub" if writer.base is None else f"{writer.base}.sub"
    writer.write(UserMessage("do this"), branch=branch)
    if writer.chance():
        _round(writer, branch)
    writer.write(AssistantMessage("done"), branch=branch)


def _system(writer: _Writer) -> None:
    writer.write(SystemMessage("be kind"))


def _greeting(writer: _Writer) -> None:
    writer.write(AssistantMessage("hello"))


def _compaction(writer: _Writer) -> None:
    """A window or a summary, cut at a turn start of the view; it may land in the middle of the newest turn.

    Pinned are the view's preamble and, by a plain window, the summary before.
    """
    view, cuts = writer.log.view, writer.log.cuts
    if not cuts:
        return
    cut = writer.draw(st.sampled_from(cuts))
    pinned = view[: cuts[0]]
    if writer.chance():
        _bound(writer, pinned, view[cut:], summary=True)
        return
    prior = view[cuts[0] : cuts[0] + 2] if view[cuts[0]] in writer.log.shadow_prompts and cut > cuts[0] else []
    _bound(writer, pinned + prior, view[cut:])


def _clear(writer: _Writer) -> None:
    _bound(writer, [], [])


def _rewind(writer: _Writer) -> None:
    """The view up to a turn start."""
    cuts = writer.log.cuts
    if cuts:
        _bound(writer, writer.log.view[: writer.draw(st.sampled_from(cuts))], [])


def _bound(writer: _Writer, pinned: Sequence[int], kept: Sequence[int], *, summary: bool = False) -> None:
    writer.flush()
    position = writer.log.version + 1
    pair = [position + 1, position + 2] if summary else []
    view = [*pinned, *pair, *kept]
    payload = {"view": [[each, each] for each in view], "end": position + len(pair), "strategy": "test"}
    made = {EventMetadata.SYNTHETIC: True, EventMetadata.STRATEGY: "test", EventMetadata.BOUNDARY: f"e{position}"}
    writer.write(None, type=EventType.COMPACTION, payload=payload)
    if summary:
        writer.write(UserMessage("What happened so far?"), metadata=made)
        writer.write(AssistantMessage("much"), metadata=made)
        writer.log.shadow_prompts.add(position + 1)
    writer.flush()
    writer.log.view = view


_PREAMBLE: tuple[Callable[[_Writer], None], ...] = (_system, _greeting, _own_type, _round)
_STEPS: tuple[Callable[[_Writer], None], ...] = (
    _turn,
    _turn,
    _own_type,
    _turn,
    _compaction,
    _compaction,
    _rewind,
    _clear,
)
