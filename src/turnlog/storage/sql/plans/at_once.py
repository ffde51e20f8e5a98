"""Appending one event in one statement, on engines that can change a row and use it in the same statement.

It says in SQL what ``TurnState.after`` and ``rules.lease_after`` say in Python; property tests hold the two together.
Where it finds anything but an open road (no session, another version, a turn that is held) it writes nothing and the
plan in ``appending`` decides, so no refusal is worded twice.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from turnlog.log import codec
from turnlog.log.events import SessionEvent
from turnlog.log.messages import UserMessage
from turnlog.log.tokens import message_tokens
from turnlog.storage.protocol import AppendResult
from turnlog.storage.sql import kinds, rows
from turnlog.storage.sql.plans.plan import Plan, StoreSettings
from turnlog.storage.sql.statements import Statement

#: ``given`` holds what is known of the event; ``head`` is the session's row, locked; ``told`` adds what the row tells
#: of the event's base branch, and ``placed`` whether it starts a turn.
APPEND_ONE: Final = """
WITH given (at_version, now, is_user, is_real, waits, branch, run, plain_kind, start_kind, counter) AS (
  VALUES (CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BOOLEAN), CAST(? AS BOOLEAN), CAST(? AS BOOLEAN),
    CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS INTEGER), CAST(? AS INTEGER), CAST(? AS TEXT))
), head AS (
  SELECT key, version, turn, turns, base, opening, lease_token, lease_until, expires_at, time_to_live, token_counter
  FROM session WHERE id = ? FOR UPDATE
), told AS (
  SELECT head.*, given.*,
    CASE WHEN head.base IS NULL AND given.is_user THEN given.branch ELSE head.base END AS new_base,
    COALESCE(head.lease_token IS NOT NULL AND head.lease_until > given.now, FALSE) AS is_held
  FROM head CROSS JOIN given
), placed AS (
  SELECT told.*, COALESCE(is_real AND branch = new_base, FALSE) AS speaks,
    COALESCE(is_user AND branch = new_base AND (run IS NULL OR run IS DISTINCT FROM opening), FALSE) AS starts
  FROM told
  WHERE (at_version IS NULL OR at_version = version)
    AND (expires_at IS NULL OR expires_at > now OR is_held)
    AND NOT (is_held AND waits)
), moved AS (
  UPDATE session s SET
    version = p.version + 1,
    turn = CASE WHEN p.starts THEN p.version + 1 ELSE p.turn END,
    turns = p.turns + CAST(p.starts AS INTEGER),
    kinds = s.kinds | (1 << CASE WHEN p.starts THEN p.start_kind ELSE p.plain_kind END),
    base = p.new_base,
    opening = CASE WHEN p.speaks THEN CASE WHEN p.is_user THEN p.run END ELSE p.opening END,
    expires_at = CASE WHEN p.time_to_live IS NULL THEN p.expires_at
      ELSE GREATEST(p.expires_at, p.now + p.time_to_live) END
  FROM placed p WHERE s.key = p.key AND s.version = p.version
  RETURNING s.key, s.version, s.turn, s.token_counter, p.starts, p.start_kind, p.plain_kind, p.counter
)
INSERT INTO event (session_key, position, event_id, timestamp, kind, batch, turn, format, tokens, type, branch, run_id,
  body)
SELECT key, version, ?, ?, CASE WHEN starts THEN start_kind ELSE plain_kind END, 0, turn, ?,
  CASE WHEN token_counter = counter THEN CAST(? AS INTEGER) END, ?, ?, ?, ?
FROM moved RETURNING position
"""


def append(
    session_id: str, event: SessionEvent, expected_version: int | None, settings: StoreSettings, now: datetime
) -> Plan[AppendResult | None]:
    """Append an event that is no boundary, for a caller without a turn; None where the other plan has to decide."""
    found = yield Statement(APPEND_ONE, _parameters(session_id, event, expected_version, settings, now))
    if not found:
        return None
    position: int = found[0][0]
    return AppendResult((event.at(position),), position, is_replay=False)


def _parameters(
    session_id: str, event: SessionEvent, expected_version: int | None, settings: StoreSettings, now: datetime
) -> tuple[object, ...]:
    is_real = event.is_message and not event.is_synthetic
    is_user = is_real and isinstance(event.message, UserMessage)
    plain = kinds.kind_of(event, starts_turn=False)
    format_, body = codec.encode_body(event)
    return (
        expected_version,
        rows.micros(now),
        is_user,
        is_real,
        event.is_message,  # what waits for a turn (H-11)
        event.branch or "",
        event.run_id,
        plain,
        kinds.kind_of(event, starts_turn=True) if is_user else plain,
        settings.counter.name,
        session_id,
        rows.stored_id(event.id),
        rows.micros(event.timestamp),
        format_,
        None if event.message is None else message_tokens(event.message, settings.counter),
        event.type.name if kinds.code_of(plain) == kinds.OWN else None,
        event.branch,
        None if event.run_id is None else rows.stored_id(event.run_id),
        body,
    )
