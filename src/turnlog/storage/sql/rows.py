"""Rows and values: how events and sessions become columns, and come back or say why they cannot (R-10)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from turnlog.errors import UnreadableDataError
from turnlog.log import codec
from turnlog.log.events import EventType, SessionEvent
from turnlog.log.names import check_branch, check_name
from turnlog.log.session import Session, SessionFields
from turnlog.log.tokens import TokenCounter, message_tokens
from turnlog.log.turns import TurnState
from turnlog.storage.rules import Lease
from turnlog.storage.sql import kinds
from turnlog.storage.sql.statements import Row

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros(moment: datetime) -> int:
    """Microseconds since 1970 in UTC: exact, and the same whatever zone a server or process lives in."""
    return (moment - _EPOCH) // _MICROSECOND


def moment(value: int) -> datetime:
    """The moment of so many microseconds."""
    return _EPOCH + timedelta(0, 0, value)


#: Up to here, which is in the year 2112, a float of seconds tells microseconds apart, and is a faster way to a moment.
_MOST_EXACT = 2**52


def moments(values: Iterable[int]) -> list[datetime]:
    """The moments of so many microseconds each."""
    return [
        datetime.fromtimestamp(value / 1_000_000, UTC) if 0 < value < _MOST_EXACT else moment(value) for value in values
    ]


#: Ends the bytes of an id that is no UUID; it stands in no UTF-8 text. Where they would be 16 bytes long, it stands
#: twice.
_END = b"\xff"
_UUID_LENGTH, _UUID_BYTES, _DASHES = 36, 16, (8, 13, 18, 23)


def stored_id(event_id: str) -> bytes:
    """A canonical UUID as its 16 bytes, any other id as its text with an end mark, which is never 16 bytes long.

    An index entry of half the size for most ids; no two ids become the same bytes.
    """
    if len(event_id) == _UUID_LENGTH and all(event_id[place] == "-" for place in _DASHES):
        digits = event_id.replace("-", "")
        try:
            data = bytes.fromhex(digits)
        except ValueError:
            data = b""
        # Compared again: fromhex() also takes capitals and blanks, which are other ids.
        if len(data) == _UUID_BYTES and data.hex() == digits:
            return data
    text = event_id.encode() + _END
    return text + _END if len(text) == _UUID_BYTES else text


def event_id(stored: bytes) -> str:
    """The id back from :func:`stored_id`."""
    return event_ids((stored,))[0]


def event_ids(stored: Iterable[bytes]) -> list[str]:
    """The ids back from :func:`stored_id`."""
    return [
        f"{id_[:4].hex()}-{id_[4:10].hex('-', 2)}-{id_[10:].hex()}"
        if len(id_) == _UUID_BYTES
        else check_name("event id", id_.rstrip(_END).decode())
        for id_ in stored
    ]


class Head(Struct, frozen=True):
    """The hot part of a session's row: where its log ends and who holds it."""

    key: int
    state: TurnState
    kinds: int
    boundary: int
    lease: Lease
    expires_at: datetime | None
    time_to_live: timedelta | None
    token_counter: str | None

    @property
    def version(self) -> int:
        """The position of the last event."""
        return self.state.version

    def is_gone(self, now: datetime) -> bool:
        """Whether the session is unknown at ``now`` (R-7)."""
        return self.expires_at is not None and self.expires_at <= now and not self.lease.is_held(now)


def head(row: Row) -> Head:
    """The head of a row of ``HEAD``."""
    key, version, turn, turns, present, boundary, base, opening, token, until, expires_at, time_to_live, counter = row
    return Head(
        key,
        TurnState(version, turn, turns, base, opening),
        present,
        boundary,
        Lease(token or "", None if until is None else moment(until)),
        None if expires_at is None else moment(expires_at),
        None if time_to_live is None else timedelta(microseconds=time_to_live),
        counter,
    )


