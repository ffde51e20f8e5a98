"""Fetching rows of a field in order: so many from one end, an offset skipped."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from msgspec import Struct
from msgspec.structs import replace

from turnlog.log.event_filter import EventFilter
from turnlog.log.view import Range
from turnlog.storage.rules import check_contiguous
from turnlog.storage.sql import rows
from turnlog.storage.sql import statements as sql
from turnlog.storage.sql.lanes import EVERY_ROW, Lane, chunks
from turnlog.storage.sql.plans.plan import Plan
from turnlog.storage.sql.ranges import before_or_at, behind, slice_of
from turnlog.storage.sql.statements import Rows, Statement

#: Rows fetched at once where each has to be looked at: small windows stop early, long scans hold little.
_SCANNED_AT_ONCE = 200

_BY_NUMBER_AND_POSITION = itemgetter(0, 1)
_BY_POSITION = itemgetter(0)


class Field(Struct, frozen=True):
    """Where matches can lie: position ranges in the order read, and the lanes within them.

    ``only_messages``: the log holds nothing but messages on root, of which fewer columns need to be read.
    """

    session_id: str
    key: int
    ranges: tuple[Range, ...]
    lanes: tuple[Lane, ...]
    only_messages: bool = False

    def without(self, position: int, *, descending: bool) -> Field:
        """What is left when everything up to ``position``, from the end that is read first, has been seen."""
        if descending:
            ranges = before_or_at(self.ranges, position)
            low, high = ranges[-1]
            ranges = (*ranges[:-1], (low, high - 1)) if high > low else ranges[:-1]
        else:
            ranges = behind(self.ranges, position)
        return replace(self, ranges=ranges)


def fetch_matching(
    field: Field, filter_: EventFilter, *, limit: int, descending: bool = False, offset: int = 0
) -> Plan[Rows]:
    """The first ``limit`` rows that match in text too, behind ``offset`` such rows; newest first if ``descending``."""
    if not filter_.reads_text:
        return (yield from fetch(field, limit=limit, descending=descending, offset=offset))
    matching: Rows = []
    while field.ranges and len(matching) < offset + limit:
        batch = yield from fetch(field, limit=_SCANNED_AT_ONCE, descending=descending)
        if not batch:
            break
        matching += (row for row in batch if filter_.matches_text(rows.event(field.session_id, row)))
        field = field.without(batch[-1][0], descending=descending)
    return matching[offset : offset + limit]


def fetch(field: Field, *, limit: int, descending: bool = False, offset: int = 0) -> Plan[Rows]:
    """The first ``limit`` rows of the field behind ``offset`` rows; from the newest if ``descending``."""
    if field.lanes is EVERY_ROW:
        return (yield from _fetch_every_row(field, limit, descending, offset))
    fetched: Rows = []
    for span in reversed(field.ranges) if descending else field.ranges:
        found, passed = yield from _fetch_lanes(field, span, limit - len(fetched), descending, offset)
        fetched += found
        offset -= passed
        if len(fetched) == limit:
            break
    return fetched


def _fetch_every_row(field: Field, limit: int, descending: bool, offset: int) -> Plan[Rows]:
    """Positions have no gaps, so where nothing restricts them the window is known before anything is read."""
    wanted = slice_of(field.ranges, offset, limit, descending=descending)
    if len(wanted) == 1:
        fetched = yield from _fetch_range(field, *wanted[0])
    else:
        fetched = yield from _fetch_ranges(field, wanted)
    if descending:
        fetched.reverse()
    return fetched


def _fetch_range(field: Field, low: int, high: int) -> Plan[Rows]:
    text = sql.in_range(only_messages=field.only_messages)
    fetched = yield Statement(text, (field.key, low, high))
    check_contiguous(field.session_id, low, high, len(fetched))
    return fetched


def _fetch_ranges(field: Field, wanted: Sequence[Range]) -> Plan[Rows]:
    fetched: Rows = []
    for start in range(0, len(wanted), sql.MOST_LISTED):
        chunk = wanted[start : start + sql.MOST_LISTED]
        found = yield Statement(sql.in_ranges(len(chunk)), (*(bound for span in chunk for bound in span), field.key))
        found.sort(key=_BY_NUMBER_AND_POSITION)
        size = sum(high - low + 1 for low, high in chunk)
        check_contiguous(field.session_id, chunk[0][0], chunk[0][0] + size - 1, len(found))
        fetched += (row[1:] for row in found)
    return fetched


def fetch_whole_turns(field: Field, limit: int) -> Plan[Rows]:
    """The newest ``limit`` rows of a field of one range in which every row matches, back to the start of their turn."""
    ((least, high),) = field.ranges
    first = max(least, high - limit + 1)
    text = sql.in_whole_turns(only_messages=field.only_messages)
    fetched = yield Statement(text, (field.key, least, field.key, first, high), last=True)
    check_contiguous(field.session_id, fetched[0][0] if fetched else first, high, len(fetched))
    return fetched


def _fetch_lanes(field: Field, span: Range, limit: int, descending: bool, offset: int) -> Plan[tuple[Rows, int]]:
    """Rows of one range, and how many of the offset it used up."""
    low, high = span
    if len(field.lanes) <= sql.MOST_ARMS:
        found = yield sql.in_lanes(field.lanes, field.key, low, high, descending=descending, limit=limit, offset=offset)
    else:
        merged: Rows = []
        for lanes in chunks(field.lanes, sql.MOST_ARMS):
            merged += yield sql.in_lanes(lanes, field.key, low, high, descending=descending, limit=offset + limit)
        merged.sort(key=_BY_POSITION, reverse=descending)
        found = merged[offset : offset + limit]
    if found or not offset:
        return found, offset
    return found, (yield from count(Field(field.session_id, field.key, (span,), field.lanes)))


def count(field: Field) -> Plan[int]:
    """How many rows the field holds."""
    if field.lanes is EVERY_ROW:
        return sum(high - low + 1 for low, high in field.ranges)
    total = 0
    for low, high in field.ranges:
        for lanes in chunks(field.lanes, sql.MOST_ARMS):
            counted = yield sql.count_in_lanes(lanes, field.key, low, high)
            total += counted[0][0] or 0
    return total
