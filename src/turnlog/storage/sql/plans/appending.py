"""Plans that write events: append, restore, fork, and the turn (R-3, R-4, R-14, H-11)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from turnlog.errors import (
    BrokenInvariantError,
    InvalidBatchError,
    SessionAlreadyExistsError,
    StoreError,
    TurnlogError,
)
from turnlog.log.events import SessionEvent
from turnlog.log.session import Session
from turnlog.log.turns import TurnState
from turnlog.storage.protocol import AppendResult, Batch, RestoreResult, Turn
from turnlog.storage.rules import (
    Lease,
    check_batch,
    check_boundary,
    check_version,
    effective_version,
    is_replay,
    lease_after,
    slid_expiry,
)
from turnlog.storage.sql import kinds, rows
from turnlog.storage.sql import statements as sql
from turnlog.storage.sql.lanes import Lane
from turnlog.storage.sql.plans import sessions
from turnlog.storage.sql.plans.plan import Plan, StoreSettings, find_head, lock_head
from turnlog.storage.sql.statements import Statement

#: What a restore holds in memory before it is written.
_ROWS_AT_ONCE = 500
_BYTES_AT_ONCE = 8 << 20
#: The place of the body in a row of an event's parameters.
_BODY = -1


class Target:
    """The log that an append has met first: its key, 0 before. One made again under the session's id has another."""

    def __init__(self) -> None:
        self.key = 0


def append(
    session_id: str,
    batch: tuple[SessionEvent, ...],
    expected_version: int | None,
    turn: Turn | None,
    settings: StoreSettings,
    now: datetime,
    *,
    look_first: bool,
    target: Target | None = None,
    at_once: bool = False,
) -> Plan[AppendResult]:
    """Append a checked batch.

    Whether its ids are stored is asked only when something speaks for it: the version has moved, the turn is
    another's, or (``look_first``) the insert has run into the unique key once. So a fresh append costs one read and
    two writes; with ``at_once``, where the engine can do so, both writes are one statement, and the last.
    """
    head = yield from lock_head(session_id, now)
    if target is not None:
        target.key = target.key or head.key
    refusal = _refusal(session_id, head, batch, expected_version, turn, now)
    if look_first or refusal is not None:
        stored = yield from find_by_ids(session_id, head.key, [event.id for event in batch])
        if is_replay(batch, stored):
            return AppendResult(tuple(stored[event.id] for event in batch), head.version, is_replay=True)
    if refusal is not None:
        raise refusal
    if batch[0].is_boundary:
        yield from _check_older(head, batch, head.version, ())
    lease = lease_after(session_id, head.lease, turn, now, batch)
    parameters, state, mask = rows.event_parameters(head.key, batch, head.state, settings.counter_beside(head))
    boundary = head.version + 1 if batch[0].is_boundary else head.boundary
    expires_at = slid_expiry(head.expires_at, head.time_to_live, now)
    placed = tuple(event.at(position) for position, event in enumerate(batch, head.version + 1))
    result = AppendResult(placed, state.version, is_replay=False)
    moved = _moved(head, state, head.kinds | mask, boundary, lease, expires_at)
    if at_once and len(batch) <= sql.MOST_MOVED:
        both = [*moved, *(value for row in parameters for value in row[1:])]
        added = yield Statement(sql.move_and_add(len(batch)), both, last=True, decided=result)
        _check_moved(head, added[0][0], len(batch))
    else:
        changed = yield Statement(sql.MOVE_HEAD, moved)
        _check_moved(head, changed[0][0], 1)
        yield from _insert(parameters)
    return result


def _refusal(
    session_id: str,
    head: rows.Head,
    batch: tuple[SessionEvent, ...],
    expected_version: int | None,
    turn: Turn | None,
    now: datetime,
) -> TurnlogError | None:
    """Why the batch may not be written unless it is a replay: the log has moved, or the turn is another's."""
    try:
        check_version(session_id, expected_version, head.version)
        lease_after(session_id, head.lease, turn, now, batch)
        check_boundary(batch, head.version)
    except TurnlogError as refusal:
        return refusal
    return None


def _check_older(head: rows.Head, batch: tuple[SessionEvent, ...], version: int, added: Sequence[int]) -> Plan[None]:
    """Refuse a boundary that names an older one, stored or ``added`` in this transaction: none is in a view (A-2)."""
    older = list(added)
    for low, high in check_boundary(batch, version):
        if low <= head.boundary:
            found = yield sql.in_lanes(BOUNDARIES, head.key, low, min(high, head.version), descending=True, limit=1)
            older += [found[0][0]] if found else []
    check_boundary(batch, version, older)


