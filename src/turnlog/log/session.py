"""Sessions: whose conversation it is and how long it lives; the events are read apart (V-2)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final, Self

from msgspec import Struct, field
from msgspec.structs import force_setattr

from turnlog.errors import InvalidValueError
from turnlog.log.events import as_utc
from turnlog.log.json_values import storable_dict
from turnlog.log.messages import LONGEST_SHOWN
from turnlog.log.names import check_name


class SessionAttributes:
    """Metadata keys with a meaning. ``PRINCIPAL_NAME`` is indexed in every store."""

    PRINCIPAL_NAME: Final = "principal_name"
    AGENT_NAME: Final = "agent_name"
    AGENT_VERSION: Final = "agent_version"
    AGENT_MODEL: Final = "agent_model"
    #: The id of the session that this one was forked from (A-5).
    FORKED_FROM: Final = "forked_from"


class SessionFields(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a session holds, not checked: a store makes it a ``Session`` by setting ``__class__``, as events are."""

    id: str
    created_at: datetime
    expires_at: datetime | None = None
    time_to_live: timedelta | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


class Session(SessionFields, frozen=True, kw_only=True, omit_defaults=True):
    """One continuous conversation: an immutable value that holds metadata only.

    ``expires_at`` None means never. With ``time_to_live`` each append slides the expiry; without it the expiry is fixed
    (R-7).
    """

    def __post_init__(self) -> None:
        check_name("session id", self.id)
        force_setattr(self, "created_at", as_utc(self.created_at, "created_at"))
        if self.expires_at is not None:
            force_setattr(self, "expires_at", as_utc(self.expires_at, "expires_at"))
        if self.time_to_live is not None:
            check_time_to_live(self.time_to_live)
            if self.expires_at is None:
                raise InvalidValueError("a session with time_to_live has an expires_at")
        force_setattr(self, "metadata", storable_dict(self.metadata, "metadata"))
        if self.metadata.get(SessionAttributes.PRINCIPAL_NAME) is not None:
            check_name("principal", self.metadata[SessionAttributes.PRINCIPAL_NAME])

    @property
    def principal(self) -> str | None:
        """The owner: ``metadata["principal_name"]``."""
        return self.metadata.get(SessionAttributes.PRINCIPAL_NAME)

    def is_expired(self, now: datetime) -> bool:
        """Whether it is gone at ``now``: ``expires_at <= now`` (R-7). A held turn is not considered here."""
        return self.expires_at is not None and self.expires_at <= now

    def __repr__(self) -> str:
        metadata = repr(self.metadata)
        shown = metadata if len(metadata) <= LONGEST_SHOWN else f"{metadata[: LONGEST_SHOWN - 1]}…"
        until = "" if self.expires_at is None else f", expires {self.expires_at}"
        return f"<Session {self.id!r} of {self.created_at}{until}: {shown}>"

    def replace(self, **changes: Any) -> Self:
        """A changed copy, validated again."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return type(self)(**fields | changes)


#: What slides must stay a date, however long it is used: Python's end with the year 9999.
LONGEST_TIME_TO_LIVE: Final = timedelta(days=365_000)


def check_time_to_live(value: object, what: str = "time_to_live") -> timedelta:
    """Return ``value`` if it is a positive duration of at most :data:`LONGEST_TIME_TO_LIVE`."""
    if not isinstance(value, timedelta) or value <= timedelta():
        raise InvalidValueError(f"{what} must be a positive timedelta, not {value!r}")
    if value > LONGEST_TIME_TO_LIVE:
        longest = f"{LONGEST_TIME_TO_LIVE.days:,} days"
        raise InvalidValueError(f"{what} is at most {longest}, not {value}; None is a session that never expires")
    return value
