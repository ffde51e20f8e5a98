"""What the port speaks of: the answers of a store, a turn, and what may be claimed of what was stored."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from msgspec import Struct

from turnlog.errors import InvalidValueError
from turnlog.log.events import SessionEvent
from turnlog.log.names import check_name
from turnlog.log.session import Session

#: A holder that is gone keeps everybody out for so long.
LONGEST_LEASE = timedelta(days=1)


class AppendResult(Struct, frozen=True):
    """What an append stored: the events with their positions, the log's version, and whether it was a replay."""

    events: tuple[SessionEvent, ...]
    version: int
    is_replay: bool


class RestoreResult(Struct, frozen=True):
    """What a restore stored: how many events were new and how many were there before, and the log's version."""

    stored: int
    replayed: int
    version: int


class SessionPage(Struct, frozen=True):
    """One page of a listing. ``cursor`` asks for the next page; None when this was the last."""

    sessions: tuple[Session, ...]
    cursor: str | None

    def __iter__(self) -> Iterator[Session]:
        return iter(self.sessions)

    def __len__(self) -> int:
        return len(self.sessions)


class Turn(Struct, frozen=True):
    """The hold of one caller on a session (H-11).

    With ``take`` the append takes the turn if it is free, or renews it; without, the caller must hold it already.
    ``lease`` is how long the hold lasts from then on by the store's clock.
    """

    token: str
    lease: timedelta = timedelta(seconds=20)
    take: bool = False

    def __post_init__(self) -> None:
        check_name("turn token", self.token)
        if not isinstance(self.lease, timedelta) or self.lease <= timedelta():
            raise InvalidValueError(f"lease must be a positive timedelta, not {self.lease!r}")
        if self.lease > LONGEST_LEASE:
            raise InvalidValueError(
                f"a lease is at most {LONGEST_LEASE}, not {self.lease}; renew it as the turn goes on"
            )


class Durability(Struct, frozen=True):
    """What may be claimed of acknowledged appends, and the engine's settings it rests on (R-15). None: not known."""

    survives_process_crash: bool | None
    survives_power_loss: bool | None
    claim: str
    settings: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
