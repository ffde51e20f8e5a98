"""What readers of other programs' session files give: entries of a log to be, in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeAlias

from msgspec import Struct

from turnlog.errors import InvalidValueError
from turnlog.formats.json_fields import json_name
from turnlog.log.events import EventType
from turnlog.log.messages import Message

#: A line's number, from 1, and the value that stands in it.
Line: TypeAlias = tuple[int, Any]

#: Told of a line that is left out because it is not as it should be, and why. It raises, or reading goes on.
OnFault: TypeAlias = Callable[[int, str], None]


class Entry(Struct, frozen=True, kw_only=True):
    """An event to be: a message, or what a program noted beside them, as a payload of a type of its own.

    ``line`` is where it begins in the file; ``timestamp`` is None where the file does not say.
    """

    line: int
    message: Message | None = None
    type: EventType = EventType.MESSAGE
    payload: dict[str, Any] | None = None
    timestamp: datetime | None = None
    branch: str | None = None
    metadata: dict[str, Any] = {}

    def with_message(self, message: Message) -> Entry:
        """The same entry with another message."""
        return Entry(
            line=self.line,
            message=message,
            timestamp=self.timestamp,
            branch=self.branch,
            metadata=self.metadata,
        )


class Facts(Struct):
    """What a file says of a session as a whole; complete when its entries have been read.

    ``id`` is None where the file does not say. ``left_out`` counts by kind what became no entry.
    """

    id: str | None = None
    created_at: datetime | None = None
    fields: dict[str, Any] = {}
    left_out: Counter[str] = Counter()


def moment(value: object, where: str) -> datetime | None:
    """An ISO 8601 time, UTC where it has no zone; None for None. Raises :class:`InvalidValueError` for all else."""
    if value is None:
        return None
    if type(value) is not str:
        raise InvalidValueError(f"{where} must be a string or null, not {json_name(value)}")
    try:
        found = datetime.fromisoformat(value)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidValueError(f"{where} is no time: {value[:40]!a}") from None


def moment_or_none(value: object) -> datetime | None:
    """The time that ``value`` is, None for anything else."""
    try:
        return moment(value, "")
    except InvalidValueError:
        return None
