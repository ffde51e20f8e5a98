"""Whole requests to providers as logs: one in a file, a list of them, or one a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from turnlog.cli.importing.conversation_logs import Naming, batches_of, session_of
from turnlog.cli.importing.conversations import Form, OnFault, detect
from turnlog.cli.importing.logs import Log
from turnlog.cli.importing.sources import Line, Source, lines
from turnlog.errors import ImportFormatError, InvalidValueError
from turnlog.formats import Request, parse_request
from turnlog.formats.json_fields import as_object
from turnlog.formats.json_stream import JsonStream
from turnlog.formats.json_text import InvalidJsonError, decode
from turnlog.formats.request import form_of
from turnlog.log.events import SessionEvent
from turnlog.log.session import Session
from turnlog.storage.protocol import SessionRepository

#: The forms of requests; their names are those of the providers' formats.
REQUESTS: Final = frozenset(
    {
        Form.OPENAI_CHAT,
        Form.OPENAI_RESPONSES,
        Form.ANTHROPIC,
        Form.GEMINI,
        Form.BEDROCK,
    }
)
#: Stands for a line that holds no JSON.
_DAMAGED: Final = object()


class RequestFile:
    """A file of requests to one provider."""

    def __init__(self, source: Source, form: Form, longest: int, naming: Naming) -> None:
        self._source = source
        self._provider = form.value
        self._longest = longest
        self._naming = naming
        self._is_by_line = detect(source, longest) is Form.LINES

    def read(self, on_fault: OnFault) -> Iterator[Log]:
        """The logs that the requests make."""
        found = self._by_line(on_fault) if self._is_by_line else self._document()
        for number, (line, data) in enumerate(found, 1):
            yield RequestLog(data, self._provider, number, line, self._source, self._naming)

    def _by_line(self, on_fault: OnFault) -> Iterator[tuple[int, Any]]:
        for line in lines(self._source.read_pass(), self._longest):
            yield line.number, self._decoded(line, on_fault)

    def _decoded(self, line: Line, on_fault: OnFault) -> Any:
        try:
            if line.data is not None:
                return decode(line.data)
            on_fault(line.number, f"a line of more than {self._longest:,} bytes")
        except InvalidJsonError as error:
            on_fault(line.number, str(error))
        return _DAMAGED

    def _document(self) -> Iterator[tuple[int, Any]]:
        reader = JsonStream(self._source.read_pass().read, longest=self._longest)
        try:
            if reader.peek() == "[":
                for _ in reader.array():
                    reader.peek()
                    yield reader.line, reader.value()
            else:
                yield reader.line, reader.value()
            reader.end()
        except InvalidJsonError as error:
            raise ImportFormatError(self._source.place, error.line, f"invalid JSON: {error.reason}") from error


class RequestLog:
    """The log that the messages of one request make."""

    def __init__(self, data: Any, provider: str, number: int, line: int, source: Source, naming: Naming) -> None:
        self.line = line
        self._data = data
        self._provider = provider
        self._number = number
        self._source = source
        self._naming = naming

    def check(self, on_fault: OnFault) -> int | None:
        """Read every message; a wrong one spoils the request."""
        if self._data is _DAMAGED:
            return None  # its line was named
        try:
            return len(self._request().messages)
        except InvalidValueError as error:
            on_fault(self.line, str(error))
            return None

    def session(self) -> Session:
        """Named by an ``id`` beside the messages, else by the file and the request's place in it."""
        form = form_of(self._provider)
        fields = as_object(self._data, "the request")
        beside = {key: value for key, value in fields.items() if key != form.main and key not in form.system}
        return session_of({"format": self._provider} | beside, self._number, self._source, self._naming)

    def batches(self, repository: SessionRepository, /) -> Iterator[list[SessionEvent]]:
        """One batch for a system or user message, one for a step: a reply with all its tool results."""
        return batches_of(self._request().messages, self.session().id, repository, self._naming.now)

    def _request(self) -> Request:
        return parse_request(self._data, self._provider)
