"""The blocks of the page on PostgreSQL run, against a database in place of the one that they name."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.docs.test_snippets import blocks_of

pytestmark = pytest.mark.store

PAGE = ROOT / "docs/how-to/run-on-postgresql.md"
_NAMED = "postgresql://app@db.example.org/chats"


def test_the_page_runs(empty_database: str, tmp_path: Path) -> None:
    namespace: dict[str, object] = {"__name__": "__main__"}
    ran = {"py": 0, "bash": 0}
    for block in blocks_of(PAGE):
        text = block.text.replace(_NAMED, empty_database)
        if block.language == "py":
            exec(compile("\n" * (block.line - 1) + text, str(PAGE), "exec"), namespace)  # noqa: S102 - the purpose
        elif block.language == "bash":
            run_in_shell(text, tmp_path)
        ran[block.language] = ran.get(block.language, 0) + 1
    assert ran["py"] == ran["bash"] == 2
    assert "CREATE TABLE event" in (tmp_path / "schema.sql").read_text("utf-8")
    ask: Any = namespace["ask"]
    session: Any = namespace["session"]
    assert asyncio.run(ask(session.id)) == 2


def run_in_shell(script: str, folder: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8"}
    ran = subprocess.run(
        ["/bin/sh", "-eu", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, f"{script}\n{ran.stdout}\n{ran.stderr}"
