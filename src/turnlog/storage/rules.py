"""The decisions of a store, as pure functions: every store asks the same questions and gets the same answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from turnlog.errors import (
    BrokenInvariantError,
    EventContentConflictError,
    InvalidBatchError,
    InvalidValueError,
    NotIndexedError,
    PartialReplayError,
    SessionBusyError,
    TurnInterruptedError,
    VersionConflictError,
    VersionOutOfRangeError,
)
from turnlog.log.codec import content_key
from turnlog.log.events import SessionEvent
from turnlog.log.names import check_name
from turnlog.log.session import Session, SessionAttributes
from turnlog.log.view import BoundaryError, Range, read_boundary
from turnlog.storage.values import Turn

#: Strategies of boundaries that wait for a running turn; a compaction's boundary passes (H-11).
WAITING_STRATEGIES = frozenset({"clear", "rewind"})


class Lease(Struct, frozen=True):
    """Who holds the turn on a session, and until when; an empty token means nobody."""

    token: str = ""
    until: datetime | None = None

    def is_held(self, now: datetime) -> bool:
        """Whether the hold is in force at ``now``."""
        return bool(self.token) and self.until is not None and self.until > now


def check_batch(session_id: str, events: Sequence[SessionEvent]) -> tuple[SessionEvent, ...]:
    """The batch as a tuple, if it can be appended to some log (R-4, A-1)."""
    batch = tuple(events)
    if not batch:
        raise InvalidBatchError("an empty batch")
    for event in batch:
        if not isinstance(event, SessionEvent):
            raise InvalidBatchError(f"a batch holds SessionEvents, not {type(event).__name__}")
        if event.session_id != session_id:
            raise InvalidBatchError(f"event {event.id!r} belongs to session {event.session_id!r}, not {session_id!r}")
    rest = batch[1:]
    if rest and len({event.id for event in batch}) < len(batch):
        raise InvalidBatchError("an event id stands twice in the batch")
    if rest and any(event.is_boundary for event in rest):
        raise InvalidBatchError("a boundary is the first event of its batch")
    if batch[0].is_boundary:
        if not all(event.is_synthetic for event in rest):
            raise InvalidBatchError("behind a boundary its batch holds the events of its summary, and nothing else")
    elif batch[0].is_synthetic or (rest and any(event.is_synthetic for event in rest)):
        raise InvalidBatchError("synthetic events are written behind a boundary, in its batch")
    return batch


def check_boundary(batch: Sequence[SessionEvent], version: int, older: Iterable[int] = ()) -> tuple[Range, ...]:
    """Refuse a boundary whose payload does not fit the place that its batch gets behind ``version`` (A-1).

    ``older`` are the positions of the log's boundaries: none is part of a view (A-2). Returns the ranges that the
    boundary names, none where the batch has no boundary.
    """
    if not batch[0].is_boundary:
        return ()
    try:
        boundary = read_boundary(batch[0].payload, version + 1)
    except BoundaryError as error:
        raise InvalidBatchError(f"a boundary at position {version + 1}: {error}") from error
    if boundary.end != version + len(batch):
        raise InvalidBatchError(f"the boundary's batch ends at {version + len(batch)}, not at {boundary.end}")
    for position in older:
        if any(low <= position <= high for low, high in boundary.view):
            raise InvalidBatchError(
                f"a boundary at position {version + 1} names position {position}, a boundary itself"
            )
    return boundary.view


def boundaries_of(batches: Iterable[Sequence[SessionEvent]]) -> list[int]:
    """The positions of the boundaries in a log; each is the first event of its batch (A-1)."""
    return [batch[0].position or 0 for batch in batches if batch[0].is_boundary]


def is_replay(batch: Sequence[SessionEvent], stored: Mapping[str, SessionEvent]) -> bool:
    """Whether every event of ``batch`` is stored with equal content (R-4); False when none is.

    ``stored`` maps the ids of the batch that the log holds to the stored events. Anything in between is an error.
    """
    if not stored:
        return False
    session_id = batch[0].session_id
    for event in batch:
        there = stored.get(event.id)
        if there is not None and content_key(there) != content_key(event):
            raise EventContentConflictError(session_id, event.id, there.position or 0)
    missing = tuple(event.id for event in batch if event.id not in stored)
    if missing:
        raise PartialReplayError(session_id, tuple(stored), missing)
    return True


def check_version(session_id: str, expected: int | None, actual: int) -> None:
    """Refuse an append to a log that is not where its caller saw it (R-3)."""
    if expected is not None and expected != actual:
        raise VersionConflictError(session_id, expected, actual)


def must_wait(batch: Sequence[SessionEvent]) -> bool:
    """Whether the batch waits for a turn of somebody else: own-type events and a compaction's boundary pass (H-11)."""
    if batch[0].is_boundary:
        return (batch[0].payload or {}).get("strategy") in WAITING_STRATEGIES
    return any(event.is_message for event in batch)


