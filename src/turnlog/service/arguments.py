"""What the service makes of its arguments before it asks a store."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, cast

from msgspec import UNSET, UnsetType

from turnlog.errors import InvalidValueError, ReservedEventTypeError, SystemMessageRefusedError
from turnlog.log.events import SessionEvent
from turnlog.log.messages import SystemMessage
from turnlog.log.names import new_id
from turnlog.log.session import Session, SessionAttributes, check_time_to_live

DEFAULT_TURN_WAIT: Final = timedelta(seconds=30)


def check_options(default_time_to_live: object, turn_wait: object) -> None:
    """Refuse durations that are none."""
    if default_time_to_live is not None:
        check_time_to_live(default_time_to_live, "default_time_to_live")
    if not isinstance(turn_wait, timedelta) or turn_wait < timedelta():
        raise InvalidValueError(f"turn_wait must be a timedelta of zero or more, not {turn_wait!r}")


def check_appendable(event: object, *, allow_system_messages: bool) -> None:
    """Refuse what a caller of the service may not append; whatever is no event at all the store refuses."""
    if not isinstance(event, SessionEvent):
        return
    if event.is_boundary:
        raise ReservedEventTypeError("COMPACTION events are written by compaction, rewind and clear alone (V-4)")
    if isinstance(event.message, SystemMessage) and not allow_system_messages:
        raise SystemMessageRefusedError(
            "system messages are not stored by this service: send them with each request, or make the service with "
            "allow_system_messages=True"
        )


def check_version(version: object) -> int:
    """Return ``version`` if it is an int; whether the log has it is told by the log."""
    if type(version) is not int:
        raise InvalidValueError(f"a version is an int, not {version!r}")
    return version


def new_session(
    now: datetime,
    session_id: str | None,
    *,
    principal: str | None,
    metadata: object,
    expires_at: datetime | None,
    time_to_live: timedelta | UnsetType | None,
    default_time_to_live: timedelta | None,
) -> Session:
    """A session made at ``now``; its id is a UUIDv7 where none is given (R-7)."""
    if time_to_live is UNSET:
        time_to_live = default_time_to_live if expires_at is None else None
    if time_to_live is not None:
        time_to_live = check_time_to_live(time_to_live, "time_to_live")
        expires_at = _later(now, time_to_live) if expires_at is None else expires_at
    kept = _mapping(metadata)
    if principal is not None:
        kept[SessionAttributes.PRINCIPAL_NAME] = principal
    return Session(
        id=new_id() if session_id is None else session_id,
        created_at=now,
        expires_at=expires_at,
        time_to_live=time_to_live,
        metadata=kept,
    )


def fork_of(source: Session, now: datetime, session_id: str | None) -> Session:
    """The session that a fork of ``source`` fills: its metadata, and as long to live as a new one has (A-5)."""
    return Session(
        id=new_id() if session_id is None else session_id,
        created_at=now,
        expires_at=source.expires_at if source.time_to_live is None else _later(now, source.time_to_live),
        time_to_live=source.time_to_live,
        metadata=source.metadata | {SessionAttributes.FORKED_FROM: source.id},
    )


def _mapping(metadata: object) -> dict[str, Any]:
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise InvalidValueError(f"metadata must be a dict, not {type(metadata).__name__}")
    return dict(cast("Mapping[str, Any]", metadata))


def _later(now: datetime, duration: timedelta) -> datetime:
    try:
        return now + duration
    except OverflowError as error:
        raise InvalidValueError(f"{duration} from now lies beyond the year 9999") from error
