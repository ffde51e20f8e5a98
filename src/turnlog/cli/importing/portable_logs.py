"""turnlog's own JSON Lines as logs."""

from __future__ import annotations

from collections.abc import Iterator

from turnlog.cli.importing.conversation_logs import Naming
from turnlog.cli.importing.conversations import OnFault
from turnlog.cli.importing.logs import Log
from turnlog.cli.importing.sources import Line, Source, lines
from turnlog.errors import InvalidValueError
from turnlog.formats.portable import Header, LogReader, is_header, read_header
from turnlog.log.events import SessionEvent
from turnlog.log.session import Session, SessionAttributes
from turnlog.storage.protocol import SessionRepository
from turnlog.storage.rules import check_batch, check_boundary


class PortableFile:
    """A file in turnlog's own format."""

    def __init__(self, source: Source, longest: int, naming: Naming) -> None:
        self._source = source
        self._longest = longest
        self._naming = naming

    def read(self, on_fault: OnFault) -> Iterator[Log]:
        """The logs; the lines behind a header that cannot be read are passed over with it."""
        found = lines(self._source.read_pass(), self._longest)
        line = next(found, None)
        while line is not None:
            header = _header(line, on_fault)
            rest = _EventLines(found)
            if header is not None:
                yield PortableLog(header, line.number, rest, self._naming)
            for _ in rest:
                pass
            line = rest.next_header


class _EventLines:
    """The lines up to the next header, which is kept."""

    def __init__(self, found: Iterator[Line]) -> None:
        self._found = found
        self.next_header: Line | None = None

    def __iter__(self) -> Iterator[Line]:
        if self.next_header is not None:
            return
        for line in self._found:
            if line.data is not None and is_header(line.data):
                self.next_header = line
                return
            yield line


def _header(line: Line, on_fault: OnFault) -> Header | None:
    try:
        if line.data is None or not is_header(line.data):
            raise InvalidValueError("expecting the header of a session")
        return read_header(line.data)
    except InvalidValueError as error:
        on_fault(line.number, str(error))
        return None


class PortableLog:
    """One session of the file."""

    def __init__(self, header: Header, line: int, rest: _EventLines, naming: Naming) -> None:
        self.line = line
        self._header = header
        self._rest = rest
        self._naming = naming
        self._line_read = line

    def check(self, on_fault: OnFault) -> int | None:
        """Read every event, and look at each batch as an append would."""
        version = 0
        boundaries: list[int] = []
        reading = self._read()
        while True:
            try:
                batch = next(reading, None)
                if batch is None:
                    return version
                if check_boundary(check_batch(batch[0].session_id, batch), version, boundaries):
                    boundaries.append(version + 1)
                version += len(batch)
            except InvalidValueError as error:
                on_fault(self._line_read, str(error))
                return None

    def session(self) -> Session:
        """The session as the header has it, under its new name and owner where the import says so."""
        session = self._header.session
        metadata = session.metadata
        if self._naming.principal is not None:
            metadata = metadata | {SessionAttributes.PRINCIPAL_NAME: self._naming.principal}
        return session.replace(id=self._naming.prefix + session.id, metadata=metadata)

    def batches(self, _repository: SessionRepository, /) -> Iterator[list[SessionEvent]]:
        """The batches in which the events were appended first."""
        return self._read()

    def _read(self) -> Iterator[list[SessionEvent]]:
        session_id = self.session().id
        reader = LogReader(Header(self._header.session.replace(id=session_id), self._header.version))
        batch: list[SessionEvent] = []
        number = 1
        for line in self._rest:
            self._line_read = line.number
            if line.data is None:
                raise InvalidValueError("a line that is longer than allowed")
            entry = reader.read(line.data)
            if entry.batch != number:
                yield batch
                batch, number = [], entry.batch
            batch.append(entry.event)
        reader.end()
        if batch:
            yield batch
