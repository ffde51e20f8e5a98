"""What only a SQLite file has: a copy of it while it is written to, and its own checks."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from turnlog.cli.whole_file import replacing
from turnlog.errors import InvalidValueError, UnreadableDataError
from turnlog.storage.sql.drivers.sqlite.errors import translated

_PAGES_AT_ONCE = 1_000
_MOST_PROBLEMS = 20

# Positions are unique and begin with 1: as many events as the highest position, which is the version, means no gap.
_CONTRADICTIONS = """
    SELECT session.id, session.version, count(position), coalesce(max(position), 0)
    FROM session LEFT JOIN event ON session_key = key
    GROUP BY key HAVING count(position) != version OR coalesce(max(position), 0) != version
"""


def copy_live(source: Path, target: Path, on_progress: Callable[[int, int], None], *, overwrite: bool) -> int:
    """Copy the database at ``source`` as it is at this moment; writers go on meanwhile. Returns the bytes of the copy.

    The copy is made under another name, checked, and put in place when it is whole. ``on_progress`` is told how many
    pages are done, and of how many.
    """
    _check_target(source, target, overwrite=overwrite)
    with replacing(target, like=source) as partial:
        try:
            with translated(str(target)):
                _copy(source, partial, on_progress)
        finally:
            for leftover in _side_files(partial):
                leftover.unlink(missing_ok=True)
    return target.stat().st_size


def _check_target(source: Path, target: Path, *, overwrite: bool) -> None:
    if not target.exists() or target.is_dir():
        return
    if target.samefile(source):
        raise InvalidValueError(f"{target} is the store itself")
    if not target.is_file():
        raise InvalidValueError(f"{target} is no file that a copy could replace")
    if not overwrite:
        raise InvalidValueError(f"{target} is there already: say --overwrite to replace it")
    if any(side.exists() for side in _side_files(target.resolve())):
        # Its write-ahead log would be played into the new file.
        raise InvalidValueError(
            f"{target} is in use, or was not closed ({target.name}-wal is there): choose another name"
        )


def _copy(source: Path, partial: Path, on_progress: Callable[[int, int], None]) -> None:
    with contextlib.closing(_read_only(source)) as reader, contextlib.closing(sqlite3.connect(partial)) as writer:
        # Within one snapshot, so that no write makes the copy begin again.
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        reader.backup(
            writer,
            pages=_PAGES_AT_ONCE,
            progress=lambda _, remaining, total: on_progress(total - remaining, total),
        )
        reader.execute("COMMIT")
        problems = list(_problems(writer, "quick_check"))
        if problems:
            raise UnreadableDataError(None, None, f"the copy is damaged, as the store is: {problems[0]}")


def check_file(path: Path) -> list[str]:
    """What SQLite itself finds wrong: damaged pages, indexes that disagree, rows without their session."""
    with translated(str(path)), contextlib.closing(_read_only(path)) as connection:
        problems = list(_problems(connection, "integrity_check"))
        orphans = connection.execute("PRAGMA foreign_key_check").fetchmany(_MOST_PROBLEMS)
        problems += [f"row {row} of table {table} has no {parent}" for table, row, parent, _ in orphans]
        for session_id, version, count, last in connection.execute(_CONTRADICTIONS).fetchmany(_MOST_PROBLEMS):
            problems.append(f"session {session_id!r} is at version {version}, but has {count} events up to {last}")
        return problems


def schema_version(path: Path) -> int:
    """The number of the file's schema."""
    with translated(str(path)), contextlib.closing(_read_only(path)) as connection:
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        return version


def _problems(connection: sqlite3.Connection, check: str) -> Iterator[str]:
    for (answer,) in connection.execute(f"PRAGMA {check}({_MOST_PROBLEMS})"):
        if answer != "ok":
            yield str(answer)


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)


def _side_files(path: Path) -> tuple[Path, ...]:
    return tuple(path.with_name(path.name + ending) for ending in ("-wal", "-shm", "-journal"))