def find_by_ids(session_id: str, key: int, event_ids: Sequence[str]) -> Plan[dict[str, SessionEvent]]:
    """The stored events among these ids."""
    stored: dict[str, SessionEvent] = {}
    for start in range(0, len(event_ids), sql.MOST_LISTED):
        chunk = [rows.stored_id(event_id) for event_id in event_ids[start : start + sql.MOST_LISTED]]
        found = yield Statement(sql.by_ids(len(chunk)), (key, *chunk))
        stored |= {event.id: event for event in rows.events(session_id, found)}
    return stored


class Source:
    """Batches that can be read only once; ``reader`` is the attempt that has begun to."""

    def __init__(self, batches: Iterable[Batch]) -> None:
        self._batches = batches
        self.reader: int | None = None

    def read(self, attempt: int) -> Iterator[Batch]:
        """The batches, as they are asked for."""
        self.reader = attempt
        yield from self._batches


def restore_once(
    session: Session, source: Source, settings: StoreSettings, now: datetime, attempt: int
) -> Plan[RestoreResult]:
    """``restore``, if the source has not been read yet: a second attempt is the caller's, with the batches anew.

    A unique key that is violated before is the session's, and it has just been made by somebody else.
    """
    if source.reader is None:
        return (yield from restore(session, source.read(attempt), settings, now))
    if attempt > source.reader:
        raise InvalidBatchError(f"an event id stands twice in what is restored to session {session.id!r}")
    raise StoreError(f"the transaction was undone when batches had been read: restore session {session.id!r} again")


def restore(session: Session, batches: Iterable[Batch], settings: StoreSettings, now: datetime) -> Plan[RestoreResult]:
    """Write a whole log, or what a log lacks of it, in this transaction."""
    head = yield from _head_to_restore(session, settings, now)
    state, mask, boundary = head.state, head.kinds, head.boundary
    replayed, size, waiting = 0, 0, list[tuple[Any, ...]]()
    added_boundaries: list[int] = []
    for given in batches:
        batch = check_batch(session.id, given)
        if head.version:
            stored = yield from find_by_ids(session.id, head.key, [event.id for event in batch])
            if is_replay(batch, stored):
                replayed += len(batch)
                continue
        if batch[0].is_boundary:
            yield from _check_older(head, batch, state.version, added_boundaries)
            boundary = state.version + 1
            added_boundaries.append(boundary)
        parameters, state, added = rows.event_parameters(head.key, batch, state, settings.counter_beside(head))
        mask |= added
        waiting += parameters
        size += sum(len(row[_BODY]) for row in parameters)
        if len(waiting) >= _ROWS_AT_ONCE or size >= _BYTES_AT_ONCE:
            yield from _insert(waiting)
            waiting, size = [], 0
    stored_count = state.version - head.version
    if stored_count:
        yield from _insert(waiting)
        lease = lease_after(session.id, head.lease, None, now, ())
        expires_at = slid_expiry(head.expires_at, head.time_to_live, now)
        yield from _move_head(head, state, mask, boundary, lease, expires_at)
    return RestoreResult(stored_count, replayed, state.version)


def _head_to_restore(session: Session, settings: StoreSettings, now: datetime) -> Plan[rows.Head]:
    head = yield from find_head(session.id, now, lock=True)
    if head is not None:
        return head
    try:
        yield from sessions.create(session, settings, now)
    except SessionAlreadyExistsError:  # since it was looked for
        return (yield from lock_head(session.id, now))
    return (yield from _new_head(session.id))


def fork(session_id: str, target: Session, at: int | None, settings: StoreSettings, now: datetime) -> Plan[int]:
    """Copy a prefix of the log into a new session."""
    source = yield from lock_head(session_id, now)
    version = yield from version_as_of(session_id, source, at)
    key = yield from sessions.create(target, settings, now)
    copied = yield Statement(sql.COPY_EVENTS, (key, source.key, version))
    if copied[0][0] != version:
        raise BrokenInvariantError(f"session {session_id!r} holds {copied[0][0]} events up to version {version}")
    yield Statement(sql.COPY_TOKEN_COUNTS, (key, source.key, version))
    yield Statement(sql.SET_COUNTER, (source.token_counter, key))
    state = yield from _state_at(session_id, source, version)
    boundary = yield from newest_boundary(source, version)
    head = yield from _new_head(target.id)
    yield from _move_head(head, state, source.kinds, boundary, Lease(), head.expires_at)
    return version


def _new_head(session_id: str) -> Plan[rows.Head]:
    """The head of a session made in this transaction, even if it ended before it was copied."""
    found = yield Statement(sql.HEAD_LOCKED, (session_id,))
    return rows.head(found[0])


