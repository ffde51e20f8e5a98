"""``backup`` of a file that is written to, and ``doctor``."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conversations import TRIP, user
from tests.cli.running import CommandLine
from turnlog.cli import sqlite_file
from turnlog.log.events import SessionEvent
from turnlog.log.messages import UserMessage
from turnlog.storage.opening import open_store

FileOf = Callable[..., Path]


@pytest.fixture
def trip(turnlog: CommandLine, file_of: FileOf) -> CommandLine:
    """A store with the session ``chat``."""
    turnlog.ok("import", file_of(*TRIP))
    return turnlog


def test_a_backup_is_a_store_with_the_same_sessions(trip: CommandLine, tmp_path: Path) -> None:
    target = tmp_path / "backup.db"
    assert trip.ok("backup", target).out == f"{target}: {target.stat().st_size:,} bytes, checked\n"
    assert trip.ok("export", "--store", target).out == trip.ok("export").out
    assert sorted(path.name for path in tmp_path.glob("*backup*")) == ["backup.db"] or not list(
        tmp_path.glob(".*partial*")
    )


def test_a_backup_while_others_write_is_whole_and_makes_them_wait_for_nothing(
    trip: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy is of one moment, though every step of it is followed by a write of another connection."""
    monkeypatch.setattr(sqlite_file, "_PAGES_AT_ONCE", 1)
    steps = 0
    with open_store(str(trip.store)) as repository:

        def write(_done: int, _total: int) -> None:
            nonlocal steps
            steps += 1
            if steps <= 30:
                repository.append("chat", [SessionEvent(session_id="chat", message=UserMessage(f"{steps} " * 900))])

        sqlite_file.copy_live(trip.store, tmp_path / "backup.db", write, overwrite=False)
    assert steps > 10
    lines = trip.ok("show", "chat", "--json", "--store", tmp_path / "backup.db").json_lines()
    assert [line["position"] for line in lines] == list(range(1, len(TRIP) + 1))
    assert len(trip.ok("show", "chat", "--json").json_lines()) == len(TRIP) + min(steps, 30)


def test_a_backup_beside_a_writing_thread(trip: CommandLine, tmp_path: Path) -> None:
    stop = threading.Event()
    with open_store(str(trip.store)) as repository:

        def write() -> None:
            while not stop.is_set():
                repository.append("chat", [SessionEvent(session_id="chat", message=UserMessage("x" * 3000))])

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for number in range(3):
                trip.ok("backup", tmp_path / f"{number}.db")
        finally:
            stop.set()
            writer.join()
    for number in range(3):
        assert trip.ok("doctor", "--store", tmp_path / f"{number}.db", "--json").json_lines()[0]["problems"] == []


def test_a_backup_replaces_nothing_unless_told_to(trip: CommandLine, tmp_path: Path) -> None:
    target = tmp_path / "backup.db"
    target.write_text("precious")
    assert "--overwrite" in trip.fails(2, "backup", target)
    assert target.read_text() == "precious"
    trip.ok("backup", target, "--overwrite")
    assert "is the store itself" in trip.fails(2, "backup", trip.store, "--overwrite")
    assert "is a folder" in trip.fails(2, "backup", tmp_path)
    assert "no folder" in trip.fails(6, "backup", tmp_path / "no" / "backup.db")
    with open_store(str(target)):
        assert "is in use" in trip.fails(2, "backup", target, "--overwrite")


def test_a_damaged_store_is_not_backed_up_as_if_it_were_sound(trip: CommandLine, tmp_path: Path) -> None:
    damage(trip.store)
    target = tmp_path / "backup.db"
    trip.fails(7, "backup", target)
    assert not target.exists()


def test_only_a_file_is_backed_up(trip: CommandLine, tmp_path: Path) -> None:
    trip.fails(2, "backup", tmp_path / "x.db", "--store", "memory:")
    trip.fails(6, "backup", tmp_path / "x.db", "--store", tmp_path / "nowhere.db")


