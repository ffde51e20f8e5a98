"""The reference reading: a filter over a whole log held as a list (F-2, F-5, F-9).

It is written to be read, not to be fast; every store must give the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from turnlog.errors import InvalidValueError, UnreadableDataError
from turnlog.log.events import SessionEvent
from turnlog.log.turns import turn_starts
from turnlog.log.view import BoundaryError, positions_of, read_boundary, segments

if TYPE_CHECKING:
    from turnlog.log.event_filter import EventFilter

#: An event, and whether it starts a turn in the order read.
_Item = tuple[SessionEvent, bool]


def apply_filter(filter_: EventFilter, events: Sequence[SessionEvent]) -> list[SessionEvent]:
    """View, then criteria, then window."""
    log = _positioned(events)
    items: list[_Item] = list(zip(log, turn_starts(log), strict=True))
    if filter_.active_view:
        items = _view(items)
    matched = [index for index, (event, _) in enumerate(items) if filter_.matches(event)]
    return [items[index][0] for index in _windowed(filter_, items, matched)]


def _positioned(events: Sequence[SessionEvent]) -> list[SessionEvent]:
    given = [event.position for event in events]
    if all(position is None for position in given):
        return [event.replace(position=index) for index, event in enumerate(events, 1)]
    ordered = [position for position in given if position is not None]
    if len(ordered) != len(given) or any(low >= high for low, high in pairwise(ordered)):
        raise InvalidValueError("the events of a log have rising positions, or none of them has one")
    return list(events)


def _view(items: list[_Item]) -> list[_Item]:
    """The view's events in view order; over the view a shadow prompt starts a turn too (V-5)."""
    boundary = next((event for event, _ in reversed(items) if event.is_boundary), None)
    if boundary is None:
        return [(event, start or event.is_shadow_prompt) for event, start in items]
    by_position = {event.position: (event, start) for event, start in items}
    version = items[-1][0].position or 0
    try:
        spans = segments(read_boundary(boundary.payload, boundary.position or 0), version)
        chosen = [by_position[position] for position in positions_of(spans)]
    except (BoundaryError, KeyError) as error:
        raise UnreadableDataError(boundary.session_id, boundary.position, f"no view: {error}") from error
    return [(event, start or event.is_shadow_prompt) for event, start in chosen]


def _windowed(filter_: EventFilter, items: list[_Item], matched: list[int]) -> list[int]:
    window = filter_.window
    if window.size is not None:
        first = window.number * window.size
        return matched[first : first + window.size]
    if window.newest is None or window.newest >= len(matched):
        return matched
    oldest = matched[-window.newest]
    if window.whole_turns:
        oldest = _turn_start_before(filter_, items, oldest)
    return [index for index in matched if index >= oldest]


def _turn_start_before(filter_: EventFilter, items: list[_Item], oldest: int) -> int:
    """The nearest turn start at or before ``oldest``, all criteria aside, if it passes them; else ``oldest``."""
    for index in range(oldest, -1, -1):
        event, starts_turn = items[index]
        if starts_turn:
            return index if filter_.matches(event) else oldest
    return oldest
