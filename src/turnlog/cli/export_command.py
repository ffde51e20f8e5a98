"""``export``: sessions into a file, or to standard output."""

from __future__ import annotations

import contextlib
import gzip
import json
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, Protocol

import msgspec
import typer

from turnlog.cli.escaping import one_line, printable_json
from turnlog.cli.options import StoreOption
from turnlog.cli.stores import existing_store
from turnlog.cli.terminal import say
from turnlog.cli.whole_file import replacing
from turnlog.errors import InvalidValueError, SessionNotFoundError
from turnlog.formats import Request, losses, openai_chat, portable, render_request
from turnlog.log.event_filter import EventFilter
from turnlog.log.messages import Message
from turnlog.log.session import Session
from turnlog.storage.protocol import SessionRepository

_PAGE = 200
#: By its other name it could not be told from a file that is to be replaced.
_STANDARD_OUTPUT: Final = ("-", "/dev/stdout")


class ExportFormat(StrEnum):
    """What ``--format`` takes."""

    TURNLOG = "turnlog"
    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    BEDROCK = "bedrock"


SessionsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="SESSION...", help="The sessions' ids; all if none is named.", show_default=False),
]
OwnerOption = Annotated[
    str | None, typer.Option("--principal", metavar="NAME", help="All sessions of this owner.", show_default=False)
]
FormatOption = Annotated[
    ExportFormat,
    typer.Option("--format", help="turnlog: everything, lossless. The others: the messages, as a provider takes them."),
]
ViewOption = Annotated[
    bool, typer.Option("--view", help="With a provider's format: the active view instead of the log.")
]
OutputOption = Annotated[
    str,
    typer.Option("--output", "-o", metavar="FILE", help="Where to; gzipped if it ends in .gz. - is standard output."),
]


def export(
    sessions: SessionsArgument = None,
    principal: OwnerOption = None,
    format_: FormatOption = ExportFormat.TURNLOG,
    view: ViewOption = False,
    output: OutputOption = "-",
    store: StoreOption = None,
) -> None:
    """Write sessions as JSON Lines: in turnlog's own form, or as requests to a provider, one session a line."""
    if sessions and principal is not None:
        raise InvalidValueError("name the sessions, or say --principal: not both")
    if view and format_ is ExportFormat.TURNLOG:
        raise InvalidValueError("--view goes with a provider's --format: turnlog's own form holds the whole log")
    with existing_store(store) as repository, _sink(output) as sink:
        chosen = _named(repository, sessions) if sessions else _listed(repository, principal)
        count = 0
        left_out = Counter[str]()
        for session in chosen:
            for piece in _pieces(repository, session, format_, left_out, view=view):
                sink.write(piece)
            count += 1
    if output not in _STANDARD_OUTPUT:
        say(f"{count:,} sessions written to {output}")
    if left_out:
        named = ", ".join(f"{what} ({times:,})" for what, times in left_out.most_common())
        say(f"left out, as {format_.value} has no place for it: {one_line(named)}")


def _named(repository: SessionRepository, session_ids: Iterable[str]) -> list[Session]:
    """All of them, each once, before anything is written."""
    found: list[Session] = []
    for session_id in dict.fromkeys(session_ids):
        session = repository.find(session_id)
        if session is None:
            raise SessionNotFoundError(session_id)
        found.append(session)
    return found


def _listed(repository: SessionRepository, principal: str | None) -> Iterator[Session]:
    cursor: str | None = None
    while True:
        page = repository.list(principal=principal, limit=_PAGE, cursor=cursor)
        yield from page
        cursor = page.cursor
        if cursor is None:
            return


def _pieces(
    repository: SessionRepository, session: Session, format_: ExportFormat, left_out: Counter[str], *, view: bool
) -> Iterator[bytes]:
    if format_ is ExportFormat.OPENAI_CHAT:
        return _conversation(repository, session, left_out, view=view)
    if format_ is not ExportFormat.TURNLOG:
        return _request(repository, session, format_.value, left_out, view=view)
    version = repository.version(session.id)
    return portable.write(session, version, repository.iter_batches(session.id, as_of=version))


def _conversation(
    repository: SessionRepository, session: Session, left_out: Counter[str], *, view: bool
) -> Iterator[bytes]:
    """One line: the session, and its messages, as an import reads them."""
    head = _json({"id": session.id, "metadata": session.metadata})
    yield head[:-1] + b',"messages":['
    before = b""
    for batch in repository.iter_events(session.id, _selected(view=view)):
        messages = [event.content for event in batch]
        left_out.update(_lost(messages, openai_chat.FORMAT))
        for message in openai_chat.render(messages):
            yield before + _json(message)
            before = b","
    yield b"]}\n"


def _request(
    repository: SessionRepository, session: Session, provider: str, left_out: Counter[str], *, view: bool
) -> Iterator[bytes]:
    """One line as in :func:`_conversation`; whole, as a provider may join or move what is said in it."""
    batches = repository.iter_events(session.id, _selected(view=view))
    request = Request(messages=tuple(event.content for batch in batches for event in batch), provider=provider)
    left_out.update(_lost(request.messages, provider))
    yield _json({"id": session.id, "metadata": session.metadata} | render_request(request)) + b"\n"


def _lost(messages: Iterable[Message], provider: str) -> list[str]:
    return [loss.what for loss in losses(Request(messages=tuple(messages), provider=provider))]


def _selected(*, view: bool) -> EventFilter:
    return EventFilter.active() if view else EventFilter.real_only()


def _json(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        # JSON's own escape for lone surrogates, about which readers disagree; turnlog's own form is exact.
        return json.dumps(value, separators=(",", ":")).encode("ascii")


class _Sink(Protocol):
    """Where the bytes go."""

    def write(self, data: bytes, /) -> object: ...


class _Terminal:
    """Standard output where a person looks at it: what acts on a terminal is escaped, which JSON allows."""

    def write(self, data: bytes, /) -> None:
        sys.stdout.buffer.write(printable_json(data))


@contextlib.contextmanager
def _sink(output: str) -> Generator[_Sink]:
    if output in _STANDARD_OUTPUT:
        sys.stdout.flush()
        yield _Terminal() if sys.stdout.isatty() else sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(output)
    if target.exists() and not target.is_file() and not target.is_dir():  # a pipe or a device, which takes what comes
        with target.open("wb") as stream, _packed(stream, output) as sink:
            yield sink
        return
    with replacing(target) as partial, partial.open("wb") as file, _packed(file, output) as sink:
        yield sink


@contextlib.contextmanager
def _packed(file: BinaryIO, name: str) -> Generator[_Sink]:
    if not name.endswith(".gz"):
        yield file
        return
    with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
        yield packed