def test_doctor_says_what_is_guaranteed_and_that_all_is_sound(trip: CommandLine) -> None:
    """R-15: durability, settings, known engine faults; schema and integrity."""
    out = trip.ok("doctor").out
    for line in (
        f"store         {trip.store}",
        "schema        1",
        f"sqlite        {sqlite3.sqlite_version}",
        "journal_mode  wal",
        "synchronous   FULL",
        "  power loss     acknowledged appends survive",
        "read          1 sessions, 8 events",
        "sound         yes",
    ):
        assert line in out.splitlines()
    (report,) = trip.ok("doctor", "--json").json_lines()
    assert report["durability"]["survives_power_loss"] is True
    assert (report["sessions"], report["events"], report["problems"]) == (1, 8, [])
    assert "sound" not in trip.ok("doctor", "--quick").out


def test_doctor_tells_settings_that_are_less_durable(trip: CommandLine) -> None:
    out = trip.ok("doctor", "--store", f"sqlite:{trip.store}?synchronous=NORMAL").out
    assert "  power loss     the last appends may be lost" in out.splitlines()


def damage(path: Path) -> None:
    """Overwrite the cells of a page in the middle of the file."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'event'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size + 8)
        file.write(b"\xff" * 64)


def test_doctor_finds_damaged_pages(trip: CommandLine) -> None:
    damage(trip.store)
    ran = trip.run("doctor")
    assert ran.code == 7
    assert "Traceback" not in ran.err


STATEMENTS = {
    "an event that is gone": ("DELETE FROM event WHERE position = 4", "chat"),
    "a body that is no JSON": ("UPDATE event SET body = x'00ff' WHERE position = 3", "event 3"),
    "a version that is behind": ("UPDATE session SET version = 7", "chat"),
    "a row without its session": (
        "INSERT INTO session_document (session_key, format, body) VALUES (999, 0, x'7b7d')",
        "table session_document has no session",
    ),
}


@pytest.mark.parametrize("fault", STATEMENTS)
def test_doctor_finds_what_contradicts_itself(trip: CommandLine, fault: str) -> None:
    """R-10, R-14: named by session and position, exit code 7."""
    statement, place = STATEMENTS[fault]
    with sqlite3.connect(trip.store) as connection:
        connection.execute(statement)
    connection.close()
    ran = trip.run("doctor")
    assert ran.code == 7, ran.out
    problems = [line for line in ran.out.splitlines() if line.startswith("problem")]
    assert any(place in line for line in problems), ran.out
    assert "sound         NO" in ran.out


def test_doctor_goes_on_behind_a_damaged_session(trip: CommandLine, file_of: FileOf) -> None:
    trip.ok("import", file_of([user("x")], name="other.json"))
    with sqlite3.connect(trip.store) as connection:
        connection.execute("UPDATE event SET body = x'00ff' WHERE position = 3")
    connection.close()
    (report,) = trip.run("doctor", "--json").json_lines()
    assert (report["sessions"], report["events"], len(report["problems"])) == (2, 1, 1)


def test_doctor_of_a_store_in_memory(turnlog: CommandLine) -> None:
    assert (
        "not known" in turnlog.ok("doctor", "--store", "memory:").out
        or "lost" in turnlog.ok("doctor", "--store", "memory:").out
    )


def test_a_backup_is_as_private_as_the_store_and_replaces_nothing_but_files(trip: CommandLine, tmp_path: Path) -> None:
    trip.store.chmod(0o600)
    trip.ok("backup", tmp_path / "backup.db")
    assert (tmp_path / "backup.db").stat().st_mode & 0o777 == 0o600
    pipe, link = tmp_path / "pipe", tmp_path / "link.db"
    os.mkfifo(pipe)
    assert "no file that a copy could replace" in trip.fails(2, "backup", pipe, "--overwrite")
    assert pipe.is_fifo()
    link.symlink_to(tmp_path / "backup.db")
    trip.ok("backup", link, "--overwrite")
    assert link.is_symlink()


def test_no_password_is_told_of_a_store_that_is_no_file(trip: CommandLine, tmp_path: Path) -> None:
    told = trip.fails(2, "backup", tmp_path / "x.db", "--store", "postgresql://me:secret@db/chats")
    assert "postgresql://db/chats is no SQLite file" in told


@pytest.mark.parametrize("since", [-1, 2])
def test_there_are_no_steps_behind_a_schema_that_is_none(turnlog: CommandLine, since: int) -> None:
    ran = turnlog.run("migrate", "sql", "--from", since)
    assert (ran.code, ran.out) == (2, "")
