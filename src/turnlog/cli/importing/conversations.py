"""Which conversations a JSON or JSONL file holds, whatever form it has; what they say is not looked at here.

Forms: a conversation is a list of messages, or an object with ``messages``; a file is one conversation, a list of them,
one a line, or one message a line.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, BinaryIO, NamedTuple

from msgspec import Struct

from turnlog.cli.importing.sources import Line, Source, lines
from turnlog.errors import ImportFormatError, InvalidValueError
from turnlog.formats.json_fields import is_array, is_object, json_name
from turnlog.formats.json_stream import JsonStream
from turnlog.formats.json_text import InvalidJsonError, decode
from turnlog.formats.portable import is_header

#: Told of a line, or the conversation in it, that is not valid. It raises, or notes it so that reading goes on.
OnFault = Callable[[int, str], None]


_CHUNK = 1 << 18
_BEGINNING = 1_000


class Form(StrEnum):
    """How a file is laid out."""

    #: JSON: one value over one line or many.
    DOCUMENT = "openai-json"
    #: JSON Lines: a conversation, or a message, in each line.
    LINES = "openai-jsonl"
    #: turnlog's own JSON Lines.
    TURNLOG = "turnlog"
    #: What other programs keep or export.
    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    CHATGPT = "chatgpt"
    #: Whole requests, as providers take them.
    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    BEDROCK = "bedrock"


class Found(NamedTuple):
    """A message as it stands in the file, and what to call its place in an error."""

    line: int
    data: Any
    where: str


class Conversation(Struct):
    """A conversation in a file.

    ``fields`` is what stands beside the messages; complete only after ``messages`` have been read where the file is one
    object. ``is_by_line``: each message is a line of its own and can be left out alone.
    """

    number: int
    line: int
    fields: dict[str, Any]
    messages: Iterator[Found | None]
    is_by_line: bool = False


def detect(source: Source, longest: int) -> Form:
    """The form that the beginning of the file shows; raises :class:`ImportFormatError` for an empty file."""
    if not _has_second_line(source.read_pass()):
        # One line, of any length: it is not read whole, as it may be a huge document.
        begin = source.read_pass().read(_BEGINNING).lstrip()
        if not begin:
            raise ImportFormatError(source.place, 0, "the file is empty")
        return Form.TURNLOG if is_header(begin) else Form.DOCUMENT
    found = lines(source.read_pass(), longest)
    first, second = next(found), next(found)
    if first.data is None:
        return Form.DOCUMENT
    if is_header(first.data):
        return Form.TURNLOG
    if _is_complete(first):
        return Form.LINES
    # A document over several lines, or lines of which the first is damaged: then the second stands for itself.
    opens_document = not first.data.strip().strip(b'[{"messages": ')
    return Form.LINES if not opens_document and _is_complete(second) else Form.DOCUMENT


def _has_second_line(stream: BinaryIO) -> bool:
    """Whether anything follows behind the first line that holds something."""
    is_begun = is_over = False
    while rest := stream.read(_CHUNK):
        if not is_begun:
            rest = rest.lstrip()
            is_begun = bool(rest)
        if is_begun and not is_over:
            _, newline, rest = rest.partition(b"\n")
            is_over = bool(newline)
        if is_over and rest.strip():
            return True
    return False


def _is_complete(line: Line) -> bool:
    if line.data is None or line.data.lstrip()[:1] not in (b"[", b"{"):
        return False
    try:
        decode(line.data)
    except InvalidJsonError:
        return False
    return True


class ConversationReader:
    """Reads the conversations of one file, as often as asked."""

    def __init__(self, source: Source, form: Form, longest: int) -> None:
        self._source = source
        self._form = form
        self._longest = longest
        # Of a file that is one object: what stands beside its messages may come after them. Known after the first pass.
        self._fields: dict[str, Any] = {}

    def read(self, on_fault: OnFault) -> Iterator[Conversation]:
        """The conversations in order. The messages of each must be read before the next is asked for."""
        stream = self._source.read_pass()
        return self._lines(stream, on_fault) if self._form is Form.LINES else self._document(stream, on_fault)

    def _lines(self, stream: BinaryIO, on_fault: OnFault) -> Iterator[Conversation]:
        found = lines(stream, self._longest)
        for number, line in enumerate(found, 1):
            data = self._decoded(line, on_fault)
            if is_object(data) and "role" in data and "messages" not in data:
                if number > 1:
                    on_fault(line.number, "a message, where the lines before are conversations")
                    continue
                yield Conversation(1, line.number, {}, self._by_line(line, data, found, on_fault), is_by_line=True)
            elif data is not None:
                yield from self._whole(data, number, line.number, on_fault)

    def _by_line(self, first: Line, data: Any, rest: Iterator[Line], on_fault: OnFault) -> Iterator[Found | None]:
        yield Found(first.number, data, "message")
        for line in rest:
            message = self._decoded(line, on_fault)
            yield None if message is None else Found(line.number, message, "message")

    def _decoded(self, line: Line, on_fault: OnFault) -> Any:
        """The value in a line; None where there is none that could be anything."""
        if line.data is None:
            return on_fault(line.number, f"a line of more than {self._longest:,} bytes")
        try:
            value = decode(line.data)
        except InvalidJsonError as error:
            return on_fault(line.number, str(error))
        return on_fault(line.number, "null is no conversation and no message") if value is None else value

    def _document(self, stream: BinaryIO, on_fault: OnFault) -> Iterator[Conversation]:
        reader = JsonStream(stream.read, longest=self._longest)
        with self._named(reader):
            if reader.peek() == "[":
                yield from self._list(reader, on_fault)
            elif reader.peek() == "{":
                yield Conversation(1, reader.line, self._fields, self._object(reader, on_fault))
            else:
                raise InvalidValueError("expecting a list or an object")
            reader.end()

    @contextmanager
    def _named(self, reader: JsonStream) -> Generator[None]:
        """Say where a document is broken; nobody can say where its next conversation would begin."""
        try:
            yield
        except ImportFormatError:
            raise
        except InvalidJsonError as error:
            raise ImportFormatError(self._source.place, error.line, f"invalid JSON: {error.reason}") from error
        except InvalidValueError as error:
            raise ImportFormatError(self._source.place, reader.line, str(error)) from error

    def _list(self, reader: JsonStream, on_fault: OnFault) -> Iterator[Conversation]:
        elements = reader.array()
        for number, _ in enumerate(elements, 1):
            reader.peek()
            line, data = reader.line, reader.value()
            if number == 1 and is_object(data) and "messages" not in data:
                first = Found(line, data, "messages[0]")
                yield Conversation(1, line, {}, self._streamed(reader, elements, first))
            else:
                yield from self._whole(data, number, line, on_fault)

    def _object(self, reader: JsonStream, on_fault: OnFault) -> Iterator[Found | None]:
        fields: dict[str, Any] = {}
        has_messages = False
        line = reader.line
        with self._named(reader):
            for key in reader.object():
                if key != "messages":
                    fields[key] = reader.value()
                elif has_messages:
                    raise InvalidJsonError("'messages' stands twice", reader.line)
                else:
                    has_messages = True
                    yield from self._streamed(reader, reader.array(), None)
        if has_messages:
            self._fields.update(fields)
        elif "role" in fields:
            yield Found(line, fields, "message")
        else:
            on_fault(line, "an object with neither 'messages' nor 'role'")

    def _streamed(self, reader: JsonStream, elements: Iterator[None], first: Found | None) -> Iterator[Found]:
        """Messages that are the elements of an array under the reader; ``first`` has been read already."""
        if first is not None:
            yield first
        with self._named(reader):
            for index, _ in enumerate(elements, 0 if first is None else 1):
                reader.peek()
                line = reader.line
                yield Found(line, reader.value(), f"messages[{index}]")

    def _whole(self, data: Any, number: int, line: int, on_fault: OnFault) -> Iterator[Conversation]:
        """A conversation that is one value: a list of messages, or an object around one."""
        fields: dict[str, Any] = {}
        messages = data
        if is_object(data):
            if "messages" not in data:
                return on_fault(line, "no conversation: an object without 'messages'")
            messages = data["messages"]
            fields = {key: value for key, value in data.items() if key != "messages"}
        if not is_array(messages):
            what = "messages" if messages is not data else "a conversation"
            return on_fault(line, f"{what} must be a list, not {json_name(messages)}")
        found = (Found(line, message, f"messages[{index}]") for index, message in enumerate(messages))
        yield Conversation(number, line, fields, found)
