"""Imports, memory, bytes on disk, and what ``import turnlog`` takes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks.floor import Floor, Row, bodies
from benchmarks.lab import ROUNDS, Result, Scale, folder
from benchmarks.traffic import events, repeated
from turnlog import SessionEvent, open_store
from turnlog.formats.openai_chat import render_message
from turnlog.testing.factories import session

_MESSAGES_EACH = 20
_MEGABYTE = 1_000_000
_IMPORTED = "messages ÷ executemany committed per conversation"


def results(scale: Scale) -> Iterator[Result]:
    """A row each."""
    yield from _import(scale)
    yield _memory(scale)
    yield _disk(scale)
    yield _start(scale)


def write_conversations(path: Path, count: int = 0, *, megabytes: float = 0) -> int:
    """A JSON Lines file of conversations in OpenAI's form, by number of messages or by size; returns their number."""
    source = repeated(11)
    written = 0
    with path.open("w", encoding="utf-8") as file:
        while written * _MESSAGES_EACH < count or file.tell() < megabytes * _MEGABYTE:
            chat = [sent for _ in range(_MESSAGES_EACH) for sent in render_message(next(source))]
            file.write(json.dumps({"id": f"chat-{written}", "messages": chat}, ensure_ascii=False) + "\n")
            written += 1
    return written


def _import(scale: Scale) -> Iterator[Result]:
    """``restore``, and the whole command with its start, its parsing and its two passes, against rows made before."""
    restored: list[float] = []
    commanded: list[float] = []
    with folder() as place:
        source = place / "chats.jsonl"
        chats = write_conversations(source, scale.imported)
        logs = {f"chat-{number}": events(f"chat-{number}", _MESSAGES_EACH, seed=11) for number in range(chats)}
        rows = {name: _rows(log) for name, log in logs.items()}
        for number in range(3):
            by_hand = _timed_floor(place / f"floor-{number}.db", rows)
            restored.append(_timed_restore(place / f"restored-{number}.db", logs) / by_hand)
            by_hand = min(by_hand, _timed_floor(place / f"again-{number}.db", rows))
            command = _turnlog("import", str(source), "--store", str(place / f"ours-{number}.db"))
            commanded.append(_seconds(command) / by_hand)
            for path in place.glob("*.db*"):
                path.unlink()
    yield Result(f"restore of {scale.imported:,} {_IMPORTED}", median(restored), 4.0)
    yield Result(f"`turnlog import` of {scale.imported:,} {_IMPORTED}", median(commanded), 4.0)


def _rows(log: list[SessionEvent]) -> list[Row]:
    made: list[Row] = []
    for position, (event, body) in enumerate(zip(log, bodies(log), strict=True), 1):
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        made.append((0, position, bytes.fromhex(event.id.replace("-", "")), time.time_ns() // 1_000, 4, position, data))
    return made


def _timed_floor(path: Path, rows: dict[str, list[Row]]) -> float:
    floor = Floor(path)
    begin = time.perf_counter()
    floor.import_rows(rows.items())
    taken = time.perf_counter() - begin
    floor.close()
    return taken


def _timed_restore(path: Path, logs: dict[str, list[SessionEvent]]) -> float:
    with open_store(str(path)) as store:
        begin = time.perf_counter()
        for name, log in logs.items():
            store.restore(session(name), ([event] for event in log))
        return time.perf_counter() - begin


def _memory(scale: Scale) -> Result:
    """How much more peak memory the command takes on a file that is many times as large."""
    peaks: list[float] = []
    with folder() as place:
        for megabytes in scale.megabytes:
            source = place / f"{megabytes}.jsonl"
            write_conversations(source, megabytes=megabytes)
            peaks.append(_peak(_turnlog("import", str(source), "--store", str(place / f"{megabytes}.db"))))
    small, large = scale.megabytes
    name = f"MB of memory more to import {large} MB than {small} MB"
    return Result(name, peaks[1] - peaks[0], 50.0, note=f"{peaks[0]:.0f} MB for {small} MB")


def _disk(scale: Scale) -> Result:
    with folder() as place:
        source, store, exported = place / "chats.jsonl", place / "ours.db", place / "export.jsonl"
        write_conversations(source, min(scale.imported, 20_000))
        _seconds(_turnlog("import", str(source), "--store", str(store)))
        _seconds(_turnlog("export", "--output", str(exported), "--store", str(store)))
        size = sum(path.stat().st_size for path in place.glob("ours.db*"))
        note = f"{size / _events_in(exported):,.0f} bytes a message"
        return Result("bytes on disk ÷ JSON Lines export", size / exported.stat().st_size, 1.4, note=note)


def _events_in(exported: Path) -> int:
    """How many events an export holds."""
    with exported.open("rb") as lines:
        return sum(line.startswith(b'{"position"') for line in lines)


def _start(scale: Scale) -> Result:
    """In CPU time, which other programs disturb less."""

    def ours() -> float:
        return _import_seconds("turnlog")

    def floor() -> float:
        return _import_seconds("msgspec, sqlite3, asyncio")

    ours()
    floor()
    ratios = [ours() / floor() for _ in range(ROUNDS * scale.visits // 2 + 1)]
    return Result("import turnlog ÷ import msgspec, sqlite3, asyncio", median(ratios), 1.5)


def _import_seconds(modules: str) -> float:
    program = f"import time\nbegin = time.process_time()\nimport {modules}\nprint(time.process_time() - begin)"
    told = subprocess.run([sys.executable, "-E", "-c", program], check=True, capture_output=True)  # noqa: S603 - our own interpreter
    return float(told.stdout)


# -E: a variable that forbids to write bytecode would have every command compile anew.
def _turnlog(*arguments: str) -> list[str]:
    return [sys.executable, "-E", "-m", "turnlog.cli.main", *arguments]


def _seconds(command: Sequence[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - the same
    return time.perf_counter() - begin


#: Linux counts what a process was before it became the command, so the command is started by a small process.
_PEAK_OF_CHILD = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def _peak(command: Sequence[str]) -> float:
    """Peak resident memory of a command, in megabytes."""
    told = subprocess.run([sys.executable, "-c", _PEAK_OF_CHILD, *command], check=True, capture_output=True)  # noqa: S603 - the same
    return int(told.stdout) / 1_000
