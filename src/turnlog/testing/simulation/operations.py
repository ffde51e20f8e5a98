"""What callers do in a simulation: one call each, which the store and the model of it answer alike."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias, cast

from msgspec import Struct

from turnlog.log.codec import content_key, encode_body
from turnlog.log.events import SessionEvent
from turnlog.log.tally import Tally
from turnlog.storage.protocol import AppendResult, SessionPage, SessionRepository
from turnlog.testing.history import RecordedEvent, content_digest
from turnlog.testing.history.records import Window

_ID: Final = attrgetter("id")
_CREATED: Final = attrgetter("created_at")

Kind: TypeAlias = Literal["append", "create", "delete", "read", "other", "sweep"]


class Operation(Struct, frozen=True):
    """One call.

    ``kind`` is what the history knows it as; ``other`` it does not know. ``reads``: it changes nothing. ``window`` is
    what a read of the history asked for, None for a read that tells it nothing; ``before`` when what a sweep removes
    must have expired.
    """

    kind: Kind
    session: str
    text: str
    call: Callable[[SessionRepository], Any]
    reads: bool = False
    batch: tuple[SessionEvent, ...] = ()
    expected_version: int | None = None
    window: Window | None = None
    before: datetime | None = None

    def __str__(self) -> str:
        return self.text


def answer_of(value: Any) -> Any:
    """An answer as it is compared: everything in it, and nothing that two sound stores may tell apart."""
    match value:
        case AppendResult():
            return ("appended", *map(event_key, value.events), value.version, value.is_replay)
        case SessionPage():
            # Made at the same time, they stand as they were inserted: on a server not as they were committed.
            return [sorted(made, key=_ID) for _, made in groupby(value.sessions, key=_CREATED)]
        case Tally():
            return (value.version, value.boundary, value.turns, value.tokens)
        case list():
            items = cast("list[object]", value)
            return [event_key(item) if isinstance(item, SessionEvent) else item for item in items]
        case _:
            return value


def told_alike(one: Any, other: Any) -> bool:
    """Whether two answers to an append say that the same events are stored in the same places.

    After a commit whose answer was lost nobody can tell who has stored them, and the log may have grown since.
    """
    match one, other:
        case ("appended", *events, _, _), ("appended", *others, _, _):
            return events == others
        case _:
            return False


def is_change(answer: Any) -> bool:
    """Whether an answer to a write says that something was changed: not by a replay, not by a deletion of nothing."""
    match answer:
        case Refusal():
            return False
        case ("appended", *_, is_replay):
            return not is_replay
        case _:
            return answer is not False


def event_key(event: SessionEvent) -> tuple[Any, ...]:
    """Everything that a store keeps of an event; equality of messages leaves their metadata out."""
    body = encode_body(event)
    return (event.position, event.id, event.session_id, event.timestamp, event.type, event.branch, body)


class Refusal(Struct, frozen=True):
    """An error as it is compared."""

    kind: str
    text: str

    @classmethod
    def of(cls, error: BaseException) -> Refusal:
        """The refusal that the error is."""
        return cls(type(error).__name__, str(error))


def recorded(event: SessionEvent) -> RecordedEvent:
    """The event as the history knows it."""
    return RecordedEvent(event.id, content_digest(content_key(event)))
