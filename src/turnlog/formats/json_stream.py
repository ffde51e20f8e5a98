"""One JSON document read piece by piece, so that a huge array never lies in memory whole."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from turnlog.formats.json_text import DECODER, InvalidJsonError, explained

CHUNK: Final = 1 << 18
#: The longest single value, in characters.
LONGEST_VALUE: Final = 64 << 20

_SPACE = re.compile(r"[ \t\n\r]*")
#: How far from the end an error can stand that more text would heal: `-Infinity`, or a pair of escapes.
_TAIL = 16


class JsonStream:
    """Reads a document from ``read``, which returns at most as many bytes as asked for, and none at the end.

    All methods raise :class:`InvalidJsonError` with the line within the document.
    """

    def __init__(self, read: Callable[[int], bytes], *, longest: int = LONGEST_VALUE, chunk: int = CHUNK) -> None:
        self._read = read
        self._longest = longest
        self._chunk = chunk
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._ended = False
        self._line = 1
        self._counted = 0

    @property
    def line(self) -> int:
        """The line of the next character, from 1."""
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def peek(self) -> str:
        """The next character that is not space; ``""`` at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if self._ended:
                return ""
            self._fill(self._chunk)

    def value(self) -> Any:
        """The next value, whole."""
        self.peek()
        while True:
            try:
                value, end = DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._ended or not self._may_be_cut(error):
                    raise self._fault(error) from error
            except (ValueError, RecursionError) as error:
                raise self._fault(error) from error
            else:
                # A number near the end of the text may go on; everything else ends by itself.
                if self._ended or type(value) not in (int, float) or end < len(self._text) - _TAIL:
                    self._at = end
                    return value
            held = len(self._text) - self._at
            if held > self._longest:
                raise InvalidJsonError(f"a value of more than {self._longest:,} characters", self.line)
            self._fill(max(self._chunk, held))

    def array(self) -> Iterator[None]:
        """Stop at each element of the array that comes next; the caller reads it before it goes on."""
        self._expect("[", "an array")
        if self._took("]"):
            return
        while True:
            yield
            if self._took("]"):
                return
            self._expect(",", "',' or ']'")

    def object(self) -> Iterator[str]:
        """Stop at each value of the object that comes next and give its key; the caller reads the value."""
        self._expect("{", "an object")
        if self._took("}"):
            return
        while True:
            if self.peek() != '"':
                raise self._expected("a key in double quotes")
            key = self.value()
            self._expect(":", "':'")
            yield key
            if self._took("}"):
                return
            self._expect(",", "',' or '}'")

    def end(self) -> None:
        """Raise unless nothing but space is left."""
        if self.peek():
            raise self._expected("the end of the document")

    def _took(self, character: str) -> bool:
        if self.peek() != character:
            return False
        self._at += 1
        return True

    def _expect(self, character: str, what: str) -> None:
        if not self._took(character):
            raise self._expected(what)

    def _expected(self, what: str) -> InvalidJsonError:
        return InvalidJsonError(f"expecting {what}" + ("" if self.peek() else ", but the file ends here"), self.line)

    def _fill(self, size: int) -> None:
        data = self._read(size)
        try:
            text = self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            before = self._text.count("\n", self._at) + error.object[: error.start].count(b"\n")
            raise InvalidJsonError("not UTF-8", self.line + before) from error
        self._line = self.line
        self._text = self._text[self._at :] + text
        self._at = self._counted = 0
        self._ended = not data

    def _may_be_cut(self, error: json.JSONDecodeError) -> bool:
        """Whether more text could make the value right."""
        return error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - _TAIL

    def _fault(self, error: ValueError | RecursionError) -> InvalidJsonError:
        fault = explained(error)
        line = self.line
        if isinstance(error, json.JSONDecodeError):
            line += self._text.count("\n", self._at, error.pos)
        return InvalidJsonError(fault.reason, line)
