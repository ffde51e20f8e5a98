"""The import itself: the whole file is checked, then each log is written in one transaction."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from turnlog.cli.importing.conversation_logs import ConversationFile, Naming
from turnlog.cli.importing.conversations import Form, detect
from turnlog.cli.importing.foreign_detection import detect_foreign
from turnlog.cli.importing.foreign_logs import LINE_FORMATS, ChatGptFile, ForeignLog, LineFile
from turnlog.cli.importing.logs import Log, LogFile
from turnlog.cli.importing.portable_logs import PortableFile
from turnlog.cli.importing.request_logs import REQUESTS, RequestFile
from turnlog.cli.importing.sources import Source
from turnlog.errors import ImportFormatError, InvalidValueError
from turnlog.storage.protocol import SessionRepository

#: The longest line, or single value of a document, in bytes.
LONGEST_LINE = 64 << 20


class Skipped(Struct, frozen=True):
    """What was left out, and why."""

    line: int
    reason: str


class Summary(Struct):
    """What an import found, and what it has stored so far."""

    sessions: int = 0
    events: int = 0
    new_sessions: int = 0
    new_events: int = 0
    replayed_events: int = 0
    skipped: list[Skipped] = []
    expired: list[str] = []
    #: Of other programs' files: what became no event, by kind.
    left_out: dict[str, int] = {}
    #: Of ChatGPT's export: the sessions that are ways which were left behind.
    forks: list[str] = []


class Importer:
    """One import of one file: first :meth:`check`, then :meth:`write`."""

    def __init__(
        self,
        source: Source,
        now: datetime,
        *,
        form: Form | None = None,
        prefix: str = "",
        principal: str | None = None,
        skip_invalid: bool = False,
        longest: int = LONGEST_LINE,
    ) -> None:
        self.summary = Summary()
        self._source = source
        self._now = now
        self._skip_invalid = skip_invalid
        with source.named():
            form = form or detect_foreign(source) or detect(source, longest)
        self._file = _file_of(source, form, longest, Naming(now, prefix, principal))
        self._left_out: set[int] = set()

    def check(self) -> Summary:
        """Read the whole file, and count.

        Raises :class:`ImportFormatError` at the first line that is not valid; with ``skip_invalid`` only for a document
        that is no JSON, as nobody can say where it goes on.
        """
        lines_of: dict[str, int] = {}
        with self._source.named():
            for number, log in enumerate(self._file.read(self._on_fault)):
                count = log.check(self._on_fault)
                self._note_left_out(log)
                session_id = None if count is None else self._checked_id(log, lines_of)
                if count is None or session_id is None:
                    self._left_out.add(number)
                    continue
                lines_of[session_id] = log.line
                self.summary.sessions += 1
                if isinstance(log, ForeignLog) and log.is_fork:
                    self.summary.forks.append(session_id)
                self.summary.events += count
        return self.summary

    def write(self, repository: SessionRepository) -> Summary:
        """Store what was checked, each log in one transaction; what is stored already is a replay.

        When it raises, the logs before the one at fault are stored, and ``summary`` counts them.
        """
        with self._source.named():
            for number, log in enumerate(self._file.read(_ignore)):
                if number not in self._left_out:
                    self._write(log, repository)
        return self.summary

    def _write(self, log: Log, repository: SessionRepository) -> None:
        session = log.session()
        if session.is_expired(repository.clock()):
            self.summary.expired.append(session.id)
            return
        is_new = repository.find(session.id) is None
        result = repository.restore(session, log.batches(repository))
        self.summary.new_sessions += is_new
        self.summary.new_events += result.stored
        self.summary.replayed_events += result.replayed

    def _checked_id(self, log: Log, lines_of: dict[str, int]) -> str | None:
        try:
            session_id = log.session().id
        except InvalidValueError as error:
            self._on_fault(log.line, str(error))
            return None
        if session_id in lines_of:
            self._on_fault(log.line, f"session {session_id!r} stands in line {lines_of[session_id]} already")
            return None
        return session_id

    def _note_left_out(self, log: Log) -> None:
        if isinstance(log, ForeignLog):
            for kind, count in log.left_out.items():
                self.summary.left_out[kind] = self.summary.left_out.get(kind, 0) + count

    def _on_fault(self, line: int, reason: str) -> None:
        if not self._skip_invalid:
            raise ImportFormatError(self._source.place, line, reason)
        self.summary.skipped.append(Skipped(line, reason))


def _file_of(source: Source, form: Form, longest: int, naming: Naming) -> LogFile:
    if form is Form.TURNLOG:
        return PortableFile(source, longest, naming)
    if form is Form.CHATGPT:
        return ChatGptFile(source, longest, naming)
    if form in REQUESTS:
        return RequestFile(source, form, longest, naming)
    if form in LINE_FORMATS:
        return LineFile(source, form, longest, naming)
    return ConversationFile(source, form, longest, naming)


def _ignore(_line: int, _reason: str) -> None:
    """For the second pass: every fault was named in the first."""
