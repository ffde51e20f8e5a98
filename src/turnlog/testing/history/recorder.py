"""Writing a history down while it happens, from many threads, tasks and processes, and reading it back.

A call leaves one JSON line when it is made and one when it comes back. Each line is one write to a file opened for
appending, so several processes may share the file, and one that is killed leaves its last call without an answer.
"""

from __future__ import annotations

import copy
import itertools
import os
import secrets
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeAlias

import msgspec

from turnlog.log.codec import content_key
from turnlog.log.events import SessionEvent
from turnlog.testing.history.records import (
    Absent,
    Conflict,
    Done,
    Failed,
    Kind,
    Ok,
    Operation,
    Outcome,
    RecordedEvent,
    Seen,
    Unknown,
    Window,
    content_digest,
)


def recorded_event(event: SessionEvent) -> RecordedEvent:
    """The event as a history knows it; its digest stands for what R-4 calls content."""
    return RecordedEvent(event.id, content_digest(content_key(event)))


class HistoryFormatError(ValueError):
    """A recorded file holds something that no recorder wrote."""


class _Invoked(msgspec.Struct, frozen=True, tag_field="line", tag="invoke", omit_defaults=True):
    call: str
    process: str
    kind: Kind
    session: str
    invoked_ns: int
    events: tuple[RecordedEvent, ...] = ()
    expected_version: int | None = None
    window: Window = "whole"


class _Returned(msgspec.Struct, frozen=True, tag_field="line", tag="return"):
    call: str
    returned_ns: int
    outcome: Outcome


_Line: TypeAlias = _Invoked | _Returned

_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(_Line)


class _Sink:
    """Where the lines go: a list, or a file.

    There is no lock: one that another thread holds would stay locked in the child of a `fork`. Appending to a list,
    and one write to a file opened for appending, are atomic as they are.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.lines: list[_Line] = []
        self._file = None if path is None else os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, line: _Line) -> None:
        if self._file is None:
            self.lines.append(line)
            return
        # The line end comes first, so that a torn line spoils none but itself, whoever writes next.
        data = b"\n" + _encoder.encode(line)
        if os.write(self._file, data) != len(data):
            raise OSError(f"the history {self.path} takes no more: a line was cut short")

    def close(self) -> None:
        if self._file is not None and self._file >= 0:
            os.close(self._file)
            self._file = -1


class HistoryRecorder:
    """Records calls; safe to share between threads and tasks, and with a child made by `fork` when it has a file.

    Args:
        path: the file to append to; None keeps the history in memory.
        process: the name for P9; None names each thread of each process apart. Tasks of one event loop run in one
            thread: give each its own `worker`.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, process: str | None = None) -> None:
        self._process = process
        self._sink = _Sink(None if path is None else Path(path))
        # Unique over recorders; the process id added to each call keeps the two sides of a fork apart.
        self._token = secrets.token_hex(4)
        self._numbers = itertools.count(1)

    def worker(self, process: str) -> HistoryRecorder:
        """A recorder that writes to the same place under another name; closing one closes both."""
        twin = copy.copy(self)
        twin._process = process  # noqa: SLF001 - the same class
        return twin

    def append(self, session: str, events: Iterable[RecordedEvent], *, expected_version: int | None = None) -> Call:
        """Record that an append is about to be made."""
        return self._invoke("append", session, tuple(events), expected_version)

    def read(self, session: str, *, window: Window = "whole") -> Call:
        """Record that a read is about to be made; `window=0` is a look at the version."""
        return self._invoke("read", session, window=window)

    def create(self, session: str) -> Call:
        """Record that the session is about to be created."""
        return self._invoke("create", session)

    def delete(self, session: str) -> Call:
        """Record that the session is about to be deleted."""
        return self._invoke("delete", session)

    def operations(self) -> list[Operation]:
        """Everything recorded so far, in the order it was called; where there is a file, whoever wrote to it."""
        return _paired(self._sink.lines) if self._sink.path is None else load_history(self._sink.path)

    def close(self) -> None:
        """Close the file; nothing more can be recorded in it."""
        self._sink.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _invoke(
        self,
        kind: Kind,
        session: str,
        events: tuple[RecordedEvent, ...] = (),
        expected_version: int | None = None,
        window: Window = "whole",
    ) -> Call:
        call = f"{os.getpid()}.{self._token}.{next(self._numbers)}"
        process = self._process or f"{os.getpid()}.{threading.get_native_id()}"
        self._sink.write(_Invoked(call, process, kind, session, time.monotonic_ns(), events, expected_version, window))
        return Call(self._sink, call)


