"""``python -m benchmarks``: the table of what turnlog costs; with ``--check``, exit 1 where a bound is missed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks import appending, reading, sizes, writers
from benchmarks.lab import FULL, SMALL, Result, Scale

CASES: dict[str, Callable[[Scale], Iterator[Result]]] = {
    "appending": appending.results,
    "reading": reading.results,
    "writers": writers.results,
    "sizes": sizes.results,
}
#: The page that ``--write`` brings up to date, between these marks.
PAGE = Path("docs/reference/performance.md")
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and judge."""
    options = _options(arguments)
    scale = SMALL if options.small else FULL
    found: list[Result] = []
    for name, results in CASES.items():
        if not options.only or name in options.only:
            for result in results(scale):
                print(line(result), flush=True)
                found.append(result)
    if options.write:
        write(found)
    missed = [result for result in found if not result.holds]
    print(f"\n{len(found)} measured, {len(missed)} over their bound")
    return 1 if options.check and missed else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--small", action="store_true", help="a look, in about a minute; the bounds are for the full run"
    )
    parser.add_argument("--check", action="store_true", help="exit 1 where a bound is missed")
    parser.add_argument("--only", action="append", choices=list(CASES), help="this part alone; may be given again")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE}")
    return parser.parse_args(arguments)


def line(result: Result) -> str:
    """One row for a terminal."""
    verdict = "  " if result.holds else "! "
    return f"{verdict}{result.name:<76} {_figure(result.measured):>8}  {_bound(result):>7}  {result.note}".rstrip()


def table(found: Sequence[Result]) -> str:
    """All rows as Markdown."""
    rows = [f"| {result.name} | {_figure(result.measured)} | {_bound(result)} | {result.note} |" for result in found]
    return "\n".join(["| what | measured | bound | |", "| --- | ---: | ---: | --- |", *rows])


def write(found: Sequence[Result], page: Path = PAGE) -> None:
    """Replace the table on the page."""
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    page.write_text(f"{before}{BEGIN}\n{table(found)}\n{END}{after}", encoding="utf-8")


def _figure(measured: float | None) -> str:
    return "not here" if measured is None else f"{measured:.2f}"


def _bound(result: Result) -> str:
    return f"{'≥' if result.at_least else '≤'} {result.bound:g}"


if __name__ == "__main__":
    sys.exit(main())
