"""A PostgreSQL server for the tests: the one that is named or running here, or one of their own."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
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
    found += [Path(on_path).parent] if on_path else []
    return max(found, default=None)


@contextmanager
def started(binaries: Path, *, options: str = "") -> Generator[str]:
    """A server on a free port, in a temporary folder, as a user that is not root (it refuses to run as root)."""
    with tempfile.TemporaryDirectory(prefix="turnlog-pg-") as name:
        folder = Path(name)
        demoted: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = pwd.getpwnam("nobody")
            os.chown(folder, user.pw_uid, user.pw_gid)
            demoted = {"user": user.pw_uid, "group": user.pw_gid}
        port = free_port()
        data = folder / "data"
        said = f"-k {folder} -h 127.0.0.1 -p {port} {options}"
        environment = {"PATH": os.environ["PATH"], "HOME": name, "LC_ALL": "C.UTF-8"}

        def run(program: str, *arguments: str) -> None:
            command = [str(binaries / program), *arguments]
            subprocess.run(command, check=True, capture_output=True, cwd=folder, env=environment, **demoted)

        run("initdb", "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        run("pg_ctl", "-D", str(data), "-w", "-l", str(folder / "log"), "-o", said, "start")
        try:
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-D", str(data), "-m", "immediate", "stop")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
