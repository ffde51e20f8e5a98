"""What a test writes down about the calls it made on a store, and about the log they left: frozen values.

Times are `time.monotonic_ns()` of one host. A call whose answer never came has no return time and the outcome
`Unknown`: it may have taken effect at any time after it was made, or never.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

import msgspec

Kind: TypeAlias = Literal["append", "read", "create", "delete"]

Window: TypeAlias = int | Literal["whole", "filtered"]
"""What a read asked for: the whole log, its last n events or more (F-5), or some events, each with its position.

The last 0 events are a look at the version alone.
"""

FOREVER: Final = 2**63
"""A time after every other."""


class RecordedEvent(msgspec.Struct, frozen=True, array_like=True):
    """An event as a history knows it: its id, and a digest that is equal when the content is (see `content_digest`)."""

    id: str
    digest: str = ""


def content_digest(content: str | bytes) -> str:
    """Sixteen hexadecimal digits that stand for the content; any text has one, lone surrogates included."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return hashlib.blake2b(data, digest_size=8).hexdigest()


class Ok(msgspec.Struct, frozen=True, tag="ok"):
    """An append was acknowledged: the positions of its first and last event; `replay` if it was stored already."""

    first: int
    last: int
    replay: bool = False


class Seen(msgspec.Struct, frozen=True, tag="seen", omit_defaults=True):
    """A read answered: the events in the order given, and the version and positions where the store told them."""

    events: tuple[RecordedEvent, ...] = ()
    version: int | None = None
    positions: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.positions is not None and len(self.positions) != len(self.events):
            raise ValueError(f"{len(self.events)} events with {len(self.positions)} positions")


class Done(msgspec.Struct, frozen=True, tag="done"):
    """A create made the session, or a delete removed it."""


class Conflict(msgspec.Struct, frozen=True, tag="conflict"):
    """An append was refused because the log was at version `actual`, not at the one expected."""

    actual: int


class Absent(msgspec.Struct, frozen=True, tag="absent"):
    """The store answered that there is no such session."""


class Failed(msgspec.Struct, frozen=True, tag="fail", omit_defaults=True):
    """The call certainly changed nothing, now or later."""

    reason: str = ""


class Unknown(msgspec.Struct, frozen=True, tag="unknown", omit_defaults=True):
    """The call may have taken effect, may still do so, or never will."""

    reason: str = ""


Outcome: TypeAlias = Ok | Seen | Done | Conflict | Absent | Failed | Unknown

_ALWAYS_POSSIBLE = (Absent, Failed, Unknown)
_POSSIBLE: Final[dict[str, tuple[type, ...]]] = {
    "append": (Ok, Conflict),
    "read": (Seen,),
    "create": (Done,),
    "delete": (Done,),
}


class Operation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call on a store and how it ended.

    Args:
        process: who called. P9 holds between the calls of one process, so give each thread, task and connection that is
            promised to read its own writes one name, and no two of them the same.
        kind: `append`, `read`, `create` or `delete`. An expiry is a delete, called when the session was last alive and
            returned when it had surely expired. `find_or_create` is a create if it made the session.
        session: the session's id.
        invoked_ns: taken before the call.
        returned_ns: taken after it; None if the call never came back, and then the outcome is `Unknown`.
        outcome: how it ended.
        events: the batch that an append offered, in order.
        expected_version: what an append expected; None if anything would do.
        window: what a read asked for.
    """

    process: str
    kind: Kind
    session: str
    invoked_ns: int
    returned_ns: int | None = None
    outcome: Outcome = Unknown()
    events: tuple[RecordedEvent, ...] = ()
    expected_version: int | None = None
    window: Window = "whole"

    def __post_init__(self) -> None:
        if type(self.outcome) not in _POSSIBLE[self.kind] + _ALWAYS_POSSIBLE:
            raise ValueError(f"the outcome of a call to {self.kind} cannot be {self.outcome}")
        if self.returned_ns is None and not isinstance(self.outcome, Unknown):
            raise ValueError(f"{self.outcome} without the time when it was given")
        if self.returned_ns is not None and self.returned_ns < self.invoked_ns:
            raise ValueError(f"returned at {self.returned_ns}, before it was called at {self.invoked_ns}")
        if isinstance(self.outcome, Seen) and self.window == "filtered" and self.outcome.positions is None:
            raise ValueError("a filtered read needs the positions of its events")

    @property
    def ended_ns(self) -> int:
        """The time after which the call has no more effect: `FOREVER` if its outcome is unknown."""
        if self.returned_ns is None or isinstance(self.outcome, Unknown):
            return FOREVER
        return self.returned_ns

    def __str__(self) -> str:
        """One line for people: who, what, when."""
        asked = f" {self.window}" if self.kind == "read" else ""
        batch = f" {_listed([event.id for event in self.events])}" if self.kind == "append" else ""
        expected = "" if self.expected_version is None else f" expecting {self.expected_version}"
        end = "…" if self.returned_ns is None else self.returned_ns
        return (
            f"{self.process} {self.kind}{asked}{batch}{expected} [{self.invoked_ns}, {end}] {_described(self.outcome)}"
        )


def _described(outcome: Outcome) -> str:
    match outcome:
        case Ok():
            return f"ok {outcome.first} to {outcome.last}" + (" (replay)" if outcome.replay else "")
        case Seen():
            version = "" if outcome.version is None else f" at version {outcome.version}"
            return f"saw {_listed([event.id for event in outcome.events])}{version}"
        case Conflict():
            return f"conflict at {outcome.actual}"
        case Failed() | Unknown():
            return f"{outcome.__struct_config__.tag} {outcome.reason}".rstrip()
        case Done() | Absent():
            return str(outcome.__struct_config__.tag)


def _listed(ids: list[str]) -> str:
    """The ids, but only the ends of a long list."""
    if len(ids) > 6:
        ids = [*ids[:2], f"… {len(ids) - 4} more …", *ids[-2:]]
    return f"[{', '.join(ids)}]"


class LogEntry(msgspec.Struct, frozen=True):
    """An event of the final log, with the position that the store keeps for it."""

    id: str
    digest: str
    position: int


class FinalLog(msgspec.Struct, frozen=True):
    """A session's log after the last call: what its rows hold, and the version that its session row states."""

    version: int = 0
    entries: tuple[LogEntry, ...] = ()

    @classmethod
    def of(cls, events: Iterable[RecordedEvent], version: int | None = None) -> FinalLog:
        """The log with these events at 1, 2, 3…; `version` where the session row may say otherwise."""
        entries = tuple(LogEntry(event.id, event.digest, place) for place, event in enumerate(events, 1))
        return cls(len(entries) if version is None else version, entries)
