"""Running the command line in this process, as a shell would: arguments in, bytes and an exit code out."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from turnlog.cli.main import main


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    def json_lines(self) -> list[Any]:
        """Standard output as the JSON values that stand on its lines."""
        return [json.loads(line) for line in self.out.splitlines()]


class CommandLine:
    """Runs ``turnlog`` on one store."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, store: Path | str) -> None:
        self._monkeypatch = monkeypatch
        self._given = str(store)

    @property
    def store(self) -> Path:
        """The file of the store."""
        return Path(self._given)

    def run(self, *arguments: str | Path | int, stdin: bytes = b"") -> Ran:
        """Run one command to its end; whatever it prints and however it ends."""
        out, err = io.BytesIO(), io.BytesIO()
        with self._monkeypatch.context() as patch:
            patch.setenv("TURNLOG_STORE", self._given)
            patch.setenv("COLUMNS", "80")
            patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
            stdout = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
            stderr = io.TextIOWrapper(err, encoding="utf-8", write_through=True)
            patch.setattr("sys.stdout", stdout)
            patch.setattr("sys.stderr", stderr)
            with pytest.raises(SystemExit) as ended:
                main([str(argument) for argument in arguments])
        # Bytes that the wrappers hold must not vanish, nor close what is read below.
        stdout.detach()
        stderr.detach()
        code = ended.value.code
        assert isinstance(code, int)
        return Ran(code, out.getvalue().decode("utf-8"), err.getvalue().decode("utf-8"))

    def ok(self, *arguments: str | Path | int, stdin: bytes = b"") -> Ran:
        """Run a command that must succeed."""
        ran = self.run(*arguments, stdin=stdin)
        assert ran.code == 0, ran.err
        return ran

    def fails(self, code: int, *arguments: str | Path | int, stdin: bytes = b"") -> str:
        """Run a command that must fail with this code, in one clear line, which is returned."""
        ran = self.run(*arguments, stdin=stdin)
        assert ran.code == code, (ran.code, ran.out, ran.err)
        last = ran.err.splitlines()[-1]
        assert last.startswith("turnlog: "), ran.err
        assert "Traceback" not in ran.err
        return last
