"""``SessionChange``: an update to a session's metadata, decided on the session as it is when it is applied (R-1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from turnlog.errors import InvalidValueError
from turnlog.log.session import Session, SessionAttributes


class SessionChange(Struct, frozen=True, kw_only=True):
    """What to change; everything unset stays.

    ``metadata`` replaces the whole, but keeps the principal unless ``principal`` says otherwise; ``set`` and ``unset`` then
    merge single keys. ``principal`` None removes the owner. ``expires_at`` None means never.
    """

    metadata: Mapping[str, Any] | UnsetType = UNSET
    set: Mapping[str, Any] = {}
    unset: Sequence[str] = ()
    principal: str | UnsetType | None = UNSET
    expires_at: datetime | UnsetType | None = UNSET
    time_to_live: timedelta | UnsetType | None = UNSET

    def __post_init__(self) -> None:
        named = {*self.set, *self.unset}
        if SessionAttributes.PRINCIPAL_NAME in named:
            raise InvalidValueError("the principal is changed with principal=, so that nobody changes it by accident")
        if isinstance(self.unset, str):
            raise InvalidValueError("unset must be a list of keys, not a string")
        if both := sorted({*self.set} & {*self.unset}):
            raise InvalidValueError(f"set and unset both name {', '.join(both)}")

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
