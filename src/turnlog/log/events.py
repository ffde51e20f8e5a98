"""Events: the entries of a session's log (V-3, V-4, V-6)."""

from __future__ import annotations

import re
from copy import copy
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, Self

from msgspec import Struct, field
from msgspec.structs import force_setattr

from turnlog.errors import InvalidValueError
from turnlog.log.json_values import storable_dict
from turnlog.log.messages import MESSAGE_CLASSES, Message, UserMessage
from turnlog.log.names import check_branch, check_name, new_id

_TYPE_NAME = re.compile(r"[A-Z][A-Z0-9_.]{0,63}")


class EventType(Struct, frozen=True, order=True):
    """What an event is: an open set of names. ``MESSAGE`` and ``COMPACTION`` are built in; ``of`` makes your own.

    Choose a prefix (``MY_APP.PROGRESS``): names without one may be built in later.
    """

    name: str

    MESSAGE: ClassVar[EventType]
    COMPACTION: ClassVar[EventType]

    def __post_init__(self) -> None:
        if type(self.name) is not str or not _TYPE_NAME.fullmatch(self.name):
            raise InvalidValueError(
                f"event type {self.name!a}: 1 to 64 of A-Z, 0-9, '_' and '.', beginning with a letter (V-4)"
            )

    @classmethod
    def of(cls, name: str) -> EventType:
        """The event type of that name."""
        return cls(name)

    def __str__(self) -> str:
        return self.name


EventType.MESSAGE = EventType("MESSAGE")
EventType.COMPACTION = EventType("COMPACTION")


class EventMetadata:
    """The metadata keys that turnlog itself reads and writes."""

    #: True on the two events of a summary (V-6). Only a compaction's batch may carry it.
    SYNTHETIC: Final = "turnlog.synthetic"
    #: The strategy that wrote a synthetic event.
    STRATEGY: Final = "turnlog.strategy"
    #: The id of the boundary that a synthetic event belongs to.
    BOUNDARY: Final = "turnlog.boundary"
    #: The run that stored the event (H-8); user messages in a row of one run are one opening (V-5).
    RUN_ID: Final = "turnlog.run_id"


class EventFields(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an event holds, not checked: what the codec makes of a stored body, before a store adds the other columns.

    The store then makes it a ``SessionEvent`` by setting ``__class__``: the layout is the same. All was checked when
    the event was first made; the constructor would check and copy it again for every event of every read.
    """

    session_id: str
    message: Message | None = None
    payload: dict[str, Any] | None = None
    type: EventType = EventType.MESSAGE
    id: str
    position: int | None = None
    timestamp: datetime
    metadata: dict[str, Any] = field(default_factory=dict)
    branch: str | None = None


class SessionEvent(EventFields, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of a log, never changed once appended.

    A ``MESSAGE`` event has a message and no payload; every other type has a payload and no message. ``position`` counts
    1, 2, 3… in the session and is given by the store; it, not ``timestamp``, is the order. ``branch`` is None for the
    root agent, else a path such as ``orch.researcher``. A run id in the metadata is a name (R-8), as stores index it.
    """

    id: str = field(default_factory=new_id)
    timestamp: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __post_init__(self) -> None:
        check_name("session id", self.session_id)
        check_name("event id", self.id)
        if self.branch is not None:
            check_branch(self.branch)
        if not isinstance(self.type, EventType):
            raise InvalidValueError(f"type must be an EventType (EventType.of({self.type!a})), not {self.type!a}")
        self._check_content()
        force_setattr(self, "metadata", storable_dict(self.metadata, "metadata"))
        if self.metadata and self.run_id is not None:
            check_name("run id", self.run_id)
        if self.position is not None and (type(self.position) is not int or self.position < 1):
            raise InvalidValueError(f"position must be a positive int or None, not {self.position!a}")
        force_setattr(self, "timestamp", as_utc(self.timestamp, "timestamp"))

    def _check_content(self) -> None:
        if self.type == EventType.MESSAGE:
            if not isinstance(self.message, MESSAGE_CLASSES):
                raise InvalidValueError(f"a MESSAGE event needs a message, not {type(self.message).__name__}")
            if self.payload is not None:
                raise InvalidValueError("a MESSAGE event has no payload; use metadata, or an event type of your own")
            return
        if self.message is not None:
            raise InvalidValueError(f"a {self.type} event has a payload, not a message")
        payload = {} if self.payload is None else storable_dict(self.payload, "payload")
        force_setattr(self, "payload", payload)

    @property
    def content(self) -> Message:
        """The message; raises on an event of another type."""
        if self.message is None:
            raise InvalidValueError(f"event {self.id!r} is {self.type} and holds no message")
        return self.message

    @property
    def is_message(self) -> bool:
        """Whether this is a ``MESSAGE`` event."""
        return self.message is not None

    @property
    def is_synthetic(self) -> bool:
        """Whether a compaction wrote it as part of a summary; its boundary is not synthetic (V-6)."""
        return self.message is not None and self.metadata.get(EventMetadata.SYNTHETIC) is True

    @property
    def is_boundary(self) -> bool:
        """Whether it is the boundary of a compaction, rewind or clear."""
        return self.type == EventType.COMPACTION

    @property
    def is_shadow_prompt(self) -> bool:
        """Whether it is the synthetic user message that opens a summary (V-6)."""
        return isinstance(self.message, UserMessage) and self.is_synthetic

    @property
    def run_id(self) -> str | None:
        """The run that stored it, if one did."""
        return self.metadata.get(EventMetadata.RUN_ID)

    def at(self, position: int) -> Self:
        """The same event at the position that a store has given it."""
        placed = copy(self)
        force_setattr(placed, "position", position)
        return placed

    def replace(self, **changes: Any) -> Self:
        """A changed copy, validated again."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return type(self)(**fields | changes)

    def __repr__(self) -> str:
        place = "-" if self.position is None else self.position
        held = repr(self.message) if self.message is not None else f"{self.type} {str(self.payload)[:60]}"
        branch = "" if self.branch is None else f" on {self.branch}"
        return f"<SessionEvent {place} of {self.session_id!r}{branch}: {held}>"


def as_utc(moment: object, what: str) -> datetime:
    """The same moment in UTC; refused is one that is naive, and so names no moment, or out of range in UTC (V-3)."""
    if not isinstance(moment, datetime):
        raise InvalidValueError(f"{what} must be a datetime, not {type(moment).__name__}")
    if moment.tzinfo is UTC:
        return moment
    if moment.utcoffset() is None:
        raise InvalidValueError(f"{what} {moment.isoformat()} is naive; give it a time zone, such as datetime.now(UTC)")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise InvalidValueError(f"{what} {moment.isoformat()} lies outside the years 1 to 9999 in UTC") from error
