"""How :func:`turnlog.testing.strategies.batches` draws a log: step by step, knowing what the log holds so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import Any, Final, TypeVar

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
from turnlog.log.view import Boundary, ranges_of
from turnlog.testing.clocks import START
from turnlog.testing.deferred import DrawFn, SearchStrategy, st
from turnlog.testing.strategies_values import BRANCHES, OWN_TYPES, RUN_IDS, SECONDS, WORDS

T = TypeVar("T")

# All is drawn as numbers that point into these: several times as fast as a strategy for each value.
_TEXTS: Final = ("", *WORDS, *(f"{one} {two}" for one, two in zip(WORDS, reversed(WORDS), strict=True)))
_TIMES: Final = tuple(START + timedelta(seconds=n, microseconds=m) for n in range(SECONDS + 1) for m in (0, 1))
_STATUSES: Final = tuple(ToolStatus)


@cache
def _integers(least: int, most: int) -> SearchStrategy[int]:
    return st.integers(least, most)


@dataclass
class _Log:
    """What is drawn so far: the batches, the views after each of them, and the calls that wait for a result."""

    draw: DrawFn
    session_id: str
    base: str | None = None
    batches: list[list[SessionEvent]] = field(default_factory=list[list[SessionEvent]])
    version: int = 0
    view: list[int] = field(default_factory=list[int])
    views: list[list[int]] = field(default_factory=list[list[int]])
    boundaries: set[int] = field(default_factory=set[int])
    open_calls: list[str] = field(default_factory=list[str])

    def number(self, least: int, most: int) -> int:
        return self.draw(_integers(least, most))

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[self.number(0, len(choices) - 1)]

    def chance(self) -> bool:
        return bool(self.number(0, 1))

    def text(self) -> str:
        return self.one_of(_TEXTS)

    def append(self, batch: Sequence[SessionEvent], view: list[int] | None = None) -> None:
        """Add a batch; ``view`` is what a boundary names, for others the view grows at its end."""
        positions = range(self.version + 1, self.version + len(batch) + 1)
        self.batches.append([event.replace(id=f"e{n}") for n, event in zip(positions, batch, strict=True)])
        self.version += len(batch)
        self.view = [*self.view, *positions] if view is None else view
        self.views.append(self.view)

    def event(self, message: Message | None = None, **fields: Any) -> SessionEvent:
        """An event of the base branch, unless it says otherwise, at a time that need not be later than the last."""
        base: dict[str, Any] = {"session_id": self.session_id, "timestamp": self.one_of(_TIMES), "branch": self.base}
        base["message"] = message
        return SessionEvent(**base | fields)


def draw_batches(draw: DrawFn, session_id: str, max_batches: int) -> list[list[SessionEvent]]:
    """The batches of one log; every one can be appended behind those before it."""
    log = _Log(draw, session_id)
    log.base = log.one_of((None, None, "a", "a.b"))
    # Drawn as a number, not as a list that may end anywhere: those are short, and the bugs are in long logs as well.
    for _ in range(log.number(0, max_batches)):
        log.one_of(_STEPS)(log)
    return log.batches


def _opening(log: _Log) -> None:
    """One to three user messages in a row: of one run, of two, or of none."""
    log.append([_user(log, log.one_of((None, *RUN_IDS))) for _ in range(log.number(1, 3))])


def _user(log: _Log, run_id: str | None = None, **fields: Any) -> SessionEvent:
    metadata = {} if run_id is None else {EventMetadata.RUN_ID: run_id}
    return log.event(UserMessage(log.text()), metadata=metadata, **fields)


def _reply(log: _Log) -> None:
    log.append([log.event(AssistantMessage(log.text()))])


def _system(log: _Log) -> None:
    log.append([log.event(SystemMessage(log.text()))])


def _own_type(log: _Log) -> None:
    """Events of an own type, at times in one batch with messages."""
    made = log.event(
        None, type=log.one_of(OWN_TYPES), payload={"note": log.text()}, branch=log.one_of((None, *BRANCHES))
    )
    log.append([made, log.event(UserMessage("x"))] if log.chance() else [made])


def _calls(log: _Log) -> None:
    """Parallel calls, and in the same batch the results of the first so many of them."""
    ids = [f"call-{log.version}-{index}" for index in range(log.number(1, 3))]
    asked = tuple(ToolCall(call_id, "look_up", log.text()) for call_id in ids)
    answered = log.number(0, len(ids))
    log.open_calls += ids[answered:]
    message = AssistantMessage(log.one_of((None, log.text())), tool_calls=asked)
    log.append([log.event(message), *_answers(log, ids[:answered])])


def _late_results(log: _Log) -> None:
    """Results of calls that are still open, or of a call that was never made."""
    ids, log.open_calls = log.open_calls or ["nobody"], []
    log.append(_answers(log, ids))


def _answers(log: _Log, call_ids: Sequence[str]) -> list[SessionEvent]:
    """All in one tool message, or each in its own."""
    made = [ToolResult(call_id, log.text(), log.one_of(_STATUSES)) for call_id in call_ids]
    if made and log.chance():
        return [log.event(ToolMessage(tuple(made)))]
    return [log.event(ToolMessage((result,))) for result in made]


def _sub_agent(log: _Log) -> None:
    """A sub-agent's own question and answer, inside the turn of its caller."""
    branch = log.one_of(BRANCHES)
    replied = log.event(AssistantMessage(log.text()), branch=branch)
    log.append([_user(log, log.one_of((None, *RUN_IDS)), branch=branch), replied])


