"""Plans that read a long result in steps, each on its own snapshot: the log only grows, so the steps agree."""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import SessionNotFoundError
from turnlog.log.event_filter import EventFilter
from turnlog.log.events import SessionEvent
from turnlog.log.windows import Window
from turnlog.storage.rules import check_contiguous
from turnlog.storage.sql import rows
from turnlog.storage.sql import statements as sql
from turnlog.storage.sql.plans.appending import version_as_of
from turnlog.storage.sql.plans.fetching import Field, fetch_matching
from turnlog.storage.sql.plans.plan import Plan, find_head
from turnlog.storage.sql.plans.reading import BoundaryCache, field_of, open_scope, read
from turnlog.storage.sql.statements import Rows, Statement


class Walk(Struct, frozen=True):
    """Where a reading in steps has got to. ``field`` is what is still to be read, None before the first step."""

    session_id: str
    filter: EventFilter
    as_of: int | None
    size: int
    field: Field | None = None
    waiting: tuple[SessionEvent, ...] = ()
    is_done: bool = False


#: What one step has read, and where the reading stands then.
Step: TypeAlias = tuple[list[SessionEvent], Walk]


def step(walk: Walk, now: datetime, boundaries: BoundaryCache) -> Plan[Step]:
    """The next events, at most ``walk.size``, and where the reading stands then."""
    if walk.waiting:
        return _from_waiting(walk)
    if walk.field is None:
        scope = yield from open_scope(walk.session_id, walk.filter, walk.as_of, now, boundaries)
        if scope is None:
            return [], replace(walk, is_done=True)
        if walk.filter.window != Window.ALL:
            # A window is read at once: what it holds was asked for as a whole.
            found = yield from read(scope, walk.filter)
            return _from_waiting(replace(walk, waiting=tuple(rows.events(walk.session_id, found))))
        field = yield from field_of(scope, walk.filter)
    else:
        yield from _still_there(walk.session_id, walk.field.key, now)
        field = walk.field
    if not field.lanes or not field.ranges:
        return [], replace(walk, is_done=True)
    found = yield from fetch_matching(field, walk.filter, limit=walk.size)
    if len(found) < walk.size:
        walk = replace(walk, is_done=True)
    else:
        walk = replace(walk, field=field.without(found[-1][0], descending=False))
    return rows.events(walk.session_id, found), walk


def _from_waiting(walk: Walk) -> tuple[list[SessionEvent], Walk]:
    rest = walk.waiting[walk.size :]
    return list(walk.waiting[: walk.size]), replace(walk, waiting=rest, is_done=not rest)


def _still_there(session_id: str, key: int, now: datetime) -> Plan[None]:
    head = yield from find_head(session_id, now)
    if head is None or head.key != key:
        raise SessionNotFoundError(session_id)


class BatchWalk(Struct, frozen=True):
    """Where a reading batch by batch has got to: the next position, and the end."""

    session_id: str
    as_of: int | None
    key: int = 0
    position: int = 1
    version: int = 0
    is_done: bool = False


_ROWS_AT_ONCE = 500


BatchStep: TypeAlias = tuple[list[list[SessionEvent]], BatchWalk]


def step_batches(walk: BatchWalk, now: datetime) -> Plan[BatchStep]:
    """The next batches, all of them whole."""
    head = yield from find_head(walk.session_id, now)
    if walk.key and (head is None or head.key != walk.key):
        raise SessionNotFoundError(walk.session_id)
    if head is None:
        return [], replace(walk, is_done=True)
    if not walk.key:
        version = yield from version_as_of(walk.session_id, head, walk.as_of)
        walk = replace(walk, key=head.key, version=version)
    found: Rows = []
    while walk.position <= walk.version:
        high = min(walk.position + len(found) + _ROWS_AT_ONCE - 1, walk.version)
        low = walk.position + len(found)
        read_now = yield Statement(sql.IN_RANGE_WITH_BATCHES, (walk.key, low, high))
        check_contiguous(walk.session_id, low, high, len(read_now))
        found += read_now
        whole = len(found) if high == walk.version else _whole_batches(found)
        if whole:
            batches = _batches(walk.session_id, found[:whole])
            position = walk.position + whole
            return batches, replace(walk, position=position, is_done=position > walk.version)
    return [], replace(walk, is_done=True)


def _whole_batches(found: Rows) -> int:
    """How many rows at the start are batches that have ended: all before the last one's first row."""
    return next((index for index in range(len(found) - 1, 0, -1) if found[index][-1] == 0), 0)


def _batches(session_id: str, found: Rows) -> list[list[SessionEvent]]:
    batches: list[list[SessionEvent]] = []
    for row, event in zip(found, rows.events(session_id, [row[:-1] for row in found]), strict=True):
        if row[-1] == 0:
            batches.append([])
        batches[-1].append(event)
    return batches
