"""A file of logs, each of which can be checked, and then written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from turnlog.cli.importing.conversations import OnFault
from turnlog.log.events import SessionEvent
from turnlog.log.session import Session
from turnlog.storage.protocol import SessionRepository


class Log(Protocol):
    """One log in a file. It is either checked or written, before the next log is asked for, or left alone."""

    @property
    def line(self) -> int:
        """Where it begins, from 1."""
        ...

    def check(self, on_fault: OnFault) -> int | None:
        """Read it whole: how many events it has, or None where it is not valid, of which ``on_fault`` was told."""
        ...

    def session(self) -> Session:
        """The session to be; known once the log, or all of the file, was checked. Raises :class:`InvalidValueError`."""
        ...

    def batches(self, repository: SessionRepository, /) -> Iterator[list[SessionEvent]]:
        """The events in the batches in which they are appended; ``repository`` says which of them it holds already."""
        ...


class LogFile(Protocol):
    """A file of logs."""

    def read(self, on_fault: OnFault) -> Iterator[Log]:
        """The logs in order, the same at each call."""
        ...
