"""``python -m benchmarks``: the table of what turnlog costs; with ``--check``, exit 1 where a bound is missed."""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks import appending, chatting, formats, postgres, reading, sizes, writers
from benchmarks.lab import FULL, SMALL, TINY, Result, Scale
from turnlog.log.tokens import default_counter

CASES: dict[str, Callable[[Scale], Iterator[Result]]] = {
    "appending": appending.results,
    "reading": reading.results,
    "writers": writers.results,
    "sizes": sizes.results,
    "postgres": postgres.results,
    "formats": formats.results,
    "chatting": chatting.results,
}
SCALES = {scale.name: scale for scale in (FULL, SMALL, TINY)}
#: The page that ``--write`` brings up to date, between these marks.
PAGE = Path("docs/reference/performance.md")
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and judge."""
    options = _options(arguments)
    found: list[Result] = []
    print(conditions(), flush=True)
    for name in options.only or CASES:
        for result in CASES[name](SCALES[options.scale]):
            if not options.markdown:
                print(line(result), flush=True)
            found.append(result)
    if options.markdown:
        print(table(found))
    if options.write:
        write(found)
    missed = [result for result in found if not result.holds]
    print(f"\n{len(found)} measured, {len(missed)} not within their bound")
    return 1 if options.check and missed else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--scale", choices=list(SCALES), default=FULL.name, help="how much; the bounds are for full")
    parser.add_argument("--small", action="store_const", dest="scale", const=SMALL.name, help="a look, about a minute")
    parser.add_argument("--check", action="store_true", help="exit 1 where a bound is missed, or nothing was measured")
    parser.add_argument("--only", action="append", choices=list(CASES), help="this part alone; may be given again")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown, at the end")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE}")
    return parser.parse_args(arguments)


def conditions() -> str:
    """What the figures were taken on."""
    return (
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {os.cpu_count()} cores,"
        f" load {os.getloadavg()[0]:.1f}, tokens by {default_counter().name}"
    )


def line(result: Result) -> str:
    """One row for a terminal."""
    verdict = "  " if result.holds else "! "
    return f"{verdict}{result.name:<84} {_figure(result):>8}  {_bound(result):>7}  {result.note}".rstrip()


def table(found: Sequence[Result]) -> str:
    """All rows as Markdown."""
    rows = [f"| {result.name} | {_figure(result)} | {_bound(result)} | {result.note} |" for result in found]
    return "\n".join(["| what | measured | bound | |", "| --- | ---: | ---: | --- |", *rows])


def write(found: Sequence[Result], page: Path = PAGE) -> None:
    """Replace the table on the page."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    text = f"{before}{BEGIN}\n{conditions()}.\n\n{table(found)}\n{END}{after}"
    page.write_text(text, encoding="utf-8")


def _figure(result: Result) -> str:
    return "not here" if result.measured is None else f"{result.measured:.2f}"


def _bound(result: Result) -> str:
    return f"{'≥' if result.at_least else '≤'} {result.bound:g}"


if __name__ == "__main__":
    sys.exit(main())
