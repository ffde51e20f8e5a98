"""Whatever a command is pointed at: a clear line, a documented exit code, no traceback, and the file as it was."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conversations import TRIP
from tests.cli.running import CommandLine

FileOf = Callable[..., Path]

#: Each command, as it is called on the session ``chat``.
COMMANDS = {
    "sessions": ["sessions"],
    "show": ["show", "chat"],
    "expand": ["expand", "chat", "1"],
    "search": ["search", "chat", "rome"],
    "export": ["export", "chat"],
    "fork": ["fork", "chat", "copy"],
    "rewind": ["rewind", "chat", "1"],
    "clear": ["clear", "chat"],
    "delete": ["delete", "chat", "--yes"],
    "sweep": ["sweep"],
    "doctor": ["doctor"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_store_that_is_not_there(turnlog: CommandLine, command: str) -> None:
    assert "there is no store at" in turnlog.fails(6, *COMMANDS[command])
    assert not turnlog.store.exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_is_no_database(turnlog: CommandLine, command: str) -> None:
    turnlog.store.write_bytes(b"Dear diary, " * 1000)
    assert "was not touched" in turnlog.fails(7, *COMMANDS[command])
    assert turnlog.store.read_bytes() == b"Dear diary, " * 1000


@pytest.mark.parametrize("command", COMMANDS)
def test_a_database_of_another_program(turnlog: CommandLine, command: str) -> None:
    with sqlite3.connect(turnlog.store) as connection:
        connection.execute("CREATE TABLE recipe (name TEXT)")
    connection.close()
    before = turnlog.store.read_bytes()
    assert "another program" in turnlog.fails(7, *COMMANDS[command])
    assert turnlog.store.read_bytes() == before


@pytest.mark.parametrize("command", COMMANDS)
def test_a_newer_schema(turnlog: CommandLine, file_of: FileOf, command: str) -> None:
    """R-13: the error says what to do."""
    turnlog.ok("import", file_of(*TRIP))
    with sqlite3.connect(turnlog.store) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    assert "upgrade turnlog" in turnlog.fails(7, *COMMANDS[command])


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kept", [100, 4096, 20_000])
def test_a_database_that_was_cut_off(turnlog: CommandLine, file_of: FileOf, command: str, kept: int) -> None:
    """What can still be read may be read; what cannot is an error, never an answer that is silently empty."""
    turnlog.ok("import", file_of(*TRIP))
    data = turnlog.store.read_bytes()
    assert len(data) > 20_000
    for side in ("-wal", "-shm"):
        turnlog.store.with_name(turnlog.store.name + side).unlink(missing_ok=True)
    turnlog.store.write_bytes(data[:kept])
    assert "damaged" in turnlog.fails(7, *COMMANDS[command]) or command == "doctor"


def no_place_for(tmp_path: Path) -> Path:
    """A folder in which this user cannot make a file; root can nearly everywhere."""
    if os.name == "posix" and os.geteuid() == 0:
        return Path("/proc")
    folder = tmp_path / "sealed"
    folder.mkdir(mode=0o500)
    return folder


def test_a_place_where_nothing_can_be_written(turnlog: CommandLine, file_of: FileOf, tmp_path: Path) -> None:
    place = no_place_for(tmp_path)
    turnlog.ok("import", file_of(*TRIP))
    turnlog.fails(6, "import", file_of(*TRIP), "--store", place / "new.db")
    turnlog.fails(6, "backup", place / "backup.db")
    turnlog.fails(6, "export", "-o", place / "export.jsonl")


def test_a_folder_in_place_of_a_file(turnlog: CommandLine, file_of: FileOf, tmp_path: Path) -> None:
    turnlog.fails(6, "sessions", "--store", tmp_path)
    turnlog.fails(6, "import", file_of(*TRIP), "--store", tmp_path)
    turnlog.fails(6, "import", file_of(*TRIP), "--store", tmp_path / "no" / "folder.db")


@pytest.mark.parametrize(
    "url",
    [
        "mongodb://x",
        "sqlite:",
        "sqlite:a.db?color=red",
        "sqlite:a.db?busy_timeout=x",
        "sqlite:a.db?unsafe=y",
        "sqlite://h/a.db",
        "a\0b",
    ],
)
def test_a_url_that_names_no_store(turnlog: CommandLine, file_of: FileOf, url: str) -> None:
    turnlog.fails(2, "sessions", "--store", url)
    turnlog.fails(2, "import", file_of(*TRIP), "--store", url)


def test_a_store_that_another_process_keeps_locked(turnlog: CommandLine, file_of: FileOf) -> None:
    turnlog.ok("import", file_of(*TRIP))
    other = sqlite3.connect(turnlog.store, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        url = f"sqlite:{turnlog.store}?busy_timeout=0"
        assert "locked" in turnlog.fails(5, "clear", "chat", "--store", url)
        assert turnlog.ok("show", "chat", "--store", url).out  # a read waits for no writer
    finally:
        other.close()
