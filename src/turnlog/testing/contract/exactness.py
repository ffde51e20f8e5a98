"""Equality that misses nothing: what ``==`` takes for equal may still have changed on its way through a store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

import msgspec

from turnlog.log.events import SessionEvent

#: Different names that some engine or other takes for equal: case, padding, wildcards, marks, widths.
LOOK_ALIKES: Final = (
    "ab",
    "aB",
    "AB",
    "ab ",
    " ab",
    "a_",
    "a%",
    "a*",
    "%",
    "_",
    "a'b",
    'a"b',
    "a\\b",
    "ß",
    "ss",
    "SS",
    "\u00e9",
    "e\u0301",
    "e",
    "İ",
    "i",
    "I",
    "ｅ",
    "\u200bab",
    "a\u2028b",
    "👩‍👩‍👧",
    "👩",
    "x" * 255,
    "x" * 254,
)


def exactly(value: Any) -> Any:
    """A value that is equal for two values only if they are the same in every field and in every type.

    ``1``, ``1.0`` and ``True`` differ; so do None and ``""``, and messages with different metadata or native data.
    """
    return _exact(msgspec.to_builtins(value))


def _exact(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _exact(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_exact(item) for item in cast("Sequence[Any]", value)]
    return (type(value), repr(value)) if isinstance(value, float) else (type(value), value)


def ids(events: Iterable[SessionEvent]) -> str:
    """The ids of events in their order, as in ``"e1 e2"``."""
    return " ".join(event.id for event in events)


def positions(events: Iterable[SessionEvent]) -> list[int | None]:
    """The positions of events in their order."""
    return [event.position for event in events]
