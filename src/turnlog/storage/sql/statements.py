"""The statements of the SQL stores: constants with bound parameters; what is put together is cached by its shape.

The parameter mark is ``?``; a driver whose engine writes another translates it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, LiteralString, TypeAlias

from msgspec import Struct

from turnlog.storage.sql.lanes import Lane

Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = list[Row]


class Statement(Struct, frozen=True):
    """One statement to execute. A query answers with its rows, any other with one row that holds the number it changed.

    ``many`` executes it once for each element of ``parameters``. Behind one that is ``last`` the plan yields no other,
    so that a server can be told to commit in the same breath. If the plan refuses the answer to it, it has changed
    nothing. ``decided`` is then what the plan comes to, for the case that the answer is lost.
    """

    sql: str
    parameters: Sequence[Any] = ()
    many: bool = False
    last: bool = False
    decided: object = None


HEAD_COLUMNS = (
    "key, version, turn, turns, kinds, boundary, base, opening, lease_token, lease_until, expires_at, time_to_live,"
    " token_counter"
)
HEAD = f"SELECT {HEAD_COLUMNS} FROM session WHERE id = ?"
#: On a server the row lock that orders the appenders of a session; SQLite's writers are alone already.
HEAD_LOCKED = HEAD + " /*FOR UPDATE*/"
MOVE_HEAD = (
    "UPDATE session SET version = ?, turn = ?, turns = ?, kinds = ?, boundary = ?, base = ?, opening = ?,"
    " lease_token = ?, lease_until = ?, expires_at = ? WHERE key = ? AND version = ?"
)
SET_LEASE = "UPDATE session SET lease_token = ?, lease_until = ? WHERE key = ?"

SESSION_COLUMNS = "s.id, s.created_at, s.expires_at, s.time_to_live, d.format, d.body"
SESSION = (
    f"SELECT {SESSION_COLUMNS}, s.key, s.lease_token, s.lease_until"
    " FROM session s JOIN session_document d ON d.session_key = s.key WHERE s.id = ?"
)
ADD_SESSION = (
    "INSERT INTO session (id, created_at, expires_at, time_to_live, token_counter) VALUES (?, ?, ?, ?, ?) RETURNING key"
)
ADD_DOCUMENT = "INSERT INTO session_document (session_key, format, body) VALUES (?, ?, ?)"
ADD_ATTRIBUTE = "INSERT INTO session_attribute (name, value, created_at, session_key) VALUES (?, ?, ?, ?)"
SET_DOCUMENT = "UPDATE session_document SET format = ?, body = ? WHERE session_key = ?"
SET_EXPIRY = "UPDATE session SET expires_at = ?, time_to_live = ? WHERE key = ?"
REMOVE_ATTRIBUTES = "DELETE FROM session_attribute WHERE name = ? AND value = ? AND created_at = ? AND session_key = ?"
REMOVE_SESSION = "DELETE FROM session WHERE key = ?"
_EXPIRED = "expires_at <= ? AND (lease_until IS NULL OR lease_until <= ?)"
#: Every row is looked at once more as it is removed: a server may have waited for somebody who extended the session.
REMOVE_EXPIRED = (
    f"DELETE FROM session WHERE key IN (SELECT key FROM session WHERE {_EXPIRED} ORDER BY expires_at LIMIT ?)"
    f" AND {_EXPIRED}"
)

#: On a server: wait until nobody is writing a session, and keep others from it; SQLite's writers are alone already.
LOCK_SESSIONS = "SELECT 1 /*LOCK TABLE session IN EXCLUSIVE MODE*/"
ANY_SESSION = "SELECT 1 FROM session LIMIT 1"
SESSIONS_BEHIND = (
    f"SELECT {SESSION_COLUMNS}, s.key FROM session s JOIN session_document d ON d.session_key = s.key"
    " WHERE s.key > ? ORDER BY s.key LIMIT ?"
)
SETTING = "SELECT value FROM store_setting WHERE name = ?"
REMOVE_SETTING = "DELETE FROM store_setting WHERE name = ?"
ADD_SETTING = "INSERT INTO store_setting (name, value) VALUES (?, ?)"

#: Of messages on root; and of any event. A row of the first is the beginning of a row of the second.
MESSAGE_COLUMNS = "position, event_id, timestamp, format, body"
EVENT_COLUMNS = f"{MESSAGE_COLUMNS}, kind, type, branch"
ADD_EVENT = (
    "INSERT INTO event (session_key, position, event_id, timestamp, kind, batch, turn, format, tokens, type, branch,"
    " run_id, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_PLACED = (
    "position BIGINT, event_id BYTEA, timestamp BIGINT, kind SMALLINT, batch INTEGER, turn BIGINT, format SMALLINT,"
    " tokens INTEGER, type TEXT, branch TEXT, run_id BYTEA, body BYTEA"
)
BATCH_INDEX = "SELECT batch FROM event WHERE session_key = ? AND position = ?"
TURN_AT = "SELECT turn FROM event WHERE session_key = ? AND position = ?"
EVENT_AT = f"SELECT {EVENT_COLUMNS} FROM event WHERE session_key = ? AND position = ?"
IN_RANGE_WITH_BATCHES = (
    f"SELECT {EVENT_COLUMNS}, batch FROM event WHERE session_key = ? AND position BETWEEN ? AND ? ORDER BY position"
)
IN_TIME = "SELECT position, kind, branch, type FROM event WHERE session_key = ? AND timestamp BETWEEN ? AND ?"
#: The plus keeps SQLite from walking the whole session along its key, where it need not sort (R-11).
OF_RUN = f"SELECT {EVENT_COLUMNS} FROM event WHERE session_key = ? AND run_id = ? ORDER BY +position"
COUNTS = "SELECT position, kind, branch, tokens FROM event WHERE session_key = ? AND position BETWEEN ? AND ?"
COUNTS_APART = (
    "SELECT e.position, e.kind, e.branch, t.tokens FROM event e LEFT JOIN token_count t"
    " ON t.session_key = e.session_key AND t.counter = ? AND t.position = e.position"
    " WHERE e.session_key = ? AND e.position BETWEEN ? AND ?"
)
SET_COUNTER = "UPDATE session SET token_counter = ? WHERE key = ?"
#: Locked, so that the session is still there when counts are kept beside it.
COUNTER_OF = "SELECT token_counter FROM session WHERE key = ? /*FOR UPDATE*/"
SET_TOKENS = "UPDATE event SET tokens = ? WHERE session_key = ? AND position = ?"
ADD_TOKEN_COUNT = (
    "INSERT INTO token_count (session_key, counter, position, tokens) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
COPY_EVENTS = (
    "INSERT INTO event (session_key, position, event_id, timestamp, kind, batch, turn, format, tokens, type, branch,"
    " run_id, body) SELECT ?, position, event_id, timestamp, kind, batch, turn, format, tokens, type, branch, run_id,"
    " body FROM event WHERE session_key = ? AND position <= ? ORDER BY position"
)
COPY_TOKEN_COUNTS = (
    "INSERT INTO token_count (session_key, counter, position, tokens) SELECT ?, counter, position, tokens"
    " FROM token_count WHERE session_key = ? AND position <= ?"
)

#: The most events that :func:`move_and_add` takes.
MOST_MOVED = 100


@lru_cache(maxsize=MOST_MOVED)
def move_and_add(count: int) -> str:
    """Move the head and add ``count`` events, for engines that can do both at once; nothing if the log has moved.

    Bound are the parameters of ``MOVE_HEAD``, then those of ``ADD_EVENT`` for each event, without the session's key.
    """
    columns = [column.split() for column in _PLACED.split(", ")]
    first = ", ".join(f"CAST(? AS {type_})" for _, type_ in columns)
    others = f", ({', '.join('?' * len(columns))})" * (count - 1)
    names = ", ".join(name for name, _ in columns)
    return (
        f"WITH moved AS ({MOVE_HEAD} RETURNING key) INSERT INTO event (session_key, {names})"
        f" SELECT moved.key, given.* FROM moved CROSS JOIN (VALUES ({first}){others}) AS given"
    )


#: The most arms of one compound statement, and the most ids or ranges in one list (SQLite allows 500 arms).
MOST_ARMS = 100
MOST_LISTED = 400


@lru_cache(maxsize=256)
def by_ids(count: int) -> str:
    """The events with one of ``count`` ids, in no order: with one, SQLite walks the whole session along its key."""
    marks = ", ".join("?" * count)
    return f"SELECT {EVENT_COLUMNS} FROM event WHERE session_key = ? AND event_id IN ({marks})"


@lru_cache(maxsize=256)
def in_ranges(count: int) -> str:
    """The events in ``count`` position ranges, each row led by its range's number; bound: their ends, the session."""
    values = ", ".join(f"({number}, ?, ?)" for number in range(count))
    columns = ", ".join(f"e.{column}" for column in EVENT_COLUMNS.split(", "))
    return (
        f"WITH span(number, low, high) AS (VALUES {values}) SELECT span.number, {columns}"
        " FROM span CROSS JOIN event e WHERE e.session_key = ? AND e.position BETWEEN span.low AND span.high"
    )