def version_as_of(session_id: str, head: rows.Head, as_of: int | None) -> Plan[int]:
    """The version that ``as_of`` reads as; raises ``VersionOutOfRangeError`` (A-3)."""
    version = effective_version(session_id, as_of, head.version, 0)
    if as_of is None or as_of == head.version:
        return version
    behind = yield Statement(sql.BATCH_INDEX, (head.key, as_of + 1))
    if not behind:
        raise BrokenInvariantError(f"session {session_id!r} has no event at position {as_of + 1}")
    return effective_version(session_id, as_of, head.version, behind[0][0])


def newest_boundary(head: rows.Head, version: int) -> Plan[int]:
    """The position of the newest boundary at or before ``version``, 0 if there is none."""
    if head.boundary <= version:
        return head.boundary
    found = yield sql.in_lanes(BOUNDARIES, head.key, 1, version, descending=True, limit=1)
    return found[0][0] if found else 0


BOUNDARIES = (Lane(2 * kinds.BOUNDARY), Lane(2 * kinds.BOUNDARY + 1))
_TURN_STARTS = (Lane(2 * kinds.START), Lane(2 * kinds.START + 1))


def _state_at(session_id: str, head: rows.Head, version: int) -> Plan[TurnState]:
    """The turn state of a prefix: where its last turn began, how many there were, and whether its opening is open."""
    if version == head.version:
        return head.state
    if not version:
        return TurnState()
    last = yield Statement(sql.TURN_AT, (head.key, version))
    turn = last[0][0]
    if not turn:
        return TurnState(version=version)
    counted = yield sql.count_in_lanes(_TURN_STARTS, head.key, 1, version)
    state = TurnState(version=turn - 1, turn=0, turns=counted[0][0] - 1, base=head.state.base)
    since = yield Statement(sql.in_ranges(1), (turn, version, head.key))
    for row in sorted(row[1:] for row in since):
        state = state.after(rows.event(session_id, row))
    return state


def _move_head(
    head: rows.Head, state: TurnState, mask: int, boundary: int, lease: Lease, expires_at: datetime | None
) -> Plan[None]:
    changed = yield Statement(sql.MOVE_HEAD, _moved(head, state, mask, boundary, lease, expires_at))
    _check_moved(head, changed[0][0], 1)


def _moved(
    head: rows.Head, state: TurnState, mask: int, boundary: int, lease: Lease, expires_at: datetime | None
) -> tuple[object, ...]:
    """The parameters of ``MOVE_HEAD``."""
    return (
        state.version,
        state.turn,
        state.turns,
        mask,
        boundary,
        state.base,
        state.opening,
        lease.token or None,
        None if lease.until is None else rows.micros(lease.until),
        None if expires_at is None else rows.micros(expires_at),
        head.key,
        head.version,
    )


def _check_moved(head: rows.Head, changed: int, expected: int) -> None:
    """The head was read under a lock; a version that moved all the same means that the lock did not hold."""
    if changed != expected:
        raise BrokenInvariantError(f"the log moved from version {head.version} under its lock")


def _insert(parameters: Sequence[tuple[Any, ...]]) -> Plan[None]:
    if len(parameters) == 1:
        yield Statement(sql.ADD_EVENT, parameters[0])
    elif parameters:
        yield Statement(sql.ADD_EVENT, parameters, many=True)


def take_turn(session_id: str, turn: Turn, now: datetime) -> Plan[int]:
    """Take or renew the turn with a write of its own."""
    head = yield from lock_head(session_id, now)
    taking = Turn(turn.token, turn.lease, take=True)
    yield from _set_lease(head, lease_after(session_id, head.lease, taking, now))
    return head.version


def renew_turn(session_id: str, turn: Turn, now: datetime) -> Plan[None]:
    """Extend the lease of a turn that is still held."""
    head = yield from lock_head(session_id, now)
    renewing = Turn(turn.token, turn.lease, take=False)
    yield from _set_lease(head, lease_after(session_id, head.lease, renewing, now))


def release_turn(session_id: str, token: str, now: datetime) -> Plan[bool]:
    """Give the turn back, if the token holds it."""
    found = yield Statement(sql.HEAD_LOCKED, (session_id,))
    head = rows.head(found[0]) if found else None
    if head is None or head.is_gone(now) or head.lease.token != token:
        return False
    yield from _set_lease(head, Lease())
    return True


def _set_lease(head: rows.Head, lease: Lease) -> Plan[None]:
    until = None if lease.until is None else rows.micros(lease.until)
    yield Statement(sql.SET_LEASE, (lease.token or None, until, head.key), last=True)
