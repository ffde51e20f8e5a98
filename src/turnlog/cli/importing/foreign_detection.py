"""Whether a file is another program's, told from its beginning."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from turnlog.cli.importing.conversations import Form
from turnlog.cli.importing.sources import Source, lines
from turnlog.formats import claude_code, codex
from turnlog.formats.json_text import InvalidJsonError, decode

_BEGINNING: Final = 1 << 16
#: How many lines are looked at, and how long they may be to be looked at.
_LINES: Final = 20
_LONGEST: Final = 1 << 17

#: Inside a string the quotes would be escaped.
_MAPPING: Final = re.compile(rb'"mapping"\s*:\s*\{')
_CHATGPT_KEYS: Final = re.compile(rb'"(?:create_time|current_node|conversation_id|title)"\s*:')


def detect_foreign(source: Source) -> Form | None:
    """The form of another program's file; None for any other file."""
    begin = source.read_pass().read(_BEGINNING).removeprefix(b"\xef\xbb\xbf").lstrip()
    if begin[:1] in (b"[", b"{") and _MAPPING.search(begin) and _CHATGPT_KEYS.search(begin):
        return Form.CHATGPT
    for line in islice(lines(source.read_pass(), _LONGEST), _LINES):
        try:
            value = None if line.data is None else decode(line.data)
        except InvalidJsonError:
            continue
        if claude_code.looks_like(value):
            return Form.CLAUDE_CODE
        if codex.looks_like(value):
            return Form.CODEX
    return None
