"""Plans of the operations on sessions: create, find, list, update, delete, sweep.

Which keys are indexed is read where it is written by: another process may have had an index filled since.
"""

from __future__ import annotations

import base64
import binascii
from datetime import datetime

from turnlog.errors import BrokenInvariantError, InvalidValueError, SessionAlreadyExistsError, SessionNotFoundError
from turnlog.log import codec
from turnlog.log.session import Session
from turnlog.log.windows import check_count
from turnlog.storage.changes import SessionChange
from turnlog.storage.protocol import SessionPage
from turnlog.storage.rules import Lease, indexed_values, is_gone
from turnlog.storage.sql import rows
from turnlog.storage.sql import statements as sql
from turnlog.storage.sql.plans.indexing import read_keys
from turnlog.storage.sql.plans.plan import Plan, StoreSettings
from turnlog.storage.sql.statements import Row, Statement


def find(session_id: str, now: datetime) -> Plan[Session | None]:
    """The session, if it is there at ``now``."""
    found = yield Statement(sql.SESSION, (session_id,), last=True)
    if not found:
        return None
    session = rows.session(found[0])
    return None if _is_gone(session, found[0], now) else session


def create(session: Session, settings: StoreSettings, now: datetime) -> Plan[int]:
    """Insert the session, in place of the remains of an expired one; returns its key."""
    head = yield Statement(sql.HEAD_LOCKED, (session.id,))
    attributes = indexed_values(session, (yield from read_keys()))
    if head:
        there = rows.head(head[0])
        if not there.is_gone(now):
            raise SessionAlreadyExistsError(session.id)
        yield Statement(sql.REMOVE_SESSION, (there.key,))
    added = yield Statement(sql.ADD_SESSION, (*rows.session_parameters(session), settings.counter.name))
    key: int = added[0][0]
    yield Statement(sql.ADD_DOCUMENT, (key, *codec.encode(session.metadata)))
    yield from _add_attributes(key, attributes, session)
    return key


def update(session_id: str, change: SessionChange, now: datetime) -> Plan[Session]:
    """Apply the change to the session as it is inside this transaction."""
    if not (yield Statement(sql.HEAD_LOCKED, (session_id,))):
        # One that is made from now on would be read without a lock.
        raise SessionNotFoundError(session_id)
    indexed = yield from read_keys()
    found = yield Statement(sql.SESSION, (session_id,))
    before, key = rows.session(found[0]), found[0][6]
    if _is_gone(before, found[0], now):
        raise SessionNotFoundError(session_id)
    after = change.applied(before, now)
    attributes = indexed_values(after, indexed)
    yield Statement(sql.SET_EXPIRY, (*rows.expiry_parameters(after), key))
    yield Statement(sql.SET_DOCUMENT, (*codec.encode(after.metadata), key))
    old, new = set(indexed_values(before, indexed)), set(attributes)
    for name, value in old - new:
        yield Statement(sql.REMOVE_ATTRIBUTES, (name, value, rows.micros(before.created_at), key))
    yield from _add_attributes(key, tuple(sorted(new - old)), after)
    return after


def delete(session_id: str, now: datetime) -> Plan[bool]:
    """Delete the session; its remains too, but those were nobody's any more."""
    found = yield Statement(sql.HEAD_LOCKED, (session_id,))
    if not found:
        return False
    head = rows.head(found[0])
    yield Statement(sql.REMOVE_SESSION, (head.key,))
    return not head.is_gone(now)


class Removed(int):
    """How many sessions a step of a sweep has removed: others each time, so two equal counts say nothing."""


def delete_expired(before: datetime, now: datetime, limit: int) -> Plan[Removed]:
    """One bounded step of the sweep; each candidate is looked at by the statement that removes it."""
    check_count("batch_size", limit, least=1)
    expired = (rows.micros(min(before, now)), rows.micros(now))
    removed = yield Statement(sql.REMOVE_EXPIRED, (*expired, limit, *expired), last=True)
    return Removed(removed[0][0])


def list_sessions(
    attribute: tuple[str, str] | None, limit: int, cursor: str | None, newest_first: bool, now: datetime
) -> Plan[SessionPage]:
    """One page, and a cursor when there is more."""
    check_count("limit", limit, least=1)
    text = sql.list_sessions(by_attribute=attribute is not None, newest_first=newest_first)
    micros = rows.micros(now)
    place = _read_cursor(cursor, newest_first)
    # One more than asked for tells whether there is a next page. No engine counts further than 64 bits.
    found = yield Statement(text, (*(attribute or ()), micros, micros, *place, min(limit, 2**31) + 1), last=True)
    page = found[:limit]
    more = f"{page[-1][1]}:{page[-1][6]}" if len(found) > limit else None
    return SessionPage(
        tuple(rows.session(row) for row in page),
        None if more is None else base64.urlsafe_b64encode(more.encode()).decode(),
    )


def _add_attributes(key: int, attributes: tuple[tuple[str, str], ...], session: Session) -> Plan[None]:
    created_at = rows.micros(session.created_at)
    for name, value in attributes:
        changed = yield Statement(sql.ADD_ATTRIBUTE, (name, value, created_at, key))
        if changed[0][0] != 1:
            raise BrokenInvariantError(f"session {session.id!r}: its index entry for {name!r} was not stored")


def _is_gone(session: Session, row: Row, now: datetime) -> bool:
    lease = Lease(row[7] or "", None if row[8] is None else rows.moment(row[8]))
    return is_gone(session, lease, now)


def _read_cursor(cursor: str | None, newest_first: bool) -> tuple[int, int]:
    if cursor is None:
        return (2**62, 2**62) if newest_first else (-(2**62), 0)
    try:
        created_at, _, key = base64.urlsafe_b64decode(cursor.encode()).decode().partition(":")
        return int(created_at), int(key)
    except (ValueError, UnicodeError, binascii.Error, AttributeError) as error:
        raise InvalidValueError(f"{cursor!r} is no cursor of a listing") from error
