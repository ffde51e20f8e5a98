"""What a trigger and a strategy are asked: the view, cut into the parts that the rules speak of (C-4)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

from turnlog.log.events import SessionEvent
from turnlog.log.messages import AssistantMessage, SystemMessage, ToolMessage, ToolStatus, UserMessage
from turnlog.log.tokens import TokenCounter, message_tokens
from turnlog.log.turns import TurnState

EventSequence: TypeAlias = tuple[SessionEvent, ...]


class EventsNeededError(Exception):
    """Raised when a trigger looks at a view that has not been read; the service reads the view and asks it again."""


class CompactionRequest:
    """A session's view at one version. ``events`` are read only if they are asked for.

    ``turns`` counts the view's real turns, ``tokens`` its messages on the base branch, pinned ones and summary
    included; ``boundary`` is the position of the newest boundary, 0 without one.
    """

    def __init__(
        self,
        *,
        session_id: str,
        version: int,
        boundary: int,
        turns: int,
        tokens: int,
        counter: TokenCounter,
        events: EventSequence | None,
    ) -> None:
        self.session_id = session_id
        self.version = version
        self.boundary = boundary
        self.turns = turns
        self.tokens = tokens
        self.counter = counter
        self._events = events

    @property
    def events(self) -> EventSequence:
        """The view's events, own types included, in view order."""
        if self._events is None:
            raise EventsNeededError
        return self._events

    @cached_property
    def parts(self) -> ViewParts:
        """The view, cut into its parts."""
        return view_parts(self.events)

    def tokens_of(self, events: Sequence[SessionEvent]) -> int:
        """The tokens of these events' messages, whatever branch they lie on."""
        return sum(message_tokens(event.message, self.counter) for event in events if event.message is not None)


class ViewParts:
    """A view in view order: system messages, an earlier summary, the preamble, and the turns.

    ``systems`` are all stored system messages in the view on the base branch; the last by position is in force.
    """

    def __init__(
        self, systems: EventSequence, summary: EventSequence, preamble: EventSequence, turns: tuple[EventSequence, ...]
    ) -> None:
        self.systems = systems
        self.summary = summary
        self.preamble = preamble
        self.turns = turns

    @property
    def system(self) -> EventSequence:
        """The system message in force, if one is stored."""
        return (max(self.systems, key=_position),) if self.systems else ()

    @property
    def superseded(self) -> EventSequence:
        """The system messages that a later one replaces (C-5)."""
        return tuple(event for event in self.systems if event not in self.system)

    @property
    def base(self) -> str | None:
        """The branch that turns start on."""
        first = next((event for event in (*self.summary, *(turn[0] for turn in self.turns))), None)
        return None if first is None else first.branch


def view_parts(events: Sequence[SessionEvent]) -> ViewParts:
    """Cut a view. Turns start as in the log: a view holds whole turns, so the messages of one opening stay together."""
    base = _base_of(events)
    systems: list[SessionEvent] = []
    summary: list[SessionEvent] = []
    preamble: list[SessionEvent] = []
    turns: list[list[SessionEvent]] = []
    state = TurnState(base=base)
    for event in events:
        before, state = state, state.after(event)
        if event.is_synthetic:
            summary.append(event)
        elif isinstance(event.message, SystemMessage) and (event.branch or "") == (base or ""):
            systems.append(event)
        elif state.turns > before.turns:
            turns.append([event])
        else:
            (turns[-1] if turns else preamble).append(event)
    return ViewParts(tuple(systems), tuple(summary), tuple(preamble), tuple(map(tuple, turns)))


def _base_of(events: Sequence[SessionEvent]) -> str | None:
    """The base branch as ``TurnState`` names it: that of the first user message, a summary's prompt included."""
    first = next((event for event in events if isinstance(event.message, UserMessage)), None)
    return None if first is None else first.branch or ""


def is_pending(turn: Sequence[SessionEvent]) -> bool:
    """Whether a call of the turn is marked pending: interim results and no final one (V-1, C-4)."""
    called = {
        call.id for event in turn if isinstance(event.message, AssistantMessage) for call in event.message.tool_calls
    }
    interim: set[str] = set()
    final: set[str] = set()
    for event in turn:
        if isinstance(event.message, ToolMessage):
            for result in event.message.results:
                (interim if result.status is ToolStatus.INTERIM else final).add(result.id)
    return bool(called & interim - final)


def _position(event: SessionEvent) -> int:
    return event.position or 0
