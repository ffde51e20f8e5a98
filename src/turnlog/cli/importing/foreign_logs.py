"""Other programs' session files as logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from msgspec import Struct

from turnlog.cli.importing.conversation_logs import IMPORTED, Naming, event_id_of, stored_before
from turnlog.cli.importing.conversations import Form, OnFault
from turnlog.cli.importing.logs import Log
from turnlog.cli.importing.sources import Source, lines
from turnlog.errors import ImportFormatError, InvalidValueError
from turnlog.formats import chatgpt, claude_code, codex
from turnlog.formats.foreign import Entry, Facts, Line
from turnlog.formats.json_fields import json_name
from turnlog.formats.json_stream import JsonStream
from turnlog.formats.json_text import InvalidJsonError, decode
from turnlog.log.events import SessionEvent
from turnlog.log.messages import AssistantMessage, ToolMessage
from turnlog.log.session import Session, SessionAttributes
from turnlog.storage.protocol import SessionRepository

#: The key of a session's metadata that names the session it was forked from, as forks inside a store have it.
_FORKED_FROM: Final = "forked_from"


class LineFormat(Struct, frozen=True):
    """How a program's JSON Lines are read: all of them once, then one by one."""

    survey: Callable[[Iterable[Line]], Any]
    read: Callable[[Iterable[Line], Any, OnFault], Iterator[Entry]]


LINE_FORMATS: Final = {
    Form.CLAUDE_CODE: LineFormat(claude_code.survey, claude_code.read),
    Form.CODEX: LineFormat(codex.survey, codex.read),
}


class LineFile:
    """A file whose lines make one session."""

    def __init__(self, source: Source, form: Form, longest: int, naming: Naming) -> None:
        self._source = source
        self._form = form
        self._format = LINE_FORMATS[form]
        self._longest = longest
        self._naming = naming
        self._found: Any = None

    def read(self, on_fault: OnFault) -> Iterator[Log]:
        """The one log; its lines are looked at when it is checked."""
        del on_fault
        if self._found is None:
            self._found = self._format.survey(self._lines(_ignore))
        yield ForeignLog(self._found.facts, 1, self._entries, self._source, self._form, self._naming)

    def _entries(self, on_fault: OnFault) -> Iterator[Entry]:
        return self._format.read(self._lines(on_fault), self._found, on_fault)

    def _lines(self, on_fault: OnFault) -> Iterator[Line]:
        for number, data in lines(self._source.read_pass(), self._longest):
            if data is None:
                on_fault(number, f"a line of more than {self._longest:,} bytes")
                continue
            try:
                value = decode(data)
            except InvalidJsonError as error:
                on_fault(number, str(error))
            else:
                yield number, value


class ChatGptFile:
    """ChatGPT's export: each conversation makes a session, and one more for each way that was left behind."""

    def __init__(self, source: Source, longest: int, naming: Naming) -> None:
        self._source = source
        self._longest = longest
        self._naming = naming

    def read(self, on_fault: OnFault) -> Iterator[Log]:
        """The logs in the order of the file; the forks of a conversation follow it."""
        reader = JsonStream(self._source.read_pass().read, longest=self._longest)
        with self._named():
            if reader.peek() != "[":
                yield from self._conversation(reader.line, reader.value(), on_fault)
            else:
                for number, _ in enumerate(reader.array(), 1):
                    reader.peek()
                    yield from self._conversation(reader.line, reader.value(), on_fault, number)
            reader.end()

    @contextmanager
    def _named(self) -> Generator[None]:
        """Say where a document is broken; nobody can say where its next conversation would begin."""
        try:
            yield
        except InvalidJsonError as error:
            raise ImportFormatError(self._source.place, error.line, f"invalid JSON: {error.reason}") from error

    def _conversation(self, line: int, value: Any, on_fault: OnFault, number: int = 1) -> Iterator[Log]:
        if not chatgpt.looks_like(value):
            on_fault(line, f"no conversation of ChatGPT's: {json_name(value)} without 'mapping'")
            return
        try:
            facts = chatgpt.facts_of(value)
            if facts.id is None:
                facts.id = self._source.stem if number == 1 else f"{self._source.stem}-{number}"
            for way in chatgpt.paths(value):
                yield self._log(way, facts, line)
        except InvalidValueError as error:
            if isinstance(error, ImportFormatError):
                raise
            on_fault(line, str(error))

    def _log(self, way: chatgpt.Way, facts: Facts, line: int) -> ForeignLog:
        if way.leaf is not None and facts.id is not None:
            fields = facts.fields | {_FORKED_FROM: facts.id, "forked_at": way.forked_at}
            facts = Facts(f"{facts.id}/{way.leaf}", facts.created_at, fields, Counter())

        def entries(_: OnFault) -> Iterator[Entry]:
            return chatgpt.read(way, facts, line)

        return ForeignLog(facts, line, entries, self._source, Form.CHATGPT, self._naming)