def in_range(*, only_messages: bool) -> str:
    """The events of one range, in order: session key, first and last position. ``only_messages``: all on root."""
    return _IN_RANGE[only_messages]


def in_whole_turns(*, only_messages: bool) -> str:
    """The events from a position, or from the start of its turn where that is not before the least, to the last.

    Session key, least position, session key, the position, last position.
    """
    return _IN_WHOLE_TURNS[only_messages]


_COLUMNS = (EVENT_COLUMNS, MESSAGE_COLUMNS)
_IN_RANGE = tuple(
    f"SELECT {columns} FROM event WHERE session_key = ? AND position BETWEEN ? AND ? ORDER BY position"
    for columns in _COLUMNS
)
_IN_WHOLE_TURNS = tuple(
    f"SELECT {columns} FROM event WHERE session_key = ? AND position BETWEEN"
    " (SELECT CASE WHEN turn >= ? THEN turn ELSE position END FROM event WHERE session_key = ? AND position = ?) AND ?"
    " ORDER BY position"
    for columns in _COLUMNS
)


def in_lanes(
    lanes: Sequence[Lane], key: int, low: int, high: int, *, descending: bool, limit: int, offset: int = 0
) -> Statement:
    """The events of the lanes at positions ``low`` to ``high``, merged in order of position."""
    sql = _merged(tuple(_shape(lane) for lane in lanes), descending)
    parameters = [value for lane in lanes for value in _bound(lane, key, low, high)]
    return Statement(sql, [*parameters, limit, offset])


