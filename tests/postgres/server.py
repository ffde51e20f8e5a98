"""A PostgreSQL server for the tests: the one that is named or running here, or one of their own."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

#: Names a server in a URL, whose user may create databases.
VARIABLE = "TURNLOG_TEST_POSTGRES"
_RUNNING_HERE = "postgresql://postgres@127.0.0.1:5432/postgres"


@contextmanager
def server() -> Generator[str | None]:
    """A server's URL, or None where there is none and none can be started."""
    named = os.environ.get(VARIABLE)
    if named or answers(_RUNNING_HERE):
        yield named or _RUNNING_HERE
        return
    binaries = installed_binaries()
    if binaries is None:
        yield None
        return
    with started(binaries) as url:
        yield url


def answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=3).close()
    except psycopg.Error:
        return False
    return True


def installed_binaries() -> Path | None:
    """The folder of the newest installed server."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    on_path = shutil.which("initdb")
    found += [Path(on_path).resolve().parent] if on_path else []
    whole = [folder for folder in found if all((folder / name).exists() for name in ("pg_ctl", "pg_basebackup"))]
    return max(whole, key=_version, default=None)


def _version(folder: Path) -> int:
    name = folder.parent.name
    return int(name) if name.isdigit() else 0


class Installation:
    """The installed programs, run in a folder of their own by a user that is not root (a server refuses to be)."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._binaries = binaries
        self.folder = folder
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = pwd.getpwnam("nobody")
            os.chown(folder, user.pw_uid, user.pw_gid)
            self._user = {"user": user.pw_uid, "group": user.pw_gid}

    def run(self, program: str, *arguments: str) -> None:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LC_ALL": "C.UTF-8"}
        command = [str(self._binaries / program), *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, env=environment, **self._user)

    def make(self, name: str) -> None:
        """A new cluster in a folder of this name."""
        settings = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        self.run("initdb", "-D", str(self.folder / name), *settings)

    def start(self, name: str, port: int, options: str = "") -> str:
        """Start it, and return its URL when it answers."""
        said = f"-k {self.folder} -h 127.0.0.1 -p {port} {options}"
        self.run("pg_ctl", *self._of(name), "-w", "-l", str(self.folder / f"{name}.log"), "-o", said, "start")
        return f"postgresql://postgres@127.0.0.1:{port}/postgres"

    def stop(self, name: str) -> None:
        """End it at once, if it runs."""
        with suppress(subprocess.CalledProcessError):
            self.run("pg_ctl", *self._of(name), "-m", "immediate", "stop")

    def promote(self, name: str) -> None:
        """Make a standby the primary."""
        self.run("pg_ctl", *self._of(name), "-w", "promote")

    def kill(self, name: str) -> None:
        """SIGKILL for the server and all its processes, as if the machine had gone."""
        pid = int((self.folder / name / "postmaster.pid").read_text("ascii").splitlines()[0])
        os.killpg(pid, signal.SIGKILL)

    def _of(self, name: str) -> tuple[str, str]:
        return ("-D", str(self.folder / name))


@contextmanager
def installation(binaries: Path) -> Generator[Installation]:
    """A temporary folder for servers."""
    with tempfile.TemporaryDirectory(prefix="turnlog-pg-") as name:
        yield Installation(binaries, Path(name))


@contextmanager
def started(binaries: Path, *, options: str = "") -> Generator[str]:
    """A server on a free port."""
    with installation(binaries) as installed:
        installed.make("data")
        try:
            yield installed.start("data", free_port(), options)
        finally:
            installed.stop("data")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
