"""``turnlog export``: what goes out comes in again, event by event (O-5)."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given

from tests.cli.conversations import TRIP, user
from tests.cli.running import CommandLine
from turnlog.cli.importing.importer import Importer
from turnlog.cli.importing.sources import Source
from turnlog.formats import portable
from turnlog.log.events import SessionEvent
from turnlog.log.session import Session
from turnlog.storage.opening import open_store
from turnlog.testing.strategies import batches

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

FileOf = Callable[..., Path]


@given(batches("s"))
def test_every_log_goes_out_and_comes_in_with_its_batches(log: list[list[SessionEvent]]) -> None:
    session = Session(id="s", created_at=NOON, metadata={"k": "\ud800"})
    with open_store("memory:") as first, open_store("memory:") as second, TemporaryDirectory() as folder:
        first.restore(session, log)
        path = Path(folder) / "log.jsonl"
        path.write_bytes(b"".join(portable.write(session, first.version("s"), first.iter_batches("s"))))
        for expected in (sum(map(len, log)), 0):
            with Source(str(path)) as source:
                importer = Importer(source, NOON)
                importer.check()
                assert importer.write(second).new_events == expected
        assert second.find("s") == session
        assert list(second.iter_batches("s")) == list(first.iter_batches("s"))
        assert repr(second.events("s")) == repr(first.events("s"))


@pytest.fixture
def trip(turnlog: CommandLine, file_of: FileOf) -> CommandLine:
    """A store with one session ``chat`` that was rewound, and one ``other``."""
    turnlog.ok("import", file_of(*TRIP), "--principal", "ada")
    turnlog.ok("import", file_of({"id": "other", "messages": [user("\ud83d and 😀\x9b")]}, name="b.jsonl"))
    turnlog.ok("rewind", "chat", 6)
    return turnlog


def test_export_and_import_give_the_same_store(trip: CommandLine, tmp_path: Path) -> None:
    target = tmp_path / "all.jsonl"
    assert trip.ok("export", "-o", target).err == f"2 sessions written to {target}\n"
    trip.ok("import", target, "--store", tmp_path / "copy.db")
    assert trip.ok("export", "--store", tmp_path / "copy.db").out == target.read_text("utf-8")
    assert "0 new events; 10 events were there already" in trip.ok("import", target).out


def test_what_is_exported_is_chosen_by_id_or_owner(trip: CommandLine) -> None:
    def sessions(*arguments: str) -> list[str]:
        lines = trip.ok("export", *arguments).json_lines()
        return [line["session"]["id"] for line in lines if "session" in line]

    assert sessions() == ["chat", "other"]
    assert sessions("other") == ["other"]
    assert sessions("--principal", "ada") == ["chat"]
    assert sessions("--principal", "nobody") == []
    trip.fails(2, "export", "other", "--principal", "ada")


def test_an_unknown_session_is_an_error_before_anything_is_written(trip: CommandLine, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    assert "nobody" in trip.fails(3, "export", "chat", "nobody", "-o", target)
    assert list(tmp_path.glob("*out.jsonl*")) == []


def test_a_gzipped_file_is_the_same_at_each_export(trip: CommandLine, tmp_path: Path) -> None:
    targets = [tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl.gz"]
    for target in targets:
        trip.ok("export", "-o", target)
    first, second = (target.read_bytes() for target in targets)
    assert first == second
    assert gzip.decompress(first).decode() == trip.ok("export").out


def test_openai_messages_go_out_and_come_in(trip: CommandLine, tmp_path: Path) -> None:
    target = tmp_path / "openai.jsonl"
    trip.ok("export", "chat", "--format", "openai-chat", "-o", target)
    (line,) = [json.loads(text) for text in target.read_text("utf-8").splitlines()]
    assert line["id"] == "chat"
    assert line["messages"] == TRIP
    assert "0 new events; 8 events were there already" in trip.ok("import", target).out


def test_the_view_alone_can_go_out_as_openai_messages(trip: CommandLine) -> None:
    (line,) = trip.ok("export", "chat", "--format", "openai-chat", "--view").json_lines()
    assert line["messages"] == TRIP[:6]
    trip.fails(2, "export", "chat", "--view")


def test_lone_surrogates_go_out_as_json_escapes(trip: CommandLine) -> None:
    (line,) = trip.ok("export", "other", "--format", "openai-chat").json_lines()
    assert line["messages"] == [user("\ud83d and 😀\x9b")]


def test_a_place_that_cannot_be_written_is_an_error(trip: CommandLine, tmp_path: Path) -> None:
    assert "there is no folder" in trip.fails(6, "export", "-o", tmp_path / "no" / "folder.jsonl")


def test_prefix_and_owner_apply_to_turnlogs_own_files_too(trip: CommandLine, tmp_path: Path) -> None:
    target = tmp_path / "all.jsonl"
    trip.ok("export", "chat", "-o", target)
    trip.ok("import", target, "--session-prefix", "x/", "--principal", "bob")
    (session,) = trip.ok("sessions", "--principal", "bob", "--json").json_lines()
    assert (session["id"], session["version"]) == ("x/chat", 9)


def export_lines(trip: CommandLine) -> list[str]:
    return trip.ok("export").out.splitlines(keepends=True)


Change = Callable[[list[str]], list[str]]

#: Damage to the lines of an export, and what is said about it.
DAMAGE: list[tuple[Change, str]] = [
    (lambda lines: [*lines[:5], lines[5][:40] + "\n", *lines[6:]], ":6: "),
    (lambda lines: lines[:-1], ": cut short"),
    (lambda lines: [*lines[:3], *lines[4:]], ":4: event 4 follows event 2"),
    (lambda lines: [*lines[:3], lines[4], lines[3], *lines[5:]], ":4: event 4 follows event 2"),
    (lambda lines: [lines[0], *lines], ":1: cut short: 0 of 9 events"),
    (lambda lines: lines + lines, ":13: session 'chat' stands in line 1 already"),
    (lambda lines: [lines[0].replace('"turnlog":1', '"turnlog":9'), *lines[1:]], ":1: layout 9"),
    (lambda lines: [*lines[:9], lines[9].replace("[1,6]", "[1,66]"), *lines[10:]], ":10: a boundary at position 9"),
]


@pytest.mark.parametrize(("change", "place"), DAMAGE)
def test_a_damaged_file_is_refused_with_its_line_and_nothing_is_written(
    trip: CommandLine, tmp_path: Path, change: Change, place: str
) -> None:
    path = tmp_path / "damaged.jsonl"
    path.write_text("".join(change(export_lines(trip))), "utf-8")
    target = tmp_path / "new.db"
    assert place in trip.fails(8, "import", path, "--store", target)
    assert not target.exists()


def test_damaged_sessions_are_skipped_when_asked(trip: CommandLine, tmp_path: Path) -> None:
    lines = export_lines(trip)
    path = tmp_path / "damaged.jsonl"
    path.write_text("".join([*lines[:3], "broken\n", *lines[4:]]), "utf-8")
    ran = trip.ok("import", path, "--store", tmp_path / "new.db", "--skip-invalid")
    assert f"skipped {path}:4: " in ran.err
    assert "1 new sessions, 1 new events" in ran.out


def test_a_session_that_has_expired_since_is_left_out_and_named(turnlog: CommandLine, tmp_path: Path) -> None:
    """R-7: an expired session is gone at once."""
    old = Session(id="old", created_at=NOON - timedelta(days=99999), expires_at=NOON - timedelta(days=99998))
    path = tmp_path / "old.jsonl"
    path.write_bytes(b"".join(portable.write(old, 0, [])))
    ran = turnlog.ok("import", path)
    assert "skipped session 'old': it has expired" in ran.err
    assert turnlog.ok("sessions").out == ""


def test_a_session_that_is_named_twice_goes_out_once(trip: CommandLine, file_of: FileOf, tmp_path: Path) -> None:
    """A file that holds it twice could not be imported."""
    out = trip.ok("export", "chat", "other", "chat").out
    trip.ok("import", file_of(text=out, name="again.jsonl"), "--store", tmp_path / "copy.db")
    assert out == trip.ok("export", "chat", "other").out


def test_what_is_no_file_is_written_to_and_not_replaced(trip: CommandLine, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR)
    try:
        trip.ok("export", "-o", pipe)
        assert pipe.is_fifo()
        assert os.read(reader, 1 << 16).decode("utf-8") == trip.ok("export").out
    finally:
        os.close(reader)
    assert trip.ok("export", "-o", "/dev/stdout").out == trip.ok("export").out


def test_a_link_is_followed_and_a_private_file_stays_private(trip: CommandLine, tmp_path: Path) -> None:
    private, link = tmp_path / "private.jsonl", tmp_path / "link.jsonl"
    private.touch(0o600)
    link.symlink_to(private)
    trip.ok("export", "-o", link)
    assert link.is_symlink()
    assert private.read_text("utf-8") == trip.ok("export").out
    assert private.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("output", ["", "."])
def test_a_folder_is_no_file_to_write(trip: CommandLine, output: str) -> None:
    assert "is a folder: name the file to write" in trip.fails(2, "export", "-o", output)
