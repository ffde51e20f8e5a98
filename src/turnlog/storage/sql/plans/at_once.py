"""One event appended, or the newest read, in one statement: on servers, where each costs a round trip.

Appending needs an engine that can change a row and use it in the same statement. It says in SQL what
``TurnState.after`` and ``rules.lease_after`` say in Python; property tests hold the two together. Where it finds
anything but an open road (no session, another version, a turn that is held) it writes nothing and the plan in
``appending`` decides, so no refusal is worded twice.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from turnlog.log import codec
from turnlog.log.event_filter import ANY_BRANCH, EventFilter
from turnlog.log.events import SessionEvent
from turnlog.log.messages import UserMessage
from turnlog.log.tokens import message_tokens
from turnlog.log.windows import Window
from turnlog.storage.protocol import AppendResult, Batch, Turn
from turnlog.storage.rules import check_contiguous
from turnlog.storage.sql import kinds, rows
from turnlog.storage.sql.plans.plan import Plan, StoreSettings
from turnlog.storage.sql.statements import EVENT_COLUMNS, Statement

#: What is known of the event beforehand, beside the session's row ``s``, which is locked by the update that moves it:
#: where another writer has been quicker, PostgreSQL looks at its newest version again, conditions and all.
_MOVE: Final = """
  UPDATE session s SET version = s.version + 1, {changes},
    expires_at = CASE WHEN s.time_to_live IS NULL THEN s.expires_at
      ELSE GREATEST(s.expires_at, given.now + s.time_to_live) END
  FROM (VALUES (CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT)))
    AS given (at_version, now, branch, run)
  WHERE s.id = ? AND (given.at_version IS NULL OR given.at_version = s.version) AND {open}
  RETURNING s.key, s.version, s.turn, s.token_counter
"""
_ADD: Final = """
WITH moved AS ({move})
INSERT INTO event (session_key, position, event_id, timestamp, kind, batch, turn, format, tokens, type, branch, run_id,
  body)
SELECT key, version, ?, ?, CASE WHEN {starts} THEN CAST(? AS SMALLINT) ELSE CAST(? AS SMALLINT) END, 0, turn, ?,
  CASE WHEN token_counter = ? THEN CAST(? AS INTEGER) END, ?, ?, ?, ?