def event_parameters(
    key: int, events: Sequence[SessionEvent], state: TurnState, counter: TokenCounter | None
) -> tuple[list[tuple[Any, ...]], TurnState, int]:
    """The rows of a batch placed behind ``state``, the state after it, and the mask of its kinds.

    ``counter`` is the one whose counts stand beside the session's events, None where that is not the store's.
    """
    parameters: list[tuple[Any, ...]] = []
    mask = 0
    for index, event in enumerate(events):
        state = state.after(event)
        kind = kinds.kind_of(event, starts_turn=state.turn == state.version)
        mask |= 1 << kind
        format_, body = codec.encode_body(event)
        type_ = event.type.name if kinds.code_of(kind) == kinds.OWN else None
        run_id = event.run_id
        parameters.append(
            (
                key,
                state.version,
                stored_id(event.id),
                micros(event.timestamp),
                kind,
                index,
                state.turn,
                format_,
                None if counter is None or event.message is None else message_tokens(event.message, counter),
                type_,
                event.branch,
                None if run_id is None else stored_id(run_id),
                body,
            )
        )
    return parameters, state, mask


def event(session_id: str, row: Row) -> SessionEvent:
    """The event of a row of ``EVENT_COLUMNS``; ``UnreadableDataError`` names session and position."""
    try:
        return _events(session_id, (row,))[0]
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        raise UnreadableDataError(session_id, row[0], f"the stored event cannot be read: {error}") from error


def events(session_id: str, found: Sequence[Row]) -> list[SessionEvent]:
    """The events of rows of ``EVENT_COLUMNS``; ``UnreadableDataError`` names session and position."""
    try:
        return _events(session_id, found)
    except (ValueError, TypeError, RecursionError, OverflowError):
        return [event(session_id, row) for row in found]  # one of them says which it is


def _events(session_id: str, found: Sequence[Row]) -> list[SessionEvent]:
    """Column by column: some short loops are a third faster than a long one."""
    if not found:
        return []
    positions, ids, timestamps, formats, bodies, *place = zip(*found, strict=True)
    read: list[Any] = codec.decode_events(formats, bodies)
    for event, position, id_, timestamp in zip(read, positions, event_ids(ids), moments(timestamps), strict=True):
        force_setattr(event, "session_id", session_id)
        force_setattr(event, "position", position)
        force_setattr(event, "id", id_)
        force_setattr(event, "timestamp", timestamp)
        force_setattr(event, "__class__", SessionEvent)
        if event.message is None and not place:
            raise ValueError("no message")
    for event, kind, type_, branch in zip(read, *place, strict=True) if place else ():
        if branch is not None:
            force_setattr(event, "branch", check_branch(branch))
        if kind >= _WITHOUT_MESSAGE:
            force_setattr(event, "type", _type(kind >> 1, type_))
        if (event.message is None) is (kind < _WITHOUT_MESSAGE) or (event.message is None) is (event.payload is None):
            raise ValueError(f"kind {kind} with {type(event.message).__name__} and {type(event.payload).__name__}")
    return read


#: The first of the kinds whose events have no message.
_WITHOUT_MESSAGE = 2 * kinds.BOUNDARY


def _type(code: int, name: str | None) -> EventType:
    return EventType.COMPACTION if code == kinds.BOUNDARY else EventType(name or "")


def session(row: Row) -> Session:
    """The session of a row that begins with ``SESSION_COLUMNS``."""
    id_, created_at, expires_at, time_to_live, format_, data = row[:6]
    try:
        read: Any = SessionFields(
            id=id_,
            created_at=moment(created_at),
            expires_at=None if expires_at is None else moment(expires_at),
            time_to_live=None if time_to_live is None else timedelta(0, 0, time_to_live),
            metadata=codec.decode_object(format_, data),
        )
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        raise UnreadableDataError(id_, None, f"the stored session cannot be read: {error}") from error
    force_setattr(read, "__class__", Session)
    checked: Session = read
    return checked


def session_parameters(value: Session) -> tuple[Any, ...]:
    """The parameters of ``ADD_SESSION``, but for the counter's name."""
    return (value.id, micros(value.created_at), *expiry_parameters(value))


def expiry_parameters(value: Session) -> tuple[int | None, int | None]:
    """``expires_at`` and ``time_to_live`` as stored."""
    time_to_live = None if value.time_to_live is None else value.time_to_live // _MICROSECOND
    return (None if value.expires_at is None else micros(value.expires_at), time_to_live)
