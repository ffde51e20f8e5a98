"""Data on its way to a terminal: what would act on the terminal, or deceive whoever reads it, is shown as an escape."""

from __future__ import annotations

import re

# Control characters but newline and tab; line separators; characters that turn the direction of writing; surrogates.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# The same in JSON that is UTF-8 already and escapes what lies below U+0020.
_CONTROL_IN_JSON = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]|\xe2\x81[\xa6-\xa9]")


def printable(text: str) -> str:
    r"""``text`` with what could act on a terminal written as ``\x1b`` or ``\u202e``; lines end with newlines."""
    return _CONTROL.sub(_escaped, text.replace("\r\n", "\n"))


def printable_json(data: bytes) -> bytes:
    r"""JSON with such characters as ``\u009b``: the same value, safe to show."""
    return _CONTROL_IN_JSON.sub(_escaped_in_json, data)


def one_line(text: str) -> str:
    """``text`` on one line, safe to show."""
    return " ".join(printable(text).split())


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def _escaped_in_json(found: re.Match[bytes]) -> bytes:
    return f"\\u{ord(found[0].decode('utf-8')):04x}".encode()
