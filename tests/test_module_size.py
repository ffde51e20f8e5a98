"""No module grows past what can be held in mind; one that does is split by noun."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.conftest import ROOT
from tools.unasync import HEADER, is_generated

MOST_LINES = 400
FOLDERS = ("src", "tests", "tools", "benchmarks", "examples")


def too_long(root: Path) -> Iterator[str]:
    """The modules with more lines than allowed; generated ones are as long as their source makes them."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            lines = len(text.splitlines())
            if lines > MOST_LINES and not is_generated(text):
                yield f"{path.relative_to(root)} has {lines} lines, {lines - MOST_LINES} too many: split it by noun"


def test_every_module_is_short() -> None:
    faults = list(too_long(ROOT))
    assert not faults, "\n".join(faults)


def test_one_line_too_many_is_found_and_a_generated_module_is_not(tmp_path: Path) -> None:
    package = tmp_path / "src" / "package"
    package.mkdir(parents=True)
    lines = "x = 1\n" * MOST_LINES
    (package / "enough.py").write_text(lines, encoding="utf-8")
    (package / "long.py").write_text(lines + "y = 2\n", encoding="utf-8")
    (package / "_sync.py").write_text(HEADER + lines, encoding="utf-8")
    (fault,) = too_long(tmp_path)
    assert fault == f"{Path('src/package/long.py')} has 401 lines, 1 too many: split it by noun"
