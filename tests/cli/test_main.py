"""The entry point: what is missing is explained, and every ending has its exit code."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conversations import TRIP, user
from tests.cli.running import CommandLine

FileOf = Callable[..., Path]


def environment(turnlog: CommandLine, **more: str) -> dict[str, str]:
    return {**os.environ, "TURNLOG_STORE": str(turnlog.store), "COLUMNS": "80", **more}


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "turnlog.cli.main", *map(str, arguments)]


def test_the_console_script_runs(turnlog: CommandLine, file_of: FileOf) -> None:
    script = Path(sys.executable).with_name("turnlog")
    path = file_of(*TRIP)
    ran = subprocess.run([script, "import", path], env=environment(turnlog), capture_output=True, text=True, check=True)
    assert ran.stdout == f"{path}: 1 new sessions, 8 new events; 0 events were there already\n"


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_a_missing_extra_is_named_with_the_line_that_installs_it(
    turnlog: CommandLine, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == package or name.startswith("turnlog.cli.")]:
        if name != "turnlog.cli.main":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    assert turnlog.fails(10, "sessions") == f"turnlog: {package} is not installed: pip install 'turnlog[cli]'"


def test_a_reader_that_has_enough_is_no_error(turnlog: CommandLine, file_of: FileOf) -> None:
    """As in `turnlog show … | head -1`."""
    turnlog.ok("import", file_of(*[user(f"{number} " * 500) for number in range(300)]))
    with subprocess.Popen(
        command("show", "chat", "--full"),
        env=environment(turnlog),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_an_interrupt_ends_with_130_and_no_traceback(turnlog: CommandLine, file_of: FileOf) -> None:
    turnlog.ok("import", file_of(*TRIP))
    with subprocess.Popen(
        command("sweep", "--every", "1h"),
        env=environment(turnlog),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "sweeping every 1:00:00; stop with Ctrl-C\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (130, "", "turnlog: interrupted\n")


def test_an_error_that_was_not_foreseen_is_one_line_too(turnlog: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_given: str | None) -> None:
        raise ZeroDivisionError("surprise\x1b")

    monkeypatch.setattr("turnlog.cli.finding.existing_service", broken)
    assert turnlog.fails(1, "sessions") == (
        r"turnlog: unexpected ZeroDivisionError: surprise\x1b (set TURNLOG_TRACEBACK=1 to see where)"
    )
    monkeypatch.setenv("TURNLOG_TRACEBACK", "1")
    ran = turnlog.run("sessions")
    assert "Traceback" in ran.err


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["show"], ["show", "x", "--nonsense"], ["show", "x", "--last", "y"]]
)
def test_wrong_usage_ends_with_2_and_shows_the_way(turnlog: CommandLine, arguments: list[str]) -> None:
    ran = turnlog.run(*arguments)
    assert ran.code == 2
    assert "Usage: turnlog" in ran.err
    assert "Traceback" not in ran.err


def test_help_and_version(turnlog: CommandLine) -> None:
    assert turnlog.ok("--version").out.startswith("turnlog 0.")
    assert "import" in turnlog.ok("--help").out
    assert "--no-whole-turns" in turnlog.ok("show", "-h").out


@pytest.mark.parametrize("given", ["", "relative", "absolute"])
def test_the_default_store_lies_in_the_users_data_folder(
    file_of: FileOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    # The XDG specification says that a relative path is to be ignored.
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / given) if given == "absolute" else given)
    folder = tmp_path / "absolute" if given == "absolute" else tmp_path / ".local" / "share"
    path = folder / "turnlog" / "turnlog.db"
    unset = CommandLine(monkeypatch, "")
    assert f"there is no store at {path}" in unset.fails(6, "sessions")
    unset.ok("import", file_of(*TRIP))
    assert path.exists()
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("platform", "variables", "path"),
    [
        ("darwin", {"HOME": "/h"}, Path("/h/Library/Application Support/turnlog/turnlog.db")),
        ("win32", {"LOCALAPPDATA": "/l"}, Path("/l/turnlog/turnlog.db")),
    ],
)
def test_the_data_folder_of_other_platforms(
    monkeypatch: pytest.MonkeyPatch, platform: str, variables: dict[str, str], path: Path
) -> None:
    from turnlog.cli.stores import default_store

    monkeypatch.setattr(sys, "platform", platform)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert default_store() == str(path)


def test_the_option_goes_before_the_variable(turnlog: CommandLine, file_of: FileOf, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    turnlog.ok("import", file_of(*TRIP), "--store", f"sqlite:{other}")
    assert other.exists()
    assert not turnlog.store.exists()


@pytest.mark.skipif(os.name != "posix", reason="NOT TESTED: streams are closed by a POSIX shell")
@pytest.mark.parametrize(
    ("closed", "code"), [("<&-", 8), (">&-", 0), ("2>&-", 8), ("<&- >&- 2>&-", 8)], ids=["in", "out", "err", "all"]
)
def test_a_stream_that_is_closed_is_an_empty_one(turnlog: CommandLine, closed: str, code: int) -> None:
    """As some that start programs leave them. No file may be opened under the number of a standard stream."""
    turnlog.ok("import", "-", stdin=b'{"role": "user", "content": "Hello"}')
    words = ["sessions"] if code == 0 else ["import", "-"]
    line = f"exec {shlex.join(command(*words))} {closed}"
    ran = subprocess.run(
        ["/bin/sh", "-c", line], env=environment(turnlog), stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert ran.returncode == code, ran.stderr
    assert b"unexpected" not in ran.stderr


def test_a_command_does_not_import_the_others() -> None:
    """Most of what a command takes to start is what it imports."""
    program = "import sys; from turnlog.cli.app import application; application(['sessions']); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules = set(ran.stdout.split())
    assert "turnlog.cli.finding" in modules
    assert modules.isdisjoint({"turnlog.chat", "turnlog.cli.chat_command", "turnlog.cli.importing.importer"})
