"""Writing to the terminal: data, notes for the person, JSON for programs, and progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from rich.console import Console

from turnlog.cli.escaping import printable, printable_json
from turnlog.log.codec import ESCAPED, encode


class _Output(Console):
    """A console that leaves it to ``main`` how a command ends whose reader has gone."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def output() -> Console:
    """The console on standard output. It takes nothing in the data for markup, and colours nothing by itself."""
    _never_fail_to_encode(sys.stdout)
    return _Output(markup=False, highlight=False, emoji=False)


def say(message: str) -> None:
    """A note for the person at the terminal; on standard error, so that output can be piped on."""
    sys.stderr.write(f"{printable(message)}\n")


def print_line(text: str) -> None:
    """A line of plain output."""
    _never_fail_to_encode(sys.stdout)
    sys.stdout.write(f"{printable(text)}\n")


def print_json(value: Any) -> None:
    """One JSON value on one line. Where strings hold lone surrogates it says so, as turnlog's own files do."""
    format_, data = encode(value)
    if format_ == ESCAPED:
        data = data[:-1] + b',"escaped":true}'
    write_bytes(printable_json(data) + b"\n")


def write_bytes(data: bytes) -> None:
    """Bytes for standard output, in order with the text before."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


@contextmanager
def progress(what: str, total: int | None) -> Generator[Callable[[int], None]]:
    """A bar on standard error while something long runs; the caller says how far it is. Nothing where nobody looks.

    Without a ``total`` the bar only shows that something is going on.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    # Here, and not above: it takes a third of the time that a command needs to start.
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


def _never_fail_to_encode(stream: Any) -> None:
    """Escapes where the terminal's encoding lacks a character, instead of an error in the middle of the output."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
