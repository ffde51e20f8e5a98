"""Plans of the tally: sums over the view from kept counts, and keeping the counts that were missing (C-9)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec import Struct

from turnlog.log.tally import Tally
from turnlog.log.tokens import TokenCounter, message_tokens
from turnlog.log.view import Range
from turnlog.storage.sql import kinds, rows
from turnlog.storage.sql import statements as sql
from turnlog.storage.sql.plans.plan import Plan
from turnlog.storage.sql.plans.reading import BoundaryCache, Scope, open_view
from turnlog.storage.sql.statements import Row, Rows, Statement


class Counted(Struct, frozen=True):
    """A tally, and the counts that had to be made for it: session key, counter, and pairs of position and tokens."""

    tally: Tally
    key: int
    counter: str
    made: tuple[tuple[int, int], ...]


def tally(
    session_id: str, counter: TokenCounter, known: Tally | None, now: datetime, boundaries: BoundaryCache
) -> Plan[Counted | None]:
    """The tally of the newest view, carried on from ``known`` if that is of this log and view; None without session."""
    scope = yield from open_view(session_id, now, boundaries)
    if scope is None:
        return None
    head = scope.head
    log = str(head.key)
    if known is None or not known.goes_on_in(log, head.version, head.boundary):
        known = Tally(log, 0, head.boundary, 0, 0)
        order = scope.order
    else:
        order = ((known.version + 1, head.version),) if head.version > known.version else ()
    counts = yield from _counts(scope, order, counter)
    turns = sum(kinds.code_of(row[1]) == kinds.START for row in counts)
    missing = [row for row in counts if _is_counted(row, head) and row[3] is None]
    made = yield from _made(scope, missing, counter)
    tokens = sum(row[3] or 0 for row in counts if _is_counted(row, head)) + sum(count for _, count in made)
    summed = Tally(log, head.version, head.boundary, known.turns + turns, known.tokens + tokens)
    return Counted(summed, head.key, counter.name, tuple(made))


def keep(counted: Counted) -> Plan[None]:
    """Keep the counts that were made, beside the events or apart, whichever holds those of this counter."""
    found = yield Statement(sql.COUNTER_OF, (counted.key,))
    if not found:
        return
    if found[0][0] == counted.counter:
        rows_ = [(tokens, counted.key, position) for position, tokens in counted.made]
        yield Statement(sql.SET_TOKENS, rows_, many=True)
    else:
        rows_of_counter = [(counted.key, counted.counter, position, tokens) for position, tokens in counted.made]
        yield Statement(sql.ADD_TOKEN_COUNT, rows_of_counter, many=True)


def _counts(scope: Scope, order: Sequence[Range], counter: TokenCounter) -> Plan[Rows]:
    """Position, kind, branch and kept count of each event of the order."""
    counts: Rows = []
    head = scope.head
    for low, high in order:
        if head.token_counter == counter.name:
            counts += yield Statement(sql.COUNTS, (head.key, low, high))
        else:
            counts += yield Statement(sql.COUNTS_APART, (counter.name, head.key, low, high))
    return counts


def _is_counted(row: Row, head: rows.Head) -> bool:
    """Messages on the base branch are (C-9)."""
    return kinds.code_of(row[1]) < kinds.BOUNDARY and (row[2] or "") == (head.state.base or "")


def _made(scope: Scope, missing: Rows, counter: TokenCounter) -> Plan[list[tuple[int, int]]]:
    made: list[tuple[int, int]] = []
    for chunk in _chunked(missing):
        ranges = [bound for row in chunk for bound in (row[0], row[0])]
        found = yield Statement(sql.in_ranges(len(chunk)), (*ranges, scope.head.key))
        for row in found:
            event = rows.event(scope.session_id, row[1:])
            if event.message is not None:
                made.append((row[1], message_tokens(event.message, counter)))
    return made


def _chunked(missing: Rows) -> Iterator[Rows]:
    return (missing[start : start + sql.MOST_LISTED] for start in range(0, len(missing), sql.MOST_LISTED))