def _whole_turn(log: _Log) -> None:
    _opening(log)
    if log.chance():
        _calls(log)
    _reply(log)


def _clear(log: _Log) -> None:
    _bound(log, [], "clear")


def _rewind(log: _Log) -> None:
    """The view as it was after some batch."""
    _bound(log, list(log.one_of([[], *log.views])), "rewind")


def _window(log: _Log) -> None:
    """A cut at any place of the view, in the middle of a turn too, behind some pinned events."""
    pinned, kept = _cut(log)
    _bound(log, pinned + kept, "window")


def _summary(log: _Log) -> None:
    """The same cut with a summary between what is pinned and what is kept."""
    pinned, kept = _cut(log)
    shadow, told = log.version + 2, log.version + 3
    made = {
        EventMetadata.SYNTHETIC: True,
        EventMetadata.STRATEGY: "summary",
        EventMetadata.BOUNDARY: f"e{log.version + 1}",
    }
    pair = [
        log.event(UserMessage("What happened so far?"), metadata=made),
        log.event(AssistantMessage(log.text()), metadata=made),
    ]
    _bound(log, [*pinned, shadow, told, *kept], "summary", pair)


def _scattered(log: _Log) -> None:
    """Any positions of the log in any order."""
    positions = [position for position in range(1, log.version + 1) if position not in log.boundaries]
    count = log.number(0, len(positions))
    chosen = [positions.pop(log.number(0, len(positions) - 1)) for _ in range(count)]
    _bound(log, chosen, "scattered")


def _cut(log: _Log) -> tuple[list[int], list[int]]:
    """What is pinned and what is kept of the view: its first few, and its last few."""
    kept_from = log.number(0, len(log.view))
    pinned_to = log.number(0, min(2, kept_from))
    return log.view[:pinned_to], log.view[kept_from:]


def _bound(log: _Log, view: list[int], strategy: str, pair: Sequence[SessionEvent] = ()) -> None:
    position = log.version + 1
    named = Boundary(view=ranges_of(view), end=log.version + 1 + len(pair), strategy=strategy)
    log.boundaries.add(position)
    log.append([log.event(None, type=EventType.COMPACTION, payload=named.payload()), *pair], view)


_STEPS: Final[tuple[Callable[[_Log], None], ...]] = (
    _opening,
    _reply,
    _calls,
    _whole_turn,
    _whole_turn,
    _late_results,
    _sub_agent,
    _own_type,
    _system,
    _window,
    _summary,
    _summary,
    _scattered,
    _rewind,
    _clear,
)
