"""A naive model of a log and its views (A-1 to A-5), and the steps that a random walk takes.

The model knows every event that it was ever told of and the view after every batch, as lists of positions. It works
by looking back over all of that; only the rule of turns and the reading of a boundary's payload come from the oracle of
the log's own tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import Struct

from tests.log.oracle import log_starts, sees, view_order
from turnlog import (
    AssistantMessage,
    EventFilter,
    Message,
    SessionEvent,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from turnlog.testing.contract.exactness import exactly
from turnlog.testing.factories import PROGRESS, SESSION_ID

BRANCHES: Final = (None, None, "a", "a.b")
KINDS: Final = ("user", "run", "assistant", "call", "result", "system", "own")


class Append(Struct, frozen=True):
    """A batch of these kinds of events on one branch."""

    kinds: tuple[str, ...]
    branch: str | None


class Clear(Struct, frozen=True):
    """Empty the view."""


class Rewind(Struct, frozen=True):
    """Go back by so many hundredths of the log."""

    hundredths: int


class Compact(Struct, frozen=True):
    """Keep the newest turns, and tell the rest in a summary, or not."""

    last_turns: int
    summarised: bool


class Fork(Struct, frozen=True):
    """Copy the log up to so many hundredths of it."""

    hundredths: int


Step = Append | Clear | Rewind | Compact | Fork


def steps() -> SearchStrategy[list[Step]]:
    """A random walk; appends are the most frequent."""
    batch = st.lists(st.sampled_from(KINDS), min_size=1, max_size=4).map(tuple)
    append = st.builds(Append, batch, st.sampled_from(BRANCHES))
    part = st.integers(0, 100)
    others = (
        st.just(Clear()),
        st.builds(Rewind, part),
        st.builds(Rewind, part),
        st.builds(Compact, st.integers(1, 3), st.booleans()),
        st.builds(Fork, part),
    )
    return st.lists(st.one_of(append, append, append, *others), max_size=14)


def part_of(version: int, hundredths: int) -> int:
    return version * hundredths // 100


class Model:
    """What a session's log must be and show. Versions count batches: one inside a batch is the one before it."""

    def __init__(self) -> None:
        self.log: list[SessionEvent] = []
        self.views: dict[int, list[int]] = {0: []}

    def batch(self, step: Append, name: str) -> list[SessionEvent]:
        """New events, with ids of their own."""
        made = [_event(kind, f"{name}-{number}") for number, kind in enumerate(step.kinds)]
        return [event.replace(branch=step.branch) for event in made]

    def told(self, log: Sequence[SessionEvent]) -> None:
        """The log after one more batch: nothing that was there has gone or changed (A-1)."""
        assert [event.position for event in log] == list(range(1, len(log) + 1))
        assert exactly(log[: len(self.log)]) == exactly(self.log)
        self.log = list(log)
        self.views[len(log)] = view_order(log)

    def end_of(self, version: int) -> int:
        """The newest end of a batch up to ``version``."""
        return max(end for end in self.views if end <= version)

    def rewound(self, version: int) -> int:
        """A-5: the newest end of a batch up to ``version`` that lies inside no turn."""
        return max(end for end in self.views if end <= version and not self.is_inside_turn(end))

    def is_inside_turn(self, version: int) -> bool:
        """Whether a turn has begun up to there and the next real message still belongs to it (V-5)."""
        starts = log_starts(self.log)
        following = [place for place in range(version + 1, len(self.log) + 1) if _is_real(self.log[place - 1])]
        begun = any(start <= version for start in starts)
        return begun and bool(following) and following[0] not in starts

    def cleared(self) -> list[int]:
        """A-5: the stored system message in force, of those of the view, and nothing else."""
        users = [event for event in self.log if isinstance(event.message, UserMessage) and _is_real(event)]
        base = EventFilter.for_branch(users[0].branch if users else None)
        in_view = [(place, self.log[place - 1]) for place in self.views[len(self.log)]]
        systems = [
            place for place, event in in_view if isinstance(event.message, SystemMessage) and sees(base, event.branch)
        ]
        return sorted(systems)[-1:]

    def covered(self, place: int) -> list[int]:
        """A-2: the message events of the view before the boundary at ``place`` that the view after it lacks."""
        after = self.views[self.batch_end(place)]
        return [each for each in self.views[place - 1] if self.log[each - 1].is_message and each not in after]

    def batch_end(self, place: int) -> int:
        """The end of the batch that holds ``place``."""
        return min(end for end in self.views if end >= place)

    def boundaries(self) -> list[SessionEvent]:
        return [event for event in self.log if event.is_boundary]


def _is_real(event: SessionEvent) -> bool:
    return event.is_message and not event.is_synthetic


def _event(kind: str, name: str) -> SessionEvent:
    if kind == "own":
        return SessionEvent(session_id=SESSION_ID, id=name, type=PROGRESS, payload={"note": name})
    messages: dict[str, Message] = {
        "user": UserMessage(name),
        "run": UserMessage(name),
        "assistant": AssistantMessage("because " * 20),
        "call": AssistantMessage(tool_calls=[ToolCall("c", "look")]),
        "result": ToolMessage([ToolResult("c", name)]),
        "system": SystemMessage(name),
    }
    metadata = {"turnlog.run_id": "r"} if kind == "run" else {}
    return SessionEvent(session_id=SESSION_ID, id=name, message=messages[kind], metadata=metadata)
