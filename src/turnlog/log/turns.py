"""Turns: where they start, told from the log read in order (V-5)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from turnlog.log.events import SessionEvent
from turnlog.log.messages import MessageType


class TurnState(Struct, frozen=True):
    """All that the rule needs to know of the events before.

    ``base`` is the branch of the first user message (None until there is one, ``""`` for root; no branch is empty).
    ``opening`` is the run id of the user message that the base branch ends with, if it has one: a user message of the
    same run continues that opening and starts no turn. Events on other branches, of own types and synthetic ones do not
    end an opening. ``turn`` is the position of the newest turn start, 0 in the preamble; ``turns`` counts them.
    """

    version: int = 0
    turn: int = 0
    turns: int = 0
    base: str | None = None
    opening: str | None = None

    def after(self, event: SessionEvent) -> TurnState:
        """The state once ``event`` follows; it started a turn exactly when ``turn == version``."""
        version = self.version + 1
        message = event.message
        if message is None or event.is_synthetic:
            return TurnState(version, self.turn, self.turns, self.base, self.opening)
        branch = event.branch or ""
        is_user = message.type is MessageType.USER
        base = branch if is_user and self.base is None else self.base
        if branch != base:
            return TurnState(version, self.turn, self.turns, base, self.opening)
        if not is_user:
            return TurnState(version, self.turn, self.turns, base, None)
        run_id = event.run_id
        if run_id is not None and run_id == self.opening:
            return TurnState(version, self.turn, self.turns, base, run_id)
        return TurnState(version, version, self.turns + 1, base, run_id)


def turn_starts(events: Iterable[SessionEvent]) -> list[bool]:
    """For each event of a whole log, in order, whether it starts a turn."""
    state = TurnState()
    starts: list[bool] = []
    for event in events:
        state = state.after(event)
        starts.append(state.turn == state.version)
    return starts
