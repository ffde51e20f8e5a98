"""Writes the sync twin of every async module: ``python -m tools.unasync [--check]``.

A module is a source when its path below ``src`` or ``tests`` holds a file or folder called ``_async``; its twin has
``_sync`` in that place. ``async`` and ``await`` go, names change by the table in ``unasync.toml``, and ruff sorts the
imports and formats the rest. The command fails, and writes nothing, when

- a table entry matches nothing in any source: the table says only what is true;
- a twin still speaks of async: a name is missing in the table, or a sentence needs other words;
- with ``--check``, a twin differs from what would be written, is missing, or has lost its source.
"""

from __future__ import annotations

import argparse
import difflib
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from tools.unasync_rewrite import Rename, Rewriter, leftovers, rewritten

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_suffix(".toml")
FOLDERS = ("src", "tests")
HEADER = "# Generated from {source} by tools/unasync.py: edit that file, then run `make generate`.\n"
_HEADER_START = HEADER.partition("{")[0]


class UnasyncError(Exception):
    """Why no twin was written; the text holds one problem a line."""


@dataclass(frozen=True)
class Table:
    """The renames of all files, and of single files."""

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    prose: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, Table] = field(default_factory=dict[str, "Table"])

    @classmethod
    def parse(cls, document: Mapping[str, object]) -> Table:
        """The table in a parsed TOML document; an unknown section is an error, not silence."""
        unknown = document.keys() - {"names", "prose", "files"}
        if unknown:
            raise UnasyncError(f"unknown section in the table: {', '.join(sorted(unknown))}")
        files = cast("Mapping[str, Mapping[str, object]]", document.get("files", {}))
        return cls(
            cast("Mapping[str, str]", document.get("names", {})),
            cast("Mapping[str, str]", document.get("prose", {})),
            {path: cls.parse(section) for path, section in files.items()},
        )

    def entries(self, source: str) -> Iterator[Rename]:
        """The renames in force in one source file: its own first, so that they win."""
        if source in self.files:
            for entry in self.files[source].entries(source):
                yield Rename(entry.old, entry.new, entry.kind, scope=source)
        yield from (Rename(old, new, "names") for old, new in self.names.items())
        yield from (Rename(old, new, "prose") for old, new in self.prose.items())

    def all_entries(self) -> Iterator[Rename]:
        """Every entry once, those of single files too."""
        yield from self.entries("")
        for source in self.files:
            yield from (entry for entry in self.entries(source) if entry.scope)


def is_generated(text: str) -> bool:
    """Whether a module's text is a twin that this command wrote."""
    return text.startswith(_HEADER_START)


def sources(root: Path) -> Iterator[Path]:
    """Every async module below the root that has a sync twin."""
    return _modules_with(root, "_async")


def twin_of(source: Path, root: Path) -> Path:
    """Where the twin of a source lies."""
    return _with_part(source, root, "_async", "_sync")


def generate(root: Path, table: Table) -> dict[Path, str]:
    """The text of every twin, by its path. Raises UnasyncError with every problem rather than half of the twins."""
    matched: Counter[Rename] = Counter()
    twins: dict[Path, str] = {}
    problems: list[str] = []
    for source in sources(root):
        name = source.relative_to(root).as_posix()
        rewriter = Rewriter(list(table.entries(name)))
        text = rewritten(source.read_text(encoding="utf-8"), rewriter)
        matched.update(rewriter.matched)
        problems.extend(f"{name}: {problem}" for problem in leftovers(text))
        target = twin_of(source, root)
        twins[target] = formatted(HEADER.format(source=name) + text, target, root)
    if twins:
        problems.extend(_unmatched(table.all_entries(), matched))
    if problems:
        raise UnasyncError("\n".join(problems))
    return twins


def formatted(text: str, target: Path, root: Path) -> str:
    """The text as ``ruff format`` and its import sorting leave it."""
    for arguments in (("check", "--select=I", "--fix-only", "--quiet"), ("format", "--quiet")):
        command = [sys.executable, "-m", "ruff", *arguments, f"--stdin-filename={target}", "-"]
        run = subprocess.run(
            command, input=text, capture_output=True, text=True, cwd=root, encoding="utf-8", check=False
        )
        if run.returncode:
            raise UnasyncError(f"{target.relative_to(root)}: ruff cannot read the twin\n{run.stderr}")
        text = run.stdout
    return text


def drift(root: Path, twins: Mapping[Path, str]) -> Iterator[str]:
    """What differs between the twins on disk and those that would be written, as unified diffs."""
    for target, text in twins.items():
        name = target.relative_to(root).as_posix()
        if not target.exists():
            yield f"{name} is missing: run `make generate`\n"
            continue
        present = target.read_text(encoding="utf-8")
        if present != text:
            lines = difflib.unified_diff(
                present.splitlines(keepends=True), text.splitlines(keepends=True), name, f"{name} as generated"
            )
            yield f"{name} is not what its source gives: run `make generate`\n" + "".join(lines)
    for orphan in _orphans(root, twins):
        yield f"{orphan.relative_to(root).as_posix()} has no async source any more: run `make generate`\n"


def write(root: Path, twins: Mapping[Path, str]) -> None:
    """Bring the twins on disk up to date; a generated file without a source is removed."""
    for target, text in twins.items():
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
            print(f"wrote {target.relative_to(root)}")
    for orphan in _orphans(root, twins):
        orphan.unlink()
        print(f"removed {orphan.relative_to(root)}")


def main(arguments: list[str] | None = None, *, root: Path = ROOT, table: Path = TABLE) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="unasync", description="Write the sync twins of the async modules.")
    _ = parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a twin is not up to date")
    check = bool(parser.parse_args(arguments).check)
    try:
        twins = generate(root, Table.parse(tomllib.loads(table.read_text(encoding="utf-8"))))
    except UnasyncError as error:
        print(error, file=sys.stderr)
        return 1
    if not check:
        write(root, twins)
        return 0
    differences = list(drift(root, twins))
    print("\n".join(differences) or f"{len(twins)} twins are up to date")
    return 1 if differences else 0


def _modules_with(root: Path, part: str) -> Iterator[Path]:
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            if part in path.relative_to(root).with_suffix("").parts:
                yield path


def _with_part(path: Path, root: Path, old: str, new: str) -> Path:
    parts = path.relative_to(root).with_suffix("").parts
    return root.joinpath(*(new if part == old else part for part in parts)).with_suffix(".py")


def _orphans(root: Path, twins: Mapping[Path, str]) -> Iterator[Path]:
    for path in _modules_with(root, "_sync"):
        if path not in twins and is_generated(path.read_text(encoding="utf-8")):
            yield path


def _unmatched(entries: Iterable[Rename], matched: Mapping[Rename, int]) -> Iterator[str]:
    for entry in entries:
        if not matched.get(entry):
            where = f" in {entry.scope}" if entry.scope else ""
            yield f"the table's {entry.kind} entry {entry.old!r} matches nothing{where}: correct it or take it out"


if __name__ == "__main__":
    sys.exit(main())
