"""Plans that read events: the view, then the criteria, then the window, each pushed down to index ranges (F-2, R-11).

*Order* is the list of position ranges in the order read: the log's one range, or the view's. *Field* is what of it
can match (criteria on position and time applied); *lanes* say which rows in the field match on type, author, origin
and branch. What no index answers (keywords, patterns) is tested on the rows as they come, in bounded batches, until
the window is full.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import BrokenInvariantError, UnreadableDataError
from turnlog.log.event_filter import EventFilter
from turnlog.log.events import SessionEvent
from turnlog.log.view import Boundary, BoundaryError, Range, ranges_of, read_boundary, segments
from turnlog.storage.sql import kinds, rows
from turnlog.storage.sql import statements as sql
from turnlog.storage.sql.lanes import EVERY_ROW, VIEW_STARTS, Lane, lanes_of, matches_lane
from turnlog.storage.sql.plans.appending import newest_boundary, version_as_of
from turnlog.storage.sql.plans.fetching import Field, count, fetch, fetch_matching, fetch_whole_turns
from turnlog.storage.sql.plans.plan import Plan, find_head
from turnlog.storage.sql.ranges import before_or_at, clipped, intersection
from turnlog.storage.sql.statements import Row, Rows, Statement

_VIEW = EventFilter(active_view=True)
_FIRST_MICROSECOND, _LAST_MICROSECOND = -(2**62), 2**62


class BoundaryCache:
    """The boundaries read last, by session key and position: they never change, and keys are never used again."""

    def __init__(self, size: int = 1_024) -> None:
        self._size = size
        self._held: dict[tuple[int, int], Boundary] = {}

    def get(self, key: int, position: int) -> Boundary | None:
        """The boundary, if it was read lately."""
        return self._held.get((key, position))

    def put(self, key: int, position: int, boundary: Boundary) -> None:
        """Keep it, and let go of the oldest."""
        # Dictionary operations are atomic; two threads may evict one entry too many, which costs a look-up later.
        while len(self._held) >= self._size:
            self._held.pop(next(iter(self._held)), None)
        self._held[key, position] = boundary


class Scope(Struct, frozen=True):
    """A session's log at a version, and the order it is read in: that of a boundary's view, or of the log itself."""

    session_id: str
    head: rows.Head
    version: int
    order: tuple[Range, ...]
    is_view: bool


def events(
    session_id: str, filter_: EventFilter, as_of: int | None, now: datetime, boundaries: BoundaryCache
) -> Plan[list[SessionEvent]]:
    """All that ``filter.apply`` would give; empty for an unknown session."""
    scope = yield from open_scope(session_id, filter_, as_of, now, boundaries)
    if scope is None:
        return []
    found = yield from read(scope, filter_)
    return rows.events(session_id, found)


def open_scope(
    session_id: str, filter_: EventFilter, as_of: int | None, now: datetime, boundaries: BoundaryCache
) -> Plan[Scope | None]:
    """The session's log at ``as_of`` and its order; None for an unknown session."""
    head = yield from find_head(session_id, now)
    if head is None:
        return None
    version = yield from version_as_of(session_id, head, as_of)
    boundary = None
    if filter_.active_view:
        boundary = yield from _boundary(session_id, head, version, boundaries)
    return Scope(session_id, head, version, segments(boundary, version), boundary is not None)


def open_view(session_id: str, now: datetime, boundaries: BoundaryCache) -> Plan[Scope | None]:
    """The session's newest view; None for an unknown session."""
    return (yield from open_scope(session_id, _VIEW, None, now, boundaries))


def _boundary(session_id: str, head: rows.Head, version: int, boundaries: BoundaryCache) -> Plan[Boundary | None]:
    position = yield from newest_boundary(head, version)
    if not position:
        return None
    known = boundaries.get(head.key, position)
    if known is not None:
        return known
    found = yield Statement(sql.EVENT_AT, (head.key, position))
    if not found:
        raise BrokenInvariantError(f"session {session_id!r} has no boundary at position {position}")
    event = rows.event(session_id, found[0])
    try:
        boundary = read_boundary(event.payload, position)
    except BoundaryError as error:
        raise UnreadableDataError(session_id, position, f"no view: {error}") from error
    if boundary.end > version:
        raise UnreadableDataError(session_id, position, f"the boundary ends at {boundary.end}, behind the log")
    boundaries.put(head.key, position, boundary)
    return boundary