def count_in_lanes(lanes: Sequence[Lane], key: int, low: int, high: int) -> Statement:
    """How many events of the lanes lie at positions ``low`` to ``high``."""
    sql = _counted(tuple(_shape(lane) for lane in lanes))
    return Statement(sql, [value for lane in lanes for value in _bound(lane, key, low, high)])


#: Where a lane ends: SQLite merges them as they stand, a server has to be told how.
NEXT_LANE: Final = "/*NEXT LANE*/"
LAST_LANE: Final = "/*LAST LANE*/"

_Shape: TypeAlias = tuple[bool, bool, bool]


def _shape(lane: Lane) -> _Shape:
    return (lane.kind >= 0, lane.branch is not None, lane.type is not None)


def _bound(lane: Lane, key: int, low: int, high: int) -> list[Any]:
    values: list[Any] = [key, lane.kind] if lane.kind >= 0 else [key]
    values += (value for value in (lane.branch, lane.type) if value is not None)
    return [*values, low, high]


def _arm(columns: LiteralString, shape: _Shape) -> LiteralString:
    restricted = "".join(
        clause
        for clause, used in zip((" AND kind = ?", " AND branch = ?", " AND type = ?"), shape, strict=True)
        if used
    )
    return f"SELECT {columns} FROM event WHERE session_key = ?{restricted} AND position BETWEEN ? AND ?"


@lru_cache(maxsize=512)
def _merged(shapes: tuple[_Shape, ...], descending: bool) -> str:
    arms = f" {NEXT_LANE} UNION ALL ".join(_arm(EVENT_COLUMNS, shape) for shape in shapes)
    return f"{arms} {LAST_LANE} ORDER BY position {'DESC' if descending else 'ASC'} LIMIT ? OFFSET ?"


@lru_cache(maxsize=512)
def _counted(shapes: tuple[_Shape, ...]) -> str:
    arms = " UNION ALL ".join(_arm("count(*) AS matching", shape) for shape in shapes)
    return f"SELECT CAST(sum(matching) AS BIGINT) FROM ({arms}) AS counted"


def list_sessions(*, by_attribute: bool, newest_first: bool) -> str:
    """A page of sessions: [name, value,] now, now, created_at and key of the cursor, limit."""
    return _LISTINGS[by_attribute, newest_first]


def _listing(by_attribute: bool, newest_first: bool) -> str:
    source, place = (
        ("session_attribute p JOIN session s ON s.key = p.session_key", "p.created_at, p.session_key")
        if by_attribute
        else ("session s", "s.created_at, s.key")
    )
    chosen = "p.name = ? AND p.value = ? AND " if by_attribute else ""
    ordered = ", ".join(f"{column} {'DESC' if newest_first else 'ASC'}" for column in place.split(", "))
    return (
        f"SELECT {SESSION_COLUMNS}, s.key FROM {source} JOIN session_document d ON d.session_key = s.key"
        f" WHERE {chosen}(s.expires_at IS NULL OR s.expires_at > ? OR s.lease_until > ?)"
        f" AND ({place}) {'<' if newest_first else '>'} (?, ?) ORDER BY {ordered} LIMIT ?"
    )


_LISTINGS = {
    (attribute, newest): _listing(attribute, newest) for attribute in (False, True) for newest in (False, True)
}
