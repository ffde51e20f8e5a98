"""What is imported, as bytes that can be read twice: a file, a compressed file, or standard input."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Self

from turnlog.errors import ImportFormatError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_GZIP_MAGIC = b"\x1f\x8b"
_ENDINGS = re.compile(r"(\.jsonl?|\.ndjson|\.txt)?(\.gz)?$", re.IGNORECASE)
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class Line(NamedTuple):
    """A line of a file, counted from 1. ``data`` is None where it is longer than allowed."""

    number: int
    data: bytes | None


class Source:
    """An open file. What is appended to it after it was opened is not read: both passes see the same bytes.

    What cannot be read again from the start (standard input, a pipe) is copied to a temporary file first.
    """

    def __init__(self, path: str) -> None:
        #: As it was named, for messages: of two files in two folders it is said which.
        self.place = "stdin" if path == "-" else path
        #: What sessions remember of it.
        self.name = "stdin" if path == "-" else _UNPRINTABLE.sub("_", Path(path).name)
        #: What sessions without an id of their own are called after.
        self.stem = _ENDINGS.sub("", self.name) or self.name
        try:
            self._file = _opened(path)
        except OSError as error:
            raise ImportFormatError(self.place, 0, error.strerror or str(error)) from error
        self.size = self._file.seek(0, os.SEEK_END)
        self._file.seek(0)
        self._is_gzip = self._file.read(2) == _GZIP_MAGIC
        #: Told now and then how many of ``size`` bytes a pass has read.
        self.on_read: Callable[[int], None] = lambda _: None

    def read_pass(self) -> BinaryIO:
        """The bytes from the start, decompressed where needed; ends the pass before."""
        self._file.seek(0)
        plain = io.BufferedReader(_Limited(self._file, self.size, self.on_read), 1 << 18)
        if not self._is_gzip:
            return plain
        return io.BufferedReader(gzip.GzipFile(fileobj=plain), 1 << 18)

    @contextlib.contextmanager
    def named(self) -> Generator[None]:
        """Say which file it was when reading it fails."""
        try:
            yield
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ImportFormatError(self.place, 0, f"damaged gzip data: {error}") from error

    def close(self) -> None:
        """Close the file; a temporary one goes."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class _Limited(io.RawIOBase):
    """The first ``size`` bytes of a file."""

    def __init__(self, file: BinaryIO, size: int, on_read: Callable[[int], None]) -> None:
        self._file = file
        self._size = size
        self._read = 0
        self._on_read = on_read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        with memoryview(buffer) as room:
            data = self._file.read(min(room.nbytes, self._size - self._read))
            room[: len(data)] = data
        self._read += len(data)
        self._on_read(self._read)
        return len(data)


def _opened(path: str) -> BinaryIO:
    stream: BinaryIO = sys.stdin.buffer if path == "-" else Path(path).open("rb")  # noqa: SIM115 - Source closes it
    if stream.seekable() and path != "-":
        return stream
    spool: BinaryIO = tempfile.TemporaryFile(prefix="turnlog-import-")  # noqa: SIM115 - the same
    try:
        shutil.copyfileobj(stream, spool, 1 << 18)
    except BaseException:
        spool.close()
        raise
    finally:
        if path != "-":
            stream.close()
    return spool


def lines(stream: BinaryIO, longest: int) -> Iterator[Line]:
    """The lines that hold anything, without a byte order mark at the start."""
    number = 0
    while data := stream.readline(longest + 1):
        number += 1
        if len(data) > longest and not data.endswith(b"\n"):
            _skip_line(stream, longest)
            yield Line(number, None)
            continue
        if number == 1:
            data = data.removeprefix(b"\xef\xbb\xbf")
        if not data.isspace() and data:
            yield Line(number, data)


def _skip_line(stream: BinaryIO, piece: int) -> None:
    while data := stream.readline(piece):
        if data.endswith(b"\n"):
            return