class ForeignLog:
    """The log that one session of another program makes."""

    def __init__(
        self,
        facts: Facts,
        line: int,
        entries: Callable[[OnFault], Iterator[Entry]],
        source: Source,
        form: Form,
        naming: Naming,
    ) -> None:
        self.line = line
        self._facts = facts
        self._entries = entries
        self._source = source
        self._form = form
        self._naming = naming

    @property
    def left_out(self) -> Mapping[str, int]:
        """What became no event, by kind; known once the log was checked."""
        return self._facts.left_out

    @property
    def is_fork(self) -> bool:
        """Whether it is a way through a conversation that was left behind."""
        return self._form is Form.CHATGPT and _FORKED_FROM in self._facts.fields

    def check(self, on_fault: OnFault) -> int | None:
        """Read every entry. A wrong line is left out; what is wrong with a whole conversation spoils it.

        What holds no entry is no session, and no fault either: Claude Code leaves files with nothing but a title.
        """
        try:
            return sum(1 for _ in self._events("checked", on_fault)) or None
        except InvalidValueError as error:
            if isinstance(error, ImportFormatError):
                raise
            on_fault(self.line, str(error))
            return None

    def session(self) -> Session:
        """Named by its own id, else by the file."""
        fields = dict(self._facts.fields)
        forked_from = fields.pop(_FORKED_FROM) if self.is_fork else None
        imported = {"file": self._source.name, "format": self._form.value} | fields
        if self._facts.left_out:
            imported["left_out"] = dict(self._facts.left_out)
        metadata: dict[str, Any] = {IMPORTED: imported}
        if forked_from is not None:
            metadata[_FORKED_FROM] = self._naming.prefix + forked_from
        if self._naming.principal is not None:
            metadata[SessionAttributes.PRINCIPAL_NAME] = self._naming.principal
        session_id = self._naming.prefix + (self._facts.id or self._source.stem)
        return Session(id=session_id, created_at=self._facts.created_at or self._naming.now, metadata=metadata)

    def batches(self, repository: SessionRepository, /) -> Iterator[list[SessionEvent]]:
        """One batch for each entry, but for a reply, which is stored with all the results that follow it."""
        session_id = self.session().id
        stored = stored_before(repository, session_id)
        batch: list[SessionEvent] = []
        for index, event in enumerate(self._events(session_id, _ignore)):
            # The last step may have grown since it was imported: what is new of it is a batch of its own.
            if batch and (index == stored or not _continues(batch[0], event)):
                yield batch
                batch = []
            batch.append(event)
        if batch:
            yield batch

    def _events(self, session_id: str, on_fault: OnFault) -> Iterator[SessionEvent]:
        index = 0
        at = self._facts.created_at or self._naming.now
        for entry in self._entries(on_fault):
            at = entry.timestamp or at
            try:
                event = SessionEvent(
                    session_id=session_id,
                    id=event_id_of(session_id, index),
                    type=entry.type,
                    message=entry.message,
                    payload=entry.payload,
                    timestamp=at,
                    branch=entry.branch,
                    metadata=entry.metadata,
                )
            except InvalidValueError as error:
                on_fault(entry.line, str(error))
                continue
            index += 1
            yield event


def _continues(first: SessionEvent, event: SessionEvent) -> bool:
    """Whether an event belongs to the step that ``first`` began."""
    is_result = isinstance(event.message, ToolMessage) and isinstance(first.message, AssistantMessage)
    return is_result and event.branch == first.branch


def _ignore(_line: int, _reason: str) -> None:
    """For passes other than the one that names what is wrong."""