def lease_after(
    session_id: str, lease: Lease, turn: Turn | None, now: datetime, batch: Sequence[SessionEvent] = ()
) -> Lease:
    """The lease after ``turn`` writes ``batch`` (or nothing) at ``now``; raises when it may not (H-11)."""
    if turn is None:
        if batch and lease.is_held(now) and must_wait(batch):
            raise SessionBusyError(session_id)
        return lease
    if lease.token != turn.token:
        if not turn.take:
            raise TurnInterruptedError(session_id)
        if lease.is_held(now):
            raise SessionBusyError(session_id)
    return Lease(turn.token, now + turn.lease)


def is_gone(session: Session, lease: Lease, now: datetime) -> bool:
    """Whether the session is unknown at ``now``: expired, and no turn held on it (R-7)."""
    return session.is_expired(now) and not lease.is_held(now)


def slid_expiry(expires_at: datetime | None, time_to_live: timedelta | None, now: datetime) -> datetime | None:
    """``expires_at`` after an append at ``now`` (R-7)."""
    if time_to_live is None or expires_at is None:
        return expires_at
    return max(expires_at, now + time_to_live)


def effective_version(session_id: str, as_of: int | None, version: int, batch_index_behind: int) -> int:
    """The version that ``as_of`` reads as (A-3). ``batch_index_behind``: the place of the next event in its batch."""
    if as_of is None:
        return version
    if type(as_of) is not int:
        raise InvalidValueError(f"a version is an int, not {as_of!r}")
    if not 0 <= as_of <= version:
        raise VersionOutOfRangeError(session_id, as_of, version)
    return as_of - batch_index_behind


def indexed_values(session: Session, indexed: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The pairs of the session's metadata that the store indexes; each value must be a name (R-8)."""
    pairs = ((name, session.metadata.get(name)) for name in indexed)
    return tuple((name, check_name(f"metadata[{name!r}]", value)) for name, value in pairs if value is not None)


def indexed_keys(extra: Sequence[str]) -> tuple[str, ...]:
    """All keys that a store indexes: the principal's, and those it was opened with."""
    if isinstance(extra, str):
        raise InvalidValueError("indexed_metadata is a list of keys, not a string")
    return tuple(
        dict.fromkeys((SessionAttributes.PRINCIPAL_NAME, *(check_name("an indexed key", key) for key in extra)))
    )


def check_indexed(name: str, value: object, indexed: tuple[str, ...]) -> str:
    """``value``, if ``name`` is indexed and the value can be stored under it; raises otherwise (V-2, R-8)."""
    if name not in indexed:
        raise NotIndexedError(name, indexed)
    return check_name(f"metadata[{name!r}]", value)


def check_contiguous(session_id: str, first: int, last: int, rows: int) -> None:
    """Assert that positions ``first`` to ``last`` were ``rows`` rows (R-14)."""
    if rows != last - first + 1:
        raise BrokenInvariantError(f"session {session_id!r}: {rows} events at positions {first} to {last}")
