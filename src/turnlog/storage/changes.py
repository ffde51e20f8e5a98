"""``SessionChange``: an update to a session's metadata, decided on the session as it is when it is applied (R-1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import force_setattr

from turnlog.errors import InvalidValueError
from turnlog.log.events import as_utc
from turnlog.log.json_values import storable_dict
from turnlog.log.names import check_name
from turnlog.log.session import Session, SessionAttributes, check_time_to_live


class SessionChange(Struct, frozen=True, kw_only=True):
    """What to change; everything unset stays.

    ``metadata`` replaces the whole, but keeps the principal unless ``principal`` says otherwise; ``set`` and ``unset``
    then merge single keys. ``principal`` None removes the owner. ``expires_at`` None means never.
    """

    metadata: Mapping[str, Any] | UnsetType = UNSET
    set: Mapping[str, Any] = {}
    unset: Sequence[str] = ()
    principal: str | UnsetType | None = UNSET
    expires_at: datetime | UnsetType | None = UNSET
    time_to_live: timedelta | UnsetType | None = UNSET

    def __post_init__(self) -> None:
        if not isinstance(self.unset, Sequence) or isinstance(self.unset, str):
            raise InvalidValueError("unset must be a list of keys, not a string")
        if self.metadata is not UNSET:
            force_setattr(self, "metadata", _checked(self.metadata, "metadata"))
        force_setattr(self, "set", _checked(self.set, "set"))
        if SessionAttributes.PRINCIPAL_NAME in {*self.set, *self.unset}:
            raise InvalidValueError("the principal is changed with principal=, so that nobody changes it by accident")
        if both := sorted({*self.set} & {*self.unset}):
            raise InvalidValueError(f"set and unset both name {', '.join(both)}")
        if self.principal is not UNSET and self.principal is not None:
            check_name("principal", self.principal)
        if self.expires_at is not UNSET and self.expires_at is not None:
            force_setattr(self, "expires_at", as_utc(self.expires_at, "expires_at"))
        if self.time_to_live is not UNSET and self.time_to_live is not None:
            check_time_to_live(self.time_to_live)

    def applied(self, session: Session, now: datetime) -> Session:
        """The session after the change, made at ``now``; a new ``time_to_live`` counts from then."""
        expires_at = session.expires_at if self.expires_at is UNSET else self.expires_at
        time_to_live = session.time_to_live if self.time_to_live is UNSET else self.time_to_live
        if self.expires_at is UNSET and isinstance(self.time_to_live, timedelta):
            expires_at = now + self.time_to_live
        if self.time_to_live is UNSET and self.expires_at is None:
            time_to_live = None
        return session.replace(metadata=self._metadata(session), expires_at=expires_at, time_to_live=time_to_live)

    def _metadata(self, session: Session) -> dict[str, Any]:
        owner = SessionAttributes.PRINCIPAL_NAME
        principal = session.principal if self.principal is UNSET else self.principal
        metadata = dict(session.metadata if self.metadata is UNSET else self.metadata)
        metadata.update(self.set)
        for key in self.unset:
            metadata.pop(key, None)
        metadata.pop(owner, None)
        return metadata if principal is None else {owner: principal} | metadata


def _checked(values: object, what: str) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        raise InvalidValueError(f"{what} must be a dict, not {type(values).__name__}")
    return storable_dict(dict(cast("Mapping[str, Any]", values)), what)
