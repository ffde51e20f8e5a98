"""What a chat writes: replies on standard output, everything beside them on standard error."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Final

from rich.cells import cell_len

from turnlog.cli.content import Glyphs
from turnlog.cli.escaping import one_line, printable
from turnlog.cli.terminal import output
from turnlog.log.messages import ToolCall
from turnlog.models.protocol import Delta

_DIM: Final = "\x1b[2m"
_GREEN: Final = "\x1b[1;32m"
_PLAIN: Final = "\x1b[0m"
_CALL_WIDTH: Final = 100
#: Lines break before a word, behind the spaces that part it from the one before.
_WORDS: Final = re.compile(r"\n|[^\S\n]+|\S+")


class Screen:
    """Writes pieces as they come. ``is_dialogue``: somebody sits at the terminal, and sees reasoning and notes too."""

    def __init__(self, *, is_dialogue: bool) -> None:
        console = output()
        self.is_dialogue = is_dialogue
        self._glyphs = Glyphs.of(console)
        is_terminal = is_dialogue and console.is_terminal
        self._is_coloured = is_terminal and not console.no_color
        self._width = console.width if is_terminal else None
        self._column = 0
        #: What may still become longer, and the blanks before it.
        self._word = ""
        self._blanks = ""

    @property
    def prompt(self) -> str:
        """What stands before a line that is typed; readline does not count what stands between U+0001 and U+0002."""
        sign = "›" if self._glyphs.ellipsis == "…" else ">"  # noqa: RUF001 - the sign that shells use
        return f"\x01{_GREEN}\x02{sign}\x01{_PLAIN}\x02 " if self._is_coloured else f"{sign} "

    def reply(self, deltas: Iterable[Delta]) -> None:
        """Write a reply while it comes, and end its line, however it ends."""
        thinks = False
        try:
            for delta in deltas:
                if delta.reasoning and self.is_dialogue:
                    self._write(delta.reasoning, _DIM)
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
        self._end_word()
        self._blanks = ""
        if self._column:
            self._put("\n")

    def _write(self, text: str, style: str = "") -> None:
        """Write a piece: at a terminal word by word, so that lines break between them."""
        shown = printable(text)
        if self._width is None:
            self._put(shown)
            return
        for piece in _WORDS.findall(shown):
            if not piece.isspace():
                self._word += piece
                continue
            self._end_word(style)
            if piece == "\n":
                self._blanks = ""
                self._put("\n")
            else:
                self._blanks += piece

    def _end_word(self, style: str = "") -> None:
        if not self._word:
            return
        if self._width is not None and self._column + cell_len(self._blanks + self._word) >= self._width:
            self._put("\n")
            self._blanks = ""
        is_styled = style and self._is_coloured
        self._put(self._blanks + (f"{style}{self._word}{_PLAIN}" if is_styled else self._word))
        self._word = self._blanks = ""

    def _put(self, shown: str) -> None:
        sys.stdout.write(shown)
        sys.stdout.flush()
        line = shown.rpartition("\n")[2]
        self._column = cell_len(line) + (0 if "\n" in shown else self._column)
