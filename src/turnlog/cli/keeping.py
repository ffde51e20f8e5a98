"""``backup`` and ``doctor``: a copy of a store, and whether it is well."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from turnlog.cli import sqlite_file
from turnlog.cli.options import JsonOption, StoreOption
from turnlog.cli.stores import existing_sqlite_file, existing_store, shown, sqlite_path, store_url
from turnlog.cli.terminal import print_json, print_line, progress
from turnlog.errors import SessionNotFoundError, StoreError, UnreadableDataError
from turnlog.log.session import Session
from turnlog.storage.opening import is_postgres
from turnlog.storage.protocol import Durability, SessionRepository

_PAGE = 200
_SLICE = 1 << 20
#: The names of what doctor finds; those of a server's settings are longer.
_NARROWEST = 13


def backup(
    target: Annotated[str, typer.Argument(metavar="FILE", help="The file to write.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
    store: StoreOption = None,
) -> None:
    """Copy a SQLite store as it is at this moment, while others write to it. The copy is a store itself."""
    source = existing_sqlite_file(store)
    with existing_store(store), progress(f"copying {source.name}", _SLICE) as moved:
        size = sqlite_file.copy_live(
            source,
            Path(target),
            lambda done, total: moved(done * _SLICE // max(total, 1)),
            overwrite=overwrite,
        )
    print_line(f"{target}: {size:,} bytes, checked")


class Report(Struct):
    """What ``doctor`` has found."""

    store: str
    durability: Durability
    schema_version: int | None = None
    bytes: int | None = None
    indexed_metadata: tuple[str, ...] = ()
    sessions: int = 0
    events: int = 0
    problems: list[str] = []


def doctor(
    quick: Annotated[bool, typer.Option("--quick", help="Settings only: do not read the data.")] = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Say what the store guarantees, what is known against its engine, and whether its data is sound.

    Reads everything: each page, each event. The exit code is 7 when something is damaged.
    """
    url = store_url(store)
    path = sqlite_path(url)
    with existing_store(store) as repository:
        report = Report(shown(url), repository.durability, indexed_metadata=repository.indexed_metadata)
        if path is not None:
            report.schema_version = sqlite_file.schema_version(path)
            report.bytes = path.stat().st_size
        if not quick:
            report.problems += _problems(url, path)
            _examine(repository, report)
    if as_json:
        print_json(report)
    else:
        _print(report, quick=quick)
    if report.problems:
        sys.exit(UnreadableDataError.exit_code)


def _problems(url: str, path: Path | None) -> list[str]:
    """What the engine itself is asked."""
    if path is not None:
        return sqlite_file.check_file(path)
    if not is_postgres(url):
        return []
    from turnlog.storage.sql.drivers.postgres import checking, options_of

    return checking.problems(options_of(url))


def _examine(repository: SessionRepository, report: Report) -> None:
    with progress("reading every event", None):
        for session in _sessions(repository, report):
            report.sessions += 1
            try:
                report.events += _read_whole(repository, session)
            except SessionNotFoundError:
                report.sessions -= 1  # deleted, or expired, since it was listed
            except StoreError as error:
                report.problems.append(str(error))


def _sessions(repository: SessionRepository, report: Report) -> Iterator[Session]:
    cursor: str | None = None
    while True:
        try:
            page = repository.list(limit=_PAGE, cursor=cursor)
        except StoreError as error:
            report.problems.append(f"sessions cannot be listed on: {error}")
            return
        yield from page
        cursor = page.cursor
        if cursor is None:
            return


def _read_whole(repository: SessionRepository, session: Session) -> int:
    """Read a log from end to end; positions must count 1, 2, 3… up to the version."""
    version = repository.version(session.id)
    expected = 0
    for batch in repository.iter_batches(session.id, as_of=version):
        for event in batch:
            expected += 1
            if event.position != expected:
                raise UnreadableDataError(session.id, event.position, f"position {expected} is missing")
    if expected != version:
        raise UnreadableDataError(session.id, None, f"{expected} events, but version {version}")
    return version


def _print(report: Report, *, quick: bool) -> None:
    facts = list(_facts(report, quick=quick))
    width = max(_NARROWEST, *(len(name) for name, _ in facts if not name.startswith(" ")))
    for name, value in facts:
        print_line(f"{name:{width}} {value}".rstrip())


def _facts(report: Report, *, quick: bool) -> Iterator[tuple[str, str]]:
    durability = report.durability
    yield "store", report.store
    if report.schema_version is not None:
        yield "schema", str(report.schema_version)
    if report.bytes is not None:
        yield "size", f"{report.bytes:,} bytes"
    yield from durability.settings
    yield "indexed", ", ".join(report.indexed_metadata)
    yield "durability", durability.claim
    yield "  process crash ", _SURVIVAL[durability.survives_process_crash]
    yield "  power loss    ", _SURVIVAL[durability.survives_power_loss]
    for warning in durability.warnings:
        yield "warning", warning
    if not quick:
        yield "read", f"{report.sessions:,} sessions, {report.events:,} events"
        yield "sound", "NO" if report.problems else "yes"
    for problem in report.problems:
        yield "problem", problem


_SURVIVAL = {True: "acknowledged appends survive", False: "the last appends may be lost", None: "not known"}
