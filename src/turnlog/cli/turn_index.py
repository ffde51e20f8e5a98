"""Which turn a position belongs to, told from the user messages alone: no log is read whole to number the turns."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from turnlog.log.event_filter import EventFilter
from turnlog.log.events import SessionEvent
from turnlog.log.messages import MessageType
from turnlog.storage.protocol import SessionRepository

_OTHERS = frozenset(MessageType) - {MessageType.USER}


class TurnIndex:
    """The turn starts of a log up to some position (V-5)."""

    def __init__(self, starts: Sequence[int]) -> None:
        self._starts = tuple(starts)

    def number_at(self, position: int) -> int:
        """The turn that the event belongs to, from 1; 0 in the preamble."""
        return bisect_right(self._starts, position)

    def is_start(self, position: int) -> bool:
        """Whether the event starts a turn."""
        number = self.number_at(position)
        return number > 0 and self._starts[number - 1] == position


def read_turn_index(repository: SessionRepository, session_id: str, until: int) -> TurnIndex:
    """The turns of the log up to and with position ``until``."""
    return TurnIndex(list(_starts(repository, session_id, until)))


def _starts(repository: SessionRepository, session_id: str, until: int) -> Iterator[int]:
    users = EventFilter(message_types={MessageType.USER}, exclude_synthetic=True, before=until + 1)
    base: str | None = None
    previous: SessionEvent | None = None
    for batch in repository.iter_events(session_id, users):
        for event in batch:
            branch = event.branch or ""
            base = branch if base is None else base
            if branch != base:
                continue
            if previous is None or not _is_one_opening(repository, previous, event):
                yield event.position or 0
            previous = event


def _is_one_opening(repository: SessionRepository, first: SessionEvent, second: SessionEvent) -> bool:
    """Whether two user messages follow each other on their branch and belong to one run."""
    if first.run_id is None or first.run_id != second.run_id:
        return False
    between = EventFilter(
        message_types=_OTHERS, exclude_synthetic=True, after=first.position, before=second.position, branch=first.branch
    )
    found = repository.events(first.session_id, between)
    return not any(event.branch == first.branch for event in found)
