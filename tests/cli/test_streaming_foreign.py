"""Other programs' files of any size are read in pieces too: memory grows with ids, never with what is said."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import pytest

from tests.formats.foreign.claude_lines import Transcript, text
from tests.formats.foreign.test_chatgpt import conversation, node
from tests.formats.foreign.test_chatgpt import text as parts
from tests.formats.foreign.test_codex import META, said, user, wrapped
from turnlog.cli.importing.importer import Importer
from turnlog.cli.importing.sources import Source

TEXT = "word " * 800


def claude_code(file: TextIO, count: int) -> None:
    for number in range(0, count, 2):
        pair = Transcript().user(f"u{number}", f"{number} {TEXT}", parentUuid=f"a{number - 2}")
        pair.assistant(f"a{number}", f"m{number}", text(f"{number} {TEXT}"))
        file.writelines(json.dumps(line | {"timestamp": None}) + "\n" for line in pair.lines)


def codex(file: TextIO, count: int) -> None:
    file.write(json.dumps(wrapped(META)[0]) + "\n")
    for number in range(0, count, 2):
        lines = [user(f"{number} {TEXT}"), said(f"{number} {TEXT}")]
        file.writelines(json.dumps({"type": kind, "payload": payload}) + "\n" for kind, payload in lines)


def chatgpt(file: TextIO, count: int) -> None:
    file.write("[")
    for number in range(0, count, 2):
        question = node("u", None, "user", parts(f"{number} {TEXT}"))
        reply = node("a", "u", "assistant", parts(f"{number} {TEXT}"))
        found = conversation(question, reply, current="a", conversation_id=f"c{number}")
        file.write(", " * (number > 0) + json.dumps(found))
    file.write("]")


def peak_of_reading(path: Path) -> int:
    """The most memory, in bytes, that Python held at once while the file was read; what stores hold is their matter."""
    with Source(str(path)) as source:
        tracemalloc.start()
        try:
            Importer(source, datetime(2026, 1, 1, tzinfo=UTC)).check()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


@pytest.mark.slow  # under load, as every allocation is traced
@pytest.mark.parametrize("write", [claude_code, codex, chatgpt])
def test_memory_does_not_grow_with_what_is_said(write: Callable[[TextIO, int], None], tmp_path: Path) -> None:
    peaks: list[int] = []
    for count in (400, 1_200):
        path = tmp_path / f"{count}.json"
        with path.open("w", encoding="utf-8") as file:
            write(file, count)
        peaks.append(peak_of_reading(path))
    grown = (tmp_path / "1200.json").stat().st_size - (tmp_path / "400.json").stat().st_size
    assert grown > 2_000_000
    assert peaks[1] - peaks[0] < grown / 10, peaks
