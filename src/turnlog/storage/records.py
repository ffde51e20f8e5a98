"""Whole sessions as values, and as bytes: what a ``RecordKeeper`` keeps."""

from __future__ import annotations

from typing import Final, NamedTuple

from turnlog.errors import UnreadableDataError
from turnlog.log.codec import decode, encode
from turnlog.log.events import SessionEvent
from turnlog.log.session import Session
from turnlog.storage.rules import Lease

_KIND: Final = b"turnlog-record"


class SessionRecord(NamedTuple):
    """A session, who holds its turn, and its log, batch by batch: a value that nobody changes.

    ``serial`` is the number that the record's keeper gave it.
    """

    session: Session
    serial: int
    lease: Lease = Lease()
    batches: tuple[tuple[SessionEvent, ...], ...] = ()

    @property
    def version(self) -> int:
        """The position of the last event, 0 when empty."""
        return sum(map(len, self.batches))


def encode_record(record: SessionRecord) -> bytes:
    """The record as bytes: a line with the number of the format, and one of JSON."""
    format_, body = encode(record)
    return b"%s %d\n%s" % (_KIND, format_, body)


def decode_record(data: bytes, session_id: str | None = None) -> SessionRecord:
    """The record back, exactly. What ``encode_record`` did not write raises ``UnreadableDataError``.

    The error names the session if its id is given.
    """
    header, _, body = data.partition(b"\n")
    kind, _, number = header.partition(b" ")
    try:
        if kind != _KIND:
            raise ValueError("it does not begin as one")
        record: SessionRecord = decode(int(number), body, SessionRecord)
    except ValueError as error:
        raise UnreadableDataError(session_id, None, f"this is no record of a session: {error}") from error
    return record