FROM moved RETURNING position
"""
#: A message waits for a turn that is held (H-11), and nothing else keeps an expired session alive (R-7).
_FREE: Final = """(s.lease_token IS NULL OR s.lease_until IS NULL OR s.lease_until <= given.now)
    AND (s.expires_at IS NULL OR s.expires_at > given.now)"""
_ALIVE: Final = """(s.expires_at IS NULL OR s.expires_at > given.now
      OR (s.lease_token IS NOT NULL AND s.lease_until > given.now))"""
_STARTS: Final = """given.branch = COALESCE(s.base, given.branch)
      AND (given.run IS NULL OR given.run IS DISTINCT FROM s.opening)"""
_USER_CHANGES: Final = f"""
    turn = CASE WHEN {_STARTS} THEN s.version + 1 ELSE s.turn END,
    turns = s.turns + CASE WHEN {_STARTS} THEN 1 ELSE 0 END,
    kinds = s.kinds | CASE WHEN {_STARTS} THEN CAST(? AS INTEGER) ELSE CAST(? AS INTEGER) END,
    base = COALESCE(s.base, given.branch),
    opening = CASE WHEN given.branch = COALESCE(s.base, given.branch) THEN given.run ELSE s.opening END"""
_OTHER_CHANGES: Final = """kinds = s.kinds | CAST(? AS INTEGER) | CAST(? AS INTEGER),
    opening = CASE WHEN given.branch = s.base THEN NULL ELSE s.opening END"""
_OWN_CHANGES: Final = "kinds = s.kinds | CAST(? AS INTEGER) | CAST(? AS INTEGER)"


def _statement(changes: str, is_open: str, starts: str) -> str:
    return _ADD.format(move=_MOVE.format(changes=changes, open=is_open), starts=starts)


#: One statement for user messages, one for other messages, one for events of own types.
APPEND_USER: Final = _statement(_USER_CHANGES, _FREE, "turn = version")
APPEND_OTHER: Final = _statement(_OTHER_CHANGES, _FREE, "FALSE")
APPEND_OWN: Final = _statement(_OWN_CHANGES, _ALIVE, "FALSE")

_LARGEST: Final = 2**63


def fits(batch: Batch, expected_version: int | None, turn: Turn | None) -> bool:
    """Whether the batch may go in one statement: a single event that is no boundary, of a caller without a turn."""
    is_alone = len(batch) == 1 and turn is None and not batch[0].is_boundary
    return is_alone and (expected_version is None or expected_version < _LARGEST)


def append(
    session_id: str, event: SessionEvent, expected_version: int | None, settings: StoreSettings, now: datetime
) -> Plan[AppendResult | None]:
    """Append an event that :func:`fits`; None where the other plan has to decide."""
    is_user = isinstance(event.message, UserMessage)
    sql = APPEND_USER if is_user else APPEND_OTHER if event.is_message else APPEND_OWN
    found = yield Statement(sql, _parameters(session_id, event, expected_version, settings, now))
    if not found:
        return None
    position: int = found[0][0]
    return AppendResult((event.at(position),), position, is_replay=False)


def _parameters(
    session_id: str, event: SessionEvent, expected_version: int | None, settings: StoreSettings, now: datetime
) -> tuple[object, ...]:
    plain = kinds.kind_of(event, starts_turn=False)
    start = kinds.kind_of(event, starts_turn=True) if isinstance(event.message, UserMessage) else plain
    format_, body = codec.encode_body(event)
    return (
        1 << start,
        1 << plain,
        expected_version,
        rows.micros(now),
        event.branch or "",
        event.run_id,
        session_id,
        rows.stored_id(event.id),
        rows.micros(event.timestamp),
        start,
        plain,
        format_,
        settings.counter.name,
        None if event.message is None else message_tokens(event.message, settings.counter),
        event.type.name if kinds.code_of(plain) == kinds.OWN else None,
        event.branch,
        None if event.run_id is None else rows.stored_id(event.run_id),
        body,
    )


#: ``low`` is where the window begins: so many from the end, or where the turn of that event began.
_NEWEST: Final = """
SELECT {columns}, s.version
FROM session s CROSS JOIN LATERAL ({low}) AS low (position)
  JOIN event e ON e.session_key = s.key AND e.position BETWEEN low.position AND s.version
WHERE s.id = ? AND (s.expires_at IS NULL OR s.expires_at > ? OR (s.lease_token IS NOT NULL AND s.lease_until > ?))
"""
_COLUMNS: Final = ", ".join(f"e.{column}" for column in EVENT_COLUMNS.split(", "))
_OF_TURN: Final = """
  SELECT CASE WHEN t.turn > 0 THEN t.turn ELSE t.position END FROM event t
  WHERE t.session_key = s.key AND t.position = GREATEST(1, s.version + 1 - CAST(? AS BIGINT))"""
NEWEST: Final = _NEWEST.format(columns=_COLUMNS, low="SELECT GREATEST(1, s.version + 1 - CAST(? AS BIGINT))")
NEWEST_IN_WHOLE_TURNS: Final = _NEWEST.format(columns=_COLUMNS, low=_OF_TURN)


def reads(filter_: EventFilter) -> bool:
    """Whether the filter asks for the newest events and nothing else."""
    if filter_.window.newest is None or filter_.active_view or filter_.branch is not ANY_BRANCH:
        return False
    if filter_.messages_only or filter_.event_types or filter_.exclude_synthetic:
        return False
    return filter_.since is None and filter_.until is None and filter_.after is None and filter_.before is None


def newest(session_id: str, window: Window, now: datetime) -> Plan[list[SessionEvent]]:
    """The newest events of a log, in order; empty where there is no session, or none to be seen."""
    sql = NEWEST_IN_WHOLE_TURNS if window.whole_turns else NEWEST
    moment = rows.micros(now)
    found = yield Statement(sql, (min(window.newest or 0, _LARGEST >> 1), session_id, moment, moment), last=True)
    if not found:
        return []
    found.sort()  # they come in order mostly; no two have the same position, so nothing else is compared
    first, last, version = found[0][0], found[-1][0], found[-1][-1]
    check_contiguous(session_id, first, version, len(found) if last == version else 0)
    return rows.events(session_id, [row[:-1] for row in found])
