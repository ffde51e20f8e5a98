"""``python -m benchmarks``: its table, its exit code, and that it runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks.__main__ import BEGIN, CASES, END, PAGE, main
from benchmarks.lab import Result, Scale

ROOT = Path(__file__).parents[2]
MET = Result("append, 100 events", 1.25, 2.0, note="100 µs; by hand 80 µs")
MISSED = Result("last(50), 100 events", 0.91, 0.9)
TOO_SLOW = Result("throughput", 2.9, 3.0, at_least=True)
NOT_HERE = Result("flushes per append", None, 1.05)


def measuring(monkeypatch: pytest.MonkeyPatch, *found: Result) -> None:
    def results(_: Scale) -> Iterator[Result]:
        return iter(found)

    monkeypatch.setattr(command, "CASES", {"appending": results})


@pytest.mark.parametrize("missed", [MISSED, TOO_SLOW, NOT_HERE], ids=["above", "below", "not measured"])
def test_check_exits_1_when_a_bound_is_missed(monkeypatch: pytest.MonkeyPatch, missed: Result) -> None:
    measuring(monkeypatch, MET, missed)
    assert main(["--check"]) == 1
    assert main([]) == 0


def test_check_exits_0_when_all_bounds_are_met(monkeypatch: pytest.MonkeyPatch) -> None:
    measuring(monkeypatch, MET)
    assert main(["--check"]) == 0


def test_each_row_says_what_was_measured_and_its_bound(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measuring(monkeypatch, MET, MISSED, TOO_SLOW, NOT_HERE)
    main([])
    conditions, *rows, _, last = capsys.readouterr().out.splitlines()
    assert "SQLite" in conditions
    assert [row.split() for row in rows] == [
        ["append,", "100", "events", "1.25", "≤", "2", "100", "µs;", "by", "hand", "80", "µs"],
        ["!", "last(50),", "100", "events", "0.91", "≤", "0.9"],
        ["!", "throughput", "2.90", "≥", "3"],
        ["!", "flushes", "per", "append", "not", "here", "≤", "1.05"],
    ]
    assert last == "4 measured, 3 not within their bound"


def test_markdown_is_a_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    measuring(monkeypatch, MET, NOT_HERE)
    main(["--markdown"])
    assert capsys.readouterr().out.splitlines()[1:-2] == [
        "| what | measured | bound | |",
        "| --- | ---: | ---: | --- |",
        "| append, 100 events | 1.25 | ≤ 2 | 100 µs; by hand 80 µs |",
        "| flushes per append | not here | ≤ 1.05 |  |",
    ]


def test_write_replaces_the_table_on_the_page(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nbehind\n", encoding="utf-8")
    command.write([MET], page)
    command.write([MET], page)
    written = page.read_text(encoding="utf-8")
    assert written.startswith(f"before\n{BEGIN}\n")
    assert written.endswith(f"\n{END}\nbehind\n")
    assert written.count(MET.name) == 1
    assert "old" not in written


def test_the_page_has_one_place_for_the_table() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert (text.count(BEGIN), text.count(END)) == (1, 1)
    assert text.index(BEGIN) < text.index(END)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", CASES)
def test_it_runs_on_a_tiny_scale(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """That every figure can be taken, and no more: so small a run says nothing about the bounds."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # of the processes that it starts
    monkeypatch.chdir(tmp_path)
    assert main(["--scale", "tiny", "--only", name]) == 0
    rows = capsys.readouterr().out.splitlines()[1:-2]
    assert rows
    assert all("≤" in row or "≥" in row for row in rows)
    assert not list(tmp_path.iterdir()), "it cleans up after itself"
