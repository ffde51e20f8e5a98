"""turnlog's own file: JSON Lines that hold whole logs, lossless and versioned (O-5).

A session is one header line and then one line for each event, in order::

    {"turnlog": 1, "version": 2, "session": {"id": "s1", "created_at": "2026-01-01T12:00:00Z"}}
    {"position": 1, "batch": 1, "id": "0197…", "timestamp": "…", "message": {"role": "user", "content": "hi"}}
    {"position": 2, "batch": 2, "id": "0197…", "timestamp": "…", "message": {"role": "assistant", "content": "Hello!"}}

``turnlog`` is the version of this layout, ``version`` that of the log: so many event lines follow, and a file that was
cut short is recognised. ``batch`` counts the appends, so that the same events go back in together. ``type`` and
``payload`` stand in events that are no messages, ``branch`` and ``metadata`` where there are any. Bytes are base64. A
line in which a string holds lone surrogates has ``"escaped":true``: in its strings each surrogate, and each U+0010, is
U+0010 and four hexadecimal digits, as JSON readers disagree about surrogates. ``turnlog`` stands first in a header,
which is how one is recognised. Any change of this layout gets a new number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final, TypeVar

from msgspec import Struct

from turnlog.errors import InvalidValueError
from turnlog.log.codec import ESCAPED, PLAIN, decode, encode
from turnlog.log.events import EventType, SessionEvent
from turnlog.log.messages import Message
from turnlog.log.session import Session

#: The layout that is written. Older ones stay readable.
LAYOUT: Final = 1


class Header(Struct, frozen=True):
    """The first line of a session: whose log follows, and how many events."""

    session: Session
    version: int


class Entry(Struct, frozen=True):
    """One event, and which append of its session it belongs to, from 1."""

    event: SessionEvent
    batch: int


class _Layout(Struct, frozen=True):
    turnlog: int
    escaped: bool = False


class _HeaderLine(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    turnlog: int
    version: int
    session: Session
    escaped: bool = False


class _EventLine(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    position: int
    batch: int
    id: str
    timestamp: datetime
    type: str = EventType.MESSAGE.name
    branch: str | None = None
    message: Message | None = None
    payload: dict[str, Any] | None = None
    metadata: dict[str, Any] = {}
    escaped: bool = False


_Line = TypeVar("_Line", _Layout, _HeaderLine, _EventLine)
_HEADER = re.compile(rb'\s*\{\s*"turnlog"\s*:')


def write(session: Session, version: int, batches: Iterable[Iterable[SessionEvent]]) -> Iterator[bytes]:
    """The lines of one session, each with its newline; ``batches`` are the whole log up to ``version``."""
    yield _line(_HeaderLine(turnlog=LAYOUT, version=version, session=session))
    for number, batch in enumerate(batches, 1):
        for event in batch:
            yield _line(
                _EventLine(
                    position=event.position or 0,
                    batch=number,
                    id=event.id,
                    timestamp=event.timestamp,
                    type=event.type.name,
                    branch=event.branch,
                    message=event.message,
                    payload=event.payload,
                    metadata=event.metadata,
                )
            )


def is_header(line: bytes) -> bool:
    """Whether a line begins a session in this format, of whatever layout."""
    return _HEADER.match(line) is not None


def read_header(line: bytes) -> Header:
    """The header in ``line``; raises :class:`InvalidValueError`, for a layout we do not know too."""
    layout = _decoded(line, _Layout).turnlog
    if layout != LAYOUT:
        raise InvalidValueError(f"layout {layout} of turnlog's files is not known to this version of turnlog")
    found = _decoded(line, _HeaderLine)
    if found.version < 0:
        raise InvalidValueError(f"a log has no version {found.version}")
    return Header(found.session, found.version)


class LogReader:
    """Reads the event lines of one session, in order, and refuses whatever does not follow from the lines before."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._position = 0
        self._batch = 0

    def read(self, line: bytes) -> Entry:
        """The event in ``line``; raises :class:`InvalidValueError`."""
        found = _decoded(line, _EventLine)
        if found.position != self._position + 1:
            raise InvalidValueError(f"event {found.position} follows event {self._position}")
        if found.position > self._header.version:
            raise InvalidValueError(f"event {found.position} of a log that has {self._header.version}")
        if not max(self._batch, 1) <= found.batch <= self._batch + 1:
            raise InvalidValueError(f"batch {found.batch} follows batch {self._batch}")
        self._position, self._batch = found.position, found.batch
        return Entry(_event(found, self._header.session.id), found.batch)

    def end(self) -> None:
        """Raise :class:`InvalidValueError` if events are missing."""
        session, version = self._header.session, self._header.version
        if self._position < version:
            raise InvalidValueError(
                f"cut short: {self._position} of {version} events of session {session.id!r} are here"
            )


def _event(found: _EventLine, session_id: str) -> SessionEvent:
    return SessionEvent(
        session_id=session_id,
        message=found.message,
        payload=found.payload,
        type=EventType(found.type),
        id=found.id,
        position=found.position,
        timestamp=found.timestamp,
        metadata=found.metadata,
        branch=found.branch,
    )


def _line(record: _HeaderLine | _EventLine) -> bytes:
    format_, data = encode(record)
    return data + b"\n" if format_ == PLAIN else data[:-1] + b',"escaped":true}\n'


def _decoded(line: bytes, kind: type[_Line]) -> _Line:
    try:
        found: _Line = decode(PLAIN, line, kind)
        if found.escaped:
            found = decode(ESCAPED, line, kind)
    except (ValueError, TypeError) as error:
        raise InvalidValueError(str(error)) from error
    return found
