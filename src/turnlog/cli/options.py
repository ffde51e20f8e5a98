"""The options that several commands share, and how their values are read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Final

import typer

from turnlog.cli.stores import STORE_VARIABLE
from turnlog.errors import InvalidValueError
from turnlog.log.events import EventType
from turnlog.log.messages import MessageType

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        envvar=STORE_VARIABLE,
        metavar="URL",
        help="The store: a path, or a URL such as sqlite:chat.db. By default a file in your data folder.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, one value a line, for programs.")]
SessionArgument = Annotated[str, typer.Argument(metavar="SESSION", help="The session's id.", show_default=False)]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

_DURATION: Final = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?", re.ASCII)


def read_duration(text: str) -> timedelta:
    """``90``, ``90s``, ``5m``, ``1h30m``, ``2d``: a positive duration, in seconds where no unit is given."""
    found = _DURATION.fullmatch(text.strip())
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups()) if found else (0, 0, 0, 0)
    try:
        duration = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    except OverflowError:
        duration = timedelta()
    if duration <= timedelta():
        raise InvalidValueError(f"{text!r} is no duration: write 90, 90s, 5m, 1h30m or 2d")
    return duration


def read_time(text: str | None, option: str) -> datetime | None:
    """An ISO 8601 time with its zone; a date alone, or a time without a zone, names no moment and is refused."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidValueError(f"{option}: {text!r} is no time: write 2026-01-31T12:00:00Z") from None
    if moment.tzinfo is None:
        raise InvalidValueError(f"{option}: {text!r} has no time zone: write 2026-01-31T12:00:00Z")
    return moment


def read_message_types(names: Sequence[str]) -> frozenset[MessageType]:
    """Message types by name, in any case; several may stand in one value, with commas between."""
    return frozenset(_message_type(name) for name in _split(names))


def _message_type(name: str) -> MessageType:
    try:
        return MessageType(name.lower())
    except ValueError:
        choices = ", ".join(type_.value for type_ in MessageType)
        raise InvalidValueError(f"--type: {name!r} is not one of {choices}") from None


def read_event_types(names: Sequence[str]) -> frozenset[EventType]:
    """Event types by name."""
    return frozenset(EventType(name) for name in _split(names))


def _split(values: Sequence[str]) -> list[str]:
    return [name.strip() for value in values for name in value.split(",") if name.strip()]
