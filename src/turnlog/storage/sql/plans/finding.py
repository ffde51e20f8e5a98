"""Plans of small look-ups: the version, and events by id or run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from turnlog.log.events import SessionEvent
from turnlog.log.names import check_name
from turnlog.storage.sql import rows
from turnlog.storage.sql import statements as sql
from turnlog.storage.sql.plans.appending import find_by_ids
from turnlog.storage.sql.plans.plan import Plan, find_head
from turnlog.storage.sql.statements import Statement


def version(session_id: str, now: datetime) -> Plan[int]:
    """The log's version; 0 for an unknown session."""
    head = yield from find_head(session_id, now)
    return 0 if head is None else head.version


def find_events(
    session_id: str, event_ids: Sequence[str] | None, run_id: str | None, now: datetime
) -> Plan[list[SessionEvent]]:
    """The events with one of these ids, or of this run, in log order."""
    head = yield from find_head(session_id, now)
    if head is None:
        return []
    if run_id is not None:
        found = yield Statement(sql.OF_RUN, (head.key, rows.stored_id(check_name("run id", run_id))))
        return [rows.event(session_id, row) for row in found]
    ids = [check_name("event id", event_id) for event_id in event_ids or ()]
    stored = yield from find_by_ids(session_id, head.key, ids)
    return sorted(stored.values(), key=lambda event: event.position or 0)
