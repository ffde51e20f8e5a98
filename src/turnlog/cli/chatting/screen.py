"""What a chat writes: replies on standard output, everything beside them on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

from turnlog.cli.content import Glyphs
from turnlog.cli.escaping import one_line, printable
from turnlog.cli.terminal import output
from turnlog.log.messages import ToolCall
from turnlog.models.protocol import Delta

_DIM: Final = "\x1b[2m"
_PLAIN: Final = "\x1b[0m"
_CALL_WIDTH: Final = 100


class Screen:
    """Writes pieces as they come. ``is_dialogue``: somebody sits at the terminal, and sees reasoning and notes too."""

    def __init__(self, *, is_dialogue: bool) -> None:
        console = output()
        self.is_dialogue = is_dialogue
        self._glyphs = Glyphs.of(console)
        self._is_coloured = is_dialogue and console.is_terminal and not console.no_color
        self._is_line_open = False

    @property
    def prompt(self) -> str:
        """What stands before a line that is typed."""
        return f"{'›' if self._glyphs.ellipsis == '…' else '>'} "  # noqa: RUF001 - the sign that shells use

    def reply(self, deltas: Iterable[Delta]) -> None:
        """Write a reply while it comes, and end its line, however it ends."""
        thinks = False
        try:
            for delta in deltas:
                if delta.reasoning and self.is_dialogue:
                    self._write(delta.reasoning, dim=True)
                    thinks = True
                if delta.text:
                    if thinks:
                        self.end_line()
                    thinks = False
                    self._write(delta.text)
        finally:
            self.end_line()

    def call(self, call: ToolCall) -> None:
        """Say that a tool is called; what the model says behind it is another piece."""
        self.end_line()
        if self.is_dialogue:
            self.note(f"{self._glyphs.call} {call.name} {one_line(call.arguments)[:_CALL_WIDTH]}")

    def note(self, text: str) -> None:
        """Say something that no model said."""
        self.end_line()
        line = printable(text)
        sys.stderr.write(f"{_DIM}{line}{_PLAIN}\n" if self._is_coloured else f"{line}\n")
        sys.stderr.flush()

    def end_line(self) -> None:
        """Begin a new line, unless one has begun."""
        if self._is_line_open:
            self._write("\n")

    def _write(self, text: str, *, dim: bool = False) -> None:
        shown = printable(text)
        sys.stdout.write(f"{_DIM}{shown}{_PLAIN}" if dim and self._is_coloured else shown)
        sys.stdout.flush()
        self._is_line_open = not shown.endswith("\n")
