"""Every Python and shell block in the documentation runs, page by page, in a folder of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
#: The commands of the README and of CONTRIBUTING start these very tests.
_STARTS_TESTS = re.compile(r"^(scripts/(demo|test|bench)|make )\b", re.MULTILINE)


class Block(NamedTuple):
    language: str
    text: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(found[1], found[2], text.count("\n", 0, found.start()) + 2) for found in _FENCE.finditer(text)]


def test_every_block_names_its_language() -> None:
    unnamed = [f"{page.name}:{block.line}" for page in PAGES for block in blocks_of(page) if not block.language]
    assert not unnamed, unnamed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks_of(page):
        place = f"{page.relative_to(ROOT)}, line {block.line}"
        if block.language == "python":
            code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
            exec(code, namespace)  # noqa: S102 - running the documentation is the purpose
        elif block.language == "sh" and not _STARTS_TESTS.search(block.text):
            _run_shell(block.text, tmp_path, place)


def _run_shell(script: str, folder: Path, place: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8"}
    ran = subprocess.run(
        ["/bin/sh", "-eu", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, f"{place}: exit {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
