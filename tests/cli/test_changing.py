"""``fork``, ``rewind``, ``clear``, ``delete`` and ``sweep``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cli.conversations import TRIP
from tests.cli.running import CommandLine
from turnlog.log.session import Session
from turnlog.storage.opening import open_store

FileOf = Callable[..., Path]


@pytest.fixture
def trip(turnlog: CommandLine, file_of: FileOf) -> CommandLine:
    """A store with the session ``chat``."""
    turnlog.ok("import", file_of(*TRIP))
    return turnlog


def positions(turnlog: CommandLine, session: str, *options: str) -> list[int]:
    return [line["position"] for line in turnlog.ok("show", session, "--json", *options).json_lines()]


def test_fork_copies_up_to_a_version(trip: CommandLine) -> None:
    """A-5: a version inside a batch counts as the one before it."""
    assert trip.ok("fork", "chat", "copy", "--at", 4).out == "copy: 2 events from chat\n"
    assert positions(trip, "copy") == [1, 2]
    assert trip.ok("fork", "chat").out.endswith(": 8 events from chat\n")
    trip.fails(4, "fork", "chat", "copy")
    trip.fails(3, "fork", "nobody", "new")
    trip.fails(3, "fork", "chat", "new", "--at", 99)
    trip.fails(2, "fork", "chat", "bad\nname")


def test_rewind_and_clear_change_the_view_and_say_how_to_undo_it(trip: CommandLine) -> None:
    """A-5: nothing is deleted."""
    assert trip.ok("rewind", "chat", 6).out == "chat: rewound, version 9; to undo it: rewind to 8\n"
    assert positions(trip, "chat", "--view") == [1, 2, 3, 4, 5, 6]
    assert trip.ok("clear", "chat").out == "chat: cleared, version 10; to undo it: rewind to 9\n"
    assert positions(trip, "chat", "--view") == [1]
    trip.ok("rewind", "chat", 8)
    assert positions(trip, "chat", "--view") == [1, 2, 3, 4, 5, 6, 7, 8]
    assert positions(trip, "chat") == list(range(1, 12))
    trip.fails(3, "rewind", "chat", 99)
    trip.fails(3, "rewind", "nobody", 1)
    trip.fails(3, "clear", "nobody")


def test_delete_asks_or_is_told_not_to(trip: CommandLine) -> None:
    trip.ok("fork", "chat", "copy")
    assert "--yes" in trip.fails(2, "delete", "copy")
    trip.fails(3, "delete", "copy", "nobody", "--yes")
    assert positions(trip, "copy")
    assert trip.ok("delete", "copy", "--yes").out == "copy: deleted\n"
    trip.fails(3, "show", "copy")
    assert positions(trip, "chat")


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_delete_goes_by_the_answer(trip: CommandLine, monkeypatch: pytest.MonkeyPatch, answer: str, code: int) -> None:
    monkeypatch.setattr("turnlog.cli.changing.is_asked_at_a_terminal", lambda: True)
    ran = trip.run("delete", "chat", stdin=answer.encode())
    assert ran.code == code
    assert "Remove chat for good?" in ran.err
    assert trip.run("show", "chat").code == (3 if code == 0 else 0)


def test_sweep_frees_what_has_expired(trip: CommandLine) -> None:
    """R-7: expired sessions are gone for readers already."""
    now = datetime.now(UTC)
    with open_store(str(trip.store)) as repository:
        for number in range(3):
            born = now - timedelta(days=2)
            repository.create(Session(id=f"old{number}", created_at=born, expires_at=now + timedelta(milliseconds=1)))
        while datetime.now(UTC) <= now + timedelta(milliseconds=1):
            pass
    assert trip.ok("sweep", "--before", "2020-01-01T00:00:00Z").out == "0 expired sessions removed\n"
    assert trip.ok("sweep").out == "3 expired sessions removed\n"
    (line,) = trip.ok("sweep", "--json").json_lines()
    assert line["removed"] == 0
    assert positions(trip, "chat")


def test_sweep_goes_on_until_it_is_stopped(trip: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("turnlog.cli.changing.time.sleep", sleep)
    ran = trip.run("sweep", "--every", "1h30m", "--json")
    assert (ran.code, ran.err) == (130, "sweeping every 1:30:00; stop with Ctrl-C\nturnlog: interrupted\n")
    assert len(ran.json_lines()) == 3
    assert pauses == [5400.0] * 3


@pytest.mark.parametrize("every", ["0", "-1", "soon", "", "1x", "9" * 40 + "d", "nan"])
def test_a_distance_that_is_no_duration_is_refused(trip: CommandLine, every: str) -> None:
    assert "is no duration" in trip.fails(2, "sweep", f"--every={every}")
