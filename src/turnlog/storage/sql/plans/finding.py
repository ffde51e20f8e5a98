"""Plans of small look-ups: the version, and events by id or run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from turnlog.errors import SessionNotFoundError
from turnlog.log.events import SessionEvent
from turnlog.log.names import check_name
from turnlog.storage.protocol import AppendResult
from turnlog.storage.rules import is_replay
from turnlog.storage.sql import rows
from turnlog.storage.sql import statements as sql
from turnlog.storage.sql.plans.appending import find_by_ids
from turnlog.storage.sql.plans.plan import Plan, find_head
from turnlog.storage.sql.statements import Statement


def version(session_id: str, now: datetime) -> Plan[int]:
    """The log's version; 0 for an unknown session."""
    found = yield Statement(sql.HEAD, (session_id,), last=True)
    head = rows.head(found[0]) if found else None
    return 0 if head is None or head.is_gone(now) else head.version


def settle(session_id: str, key: int, batch: Sequence[SessionEvent], now: datetime) -> Plan[AppendResult | None]:
    """What the log holds of a batch whose commit gave no answer: all, or None; raises if it cannot tell (R-14).

    The head is locked: on a server that transaction may still be under way, and holds the lock until it has ended.
    """
    head = yield from find_head(session_id, now, lock=True)
    if head is None or head.key != key:
        # The log was there when the batch was written: whether it went with the batch or without it, nobody knows.
        raise SessionNotFoundError(session_id)
    stored = yield from find_by_ids(session_id, head.key, [event.id for event in batch])
    if not is_replay(batch, stored):
        return None
    return AppendResult(tuple(stored[event.id] for event in batch), head.version, is_replay=True)


def find_events(
    session_id: str, event_ids: Sequence[str] | None, run_id: str | None, now: datetime
) -> Plan[list[SessionEvent]]:
    """The events with one of these ids, or of this run, in log order."""
    head = yield from find_head(session_id, now)
    if head is None:
        return []
    if run_id is not None:
        found = yield Statement(sql.OF_RUN, (head.key, rows.stored_id(check_name("run id", run_id))), last=True)
        return rows.events(session_id, found)
    ids = [check_name("event id", event_id) for event_id in event_ids or ()]
    stored = yield from find_by_ids(session_id, head.key, ids)
    return sorted(stored.values(), key=lambda event: event.position or 0)