def read(scope: Scope, filter_: EventFilter) -> Plan[Rows]:
    """The rows of the window, in the order read."""
    field = yield from field_of(scope, filter_)
    window = filter_.window
    if not field.lanes or not field.ranges:
        return []
    if window.newest is not None:
        limit = min(window.newest, scope.version)  # no engine counts further than 64 bits
        if (
            window.whole_turns
            and field.lanes is EVERY_ROW
            and not (scope.is_view or filter_.reads_text or field.ranges[1:])
        ):
            return (yield from fetch_whole_turns(field, limit))
        newest = yield from fetch_matching(field, filter_, descending=True, limit=limit)
        newest.reverse()
        if len(newest) < window.newest or not window.whole_turns:
            return newest
        earlier = yield from _back_to_turn_start(scope, field, filter_, newest[0])
        return earlier + newest
    if window.size is not None:
        first = window.number * window.size
        # Past the end whatever matches; and no engine takes an offset of more than 64 bits.
        if first >= scope.version:
            return []
        return (yield from fetch_matching(field, filter_, limit=min(window.size, scope.version), offset=first))
    return (yield from fetch_matching(field, filter_, limit=scope.version))


def field_of(scope: Scope, filter_: EventFilter) -> Plan[Field]:
    """Where the filter's matches lie, text aside."""
    ranges = clipped(scope.order, filter_.after, filter_.before)
    lanes = lanes_of(filter_, scope.head.kinds)
    field = Field(scope.session_id, scope.head.key, ranges, lanes, kinds.only_root_messages(scope.head.kinds))
    if not lanes or not ranges or (filter_.since is None and filter_.until is None):
        return field
    positions = yield from _positions_in_time(scope, filter_, lanes)
    chosen = intersection(ranges, ranges_of(sorted(positions)))
    return replace(field, ranges=chosen, lanes=EVERY_ROW)


def _positions_in_time(scope: Scope, filter_: EventFilter, lanes: Sequence[Lane]) -> Plan[list[int]]:
    since = _FIRST_MICROSECOND if filter_.since is None else rows.micros(filter_.since)
    until = _LAST_MICROSECOND if filter_.until is None else rows.micros(filter_.until)
    found = yield Statement(sql.IN_TIME, (scope.head.key, since, until))
    return [position for position, *place in found if position <= scope.version and matches_lane(lanes, *place)]


def _back_to_turn_start(scope: Scope, field: Field, filter_: EventFilter, oldest: Row) -> Plan[Rows]:
    """The matches from the nearest turn start up to ``oldest``; none if that start does not match (F-5)."""
    start = yield from _turn_start(scope, oldest)
    if not start or start == oldest[0]:
        return []
    turn = _between(scope.order, start, oldest[0])
    part = replace(field, ranges=intersection(turn, field.ranges))
    earlier = yield from fetch_matching(part, filter_, limit=scope.version)
    return earlier if earlier and earlier[0][0] == start else []


def _turn_start(scope: Scope, oldest: Row) -> Plan[int]:
    """The position of the nearest turn start at or before a row in the order read, all criteria aside; 0 for none."""
    if not scope.is_view:
        found = yield Statement(sql.TURN_AT, (scope.head.key, oldest[0]))
        turn: int = found[0][0]
        return turn
    order = before_or_at(scope.order, oldest[0])
    lanes = tuple(lane for lane in VIEW_STARTS if scope.head.kinds >> lane.kind & 1)
    if not lanes:
        return 0
    found = yield from fetch(Field(scope.session_id, scope.head.key, order, lanes), descending=True, limit=1)
    return found[0][0] if found else 0


def _between(order: tuple[Range, ...], start: int, end: int) -> tuple[Range, ...]:
    """The part of the order from ``start`` up to, but without, ``end``."""
    behind_start = before_or_at(order, start)
    skipped = len(behind_start) - 1
    part = before_or_at(order, end)[skipped:]
    first = (max(start, part[0][0]), part[0][1])
    low, high = part[-1] if len(part) > 1 else first
    last = ((low, high - 1),) if high > low else ()
    return ((first, *part[1:-1]) if len(part) > 1 else ()) + last


def count_events(
    session_id: str, filter_: EventFilter, as_of: int | None, now: datetime, boundaries: BoundaryCache
) -> Plan[int]:
    """How many events the filter selects; read only where text or a window decides."""
    scope = yield from open_scope(session_id, filter_, as_of, now, boundaries)
    if scope is None:
        return 0
    if filter_.reads_text or not filter_.window.is_all:
        return len((yield from read(scope, filter_)))
    field = yield from field_of(scope, filter_)
    return (yield from count(field))
