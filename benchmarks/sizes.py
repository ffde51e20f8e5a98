"""Imports, memory, bytes on disk, and what ``import turnlog`` takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks.floor import Floor
from benchmarks.lab import ROUNDS, Result, Scale, folder
from benchmarks.traffic import messages
from turnlog.formats.openai_chat import render_message

_MESSAGES_EACH = 20
_MEGABYTE = 1_000_000


def results(scale: Scale) -> Iterator[Result]:
    """A row each."""
    yield _import(scale)
    yield from _memory(scale)
    yield _disk(scale)
    yield _start()


def write_conversations(path: Path, count: int = 0, *, megabytes: float = 0) -> int:
    """A JSON Lines file of conversations in OpenAI's form, by number of messages or by size; returns their number."""
    source = messages(11)
    written = 0
    with path.open("w", encoding="utf-8") as file:
        while written * _MESSAGES_EACH < count or file.tell() < megabytes * _MEGABYTE:
            chat = [sent for _ in range(_MESSAGES_EACH) for sent in render_message(next(source))]
            file.write(json.dumps({"id": f"chat-{written}", "messages": chat}, ensure_ascii=False) + "\n")
            written += 1
    return written


def _import(scale: Scale) -> Result:
    """The whole command, its start and its two passes included, against reading the file and ``executemany``."""
    ratios = []
    with folder() as place:
        source = place / "chats.jsonl"
        write_conversations(source, scale.imported)
        for number in range(3):
            ours = _seconds(_turnlog("import", str(source), "--store", str(place / f"ours-{number}.db")))
            begin = time.perf_counter()
            floor = Floor(place / f"floor-{number}.db")
            with source.open(encoding="utf-8") as lines:
                for line in lines:
                    chat = json.loads(line)
                    floor.fill(floor.create(chat["id"]), chat["messages"])
            floor.close()
            ratios.append(ours / (time.perf_counter() - begin))
    return Result(f"import of {scale.imported:,} messages ÷ executemany per conversation", median(ratios), 4.0)


def _memory(scale: Scale) -> Iterator[Result]:
    """Peak memory of the command on a small file, and how much more on one twenty times as large."""
    sizes = (10, 200) if scale.name == "full" else (1, 20)
    peaks = []
    with folder() as place:
        for megabytes in sizes:
            source = place / f"{megabytes}.jsonl"
            write_conversations(source, megabytes=megabytes)
            peaks.append(_peak(_turnlog("import", str(source), "--store", str(place / f"{megabytes}.db"))))
    name = f"memory of an import, growth from {sizes[0]} MB to {sizes[1]} MB, in MB"
    yield Result(name, (peaks[1] - peaks[0]) / 1_000, 50.0, note=f"{peaks[0] / 1_000:.0f} MB to begin with")


def _disk(scale: Scale) -> Result:
    with folder() as place:
        source, store, exported = place / "chats.jsonl", place / "ours.db", place / "export.jsonl"
        write_conversations(source, min(scale.imported, 20_000))
        _seconds(_turnlog("import", str(source), "--store", str(store)))
        _seconds(_turnlog("export", "--output", str(exported), "--store", str(store)))
        files = (store, store.with_name("ours.db-wal"))
        size = sum(path.stat().st_size for path in files if path.exists())
        return Result("bytes on disk ÷ JSON Lines export", size / exported.stat().st_size, 1.4)


def _start() -> Result:
    ours, floor = [], []
    for _ in range(ROUNDS * 3):
        ours.append(_seconds([sys.executable, "-c", "import turnlog"]))
        floor.append(_seconds([sys.executable, "-c", "import msgspec, sqlite3, asyncio"]))
    bare = median(_seconds([sys.executable, "-c", "pass"]) for _ in range(ROUNDS * 3))
    note = "the interpreter's own start subtracted"
    return Result(
        "import turnlog ÷ import msgspec, sqlite3, asyncio",
        (median(ours) - bare) / (median(floor) - bare),
        1.5,
        note=note,
    )


def _turnlog(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "turnlog.cli.main", *arguments]


def _seconds(command: Sequence[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own interpreter
    return time.perf_counter() - begin


def _peak(command: Sequence[str]) -> float:
    """Peak resident memory of a command, in kilobytes."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 - the same
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return float(usage.ru_maxrss)