class Call:
    """A call that has been made: say once how it ended, at the moment its answer is there.

    As a context manager it records an exception that escapes as `Unknown`; an `except` inside may say better.
    """

    def __init__(self, sink: _Sink, call: str) -> None:
        self._sink = sink
        self._call = call
        self._ended = False

    def ended(self, outcome: Outcome) -> None:
        """Record the outcome and the time.

        Raises:
            RuntimeError: the call has an outcome already.
        """
        now = time.monotonic_ns()
        if self._ended:
            raise RuntimeError(f"this call has ended before; now {outcome}")
        self._ended = True
        self._sink.write(_Returned(self._call, now, outcome))

    def ok(self, first: int, last: int, *, replay: bool = False) -> None:
        """The append was acknowledged with these positions."""
        self.ended(Ok(first, last, replay))

    def seen(
        self,
        events: Iterable[RecordedEvent] = (),
        *,
        version: int | None = None,
        positions: Iterable[int] | None = None,
    ) -> None:
        """The read answered."""
        self.ended(Seen(tuple(events), version, None if positions is None else tuple(positions)))

    def done(self) -> None:
        """The session was created, or deleted."""
        self.ended(Done())

    def conflict(self, actual: int) -> None:
        """The append was refused: the log is at another version."""
        self.ended(Conflict(actual))

    def absent(self) -> None:
        """There is no such session."""
        self.ended(Absent())

    def failed(self, reason: str = "") -> None:
        """The call certainly changed nothing. When in doubt, it is unknown."""
        self.ended(Failed(reason))

    def unknown(self, reason: str = "") -> None:
        """The call may or may not have taken effect."""
        self.ended(Unknown(reason))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ended:
            return
        if kind is None:
            raise RuntimeError("the call came back and no outcome was recorded")
        self.unknown(kind.__name__)


def load_history(*paths: str | os.PathLike[str]) -> list[Operation]:
    """The calls recorded in these files, merged, in the order they were made.

    A line cut short, as a killed process leaves it, is skipped.

    Raises:
        HistoryFormatError: a line that no recorder wrote, or an answer whose call is in none of the files.
        OSError: a file cannot be read.
    """
    return _paired(line for path in paths for line in _lines(Path(path)))


def _lines(path: Path) -> Iterator[_Line]:
    for number, text in enumerate(path.read_bytes().split(b"\n"), 1):
        if not text.strip():
            continue
        try:
            yield _decoder.decode(text)
        except msgspec.DecodeError as error:
            # msgspec has one class for text that ends too early and text that is wrong.
            if str(error) != "Input data was truncated":
                raise HistoryFormatError(f"{path}, line {number}: {error}") from error


def _paired(lines: Iterable[_Line]) -> list[Operation]:
    invoked: dict[str, _Invoked] = {}
    returned: dict[str, _Returned] = {}
    for line in lines:
        if isinstance(line, _Invoked):
            invoked[line.call] = line
        else:
            returned[line.call] = line
    for call in returned.keys() - invoked.keys():
        raise HistoryFormatError(f"the answer to call {call} is there, the call is not: is a file missing?")
    operations = [_operation(line, returned.get(call)) for call, line in invoked.items()]
    return sorted(operations, key=lambda operation: operation.invoked_ns)


def _operation(invoked: _Invoked, returned: _Returned | None) -> Operation:
    return Operation(
        process=invoked.process,
        kind=invoked.kind,
        session=invoked.session,
        invoked_ns=invoked.invoked_ns,
        returned_ns=None if returned is None else returned.returned_ns,
        outcome=Unknown("never returned") if returned is None else returned.outcome,
        events=invoked.events,
        expected_version=invoked.expected_version,
        window=invoked.window,
    )
