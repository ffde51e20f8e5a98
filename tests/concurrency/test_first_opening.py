"""Several open one new file at once: one creates the schema, all find it, nobody gets an error (R-12, R-13)."""

# Locks and drivers are reached into, to take them away or to watch them.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from threading import Barrier
from typing import Any
from unittest.mock import patch

import pytest

from tests.concurrency.nets import Rendezvous
from tests.concurrency.processes import ask_all, workers
from tests.concurrency.stores import opened, sqlite_url
from turnlog.errors import StoreBusyError, StoreError
from turnlog.storage.migrations import SCHEMA_VERSION, full_schema, statements
from turnlog.storage.sql.drivers.sqlite import SqliteDriver, SqliteOptions, connecting
from turnlog.storage.sql.drivers.sqlite.connecting import Connection, connect
from turnlog.testing import factories

OPENERS = 8
ROUNDS = 50


def assert_whole(path: Path, names: Sequence[str]) -> None:
    """The file has its schema and journal mode, and what everybody wrote at once."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    with opened(f"sqlite:{path}") as store:
        assert sorted(session.id for session in store.list()) == sorted(names)
        assert [store.version(name) for name in names] == [1] * len(names)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_eight_processes_fifty_times(tmp_path: Path) -> None:
    names = [f"process-{number}" for number in range(OPENERS)]
    paths = [tmp_path / f"{number}.db" for number in range(ROUNDS)]
    with workers("open", [{"name": name} for name in names]) as started:
        answers = [ask_all(started, f"sqlite:{path}") for path in paths]
    assert answers == [["ok"] * OPENERS] * ROUNDS
    for path in paths:
        assert_whole(path, names)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_eight_threads_fifty_times(tmp_path: Path) -> None:
    names = [f"thread-{number}" for number in range(OPENERS)]
    start = Barrier(OPENERS)

    def use(name: str, path: Path) -> None:
        start.wait()
        with opened(f"sqlite:{path}") as store:
            store.create(factories.session(name))
            store.append(name, [factories.user(1, session_id=name)])

    with ThreadPoolExecutor(OPENERS) as pool:
        for number in range(ROUNDS):
            path = tmp_path / f"{number}.db"
            list(pool.map(use, names, [path] * OPENERS))
            assert_whole(path, names)


def prepared_together(path: Path) -> list[StoreError | None]:
    """How two connections fare that prepare the same new file; how far they go together is up to the caller."""
    options = SqliteOptions(path=str(path))

    def prepare_one(_: int) -> StoreError | None:
        with closing(connect(options)) as connection:
            try:
                connecting.prepare(connection, options)
            except StoreError as error:
                return error
        return None

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(prepare_one, range(2)))


def test_creation_without_a_look_under_its_lock_fails(tmp_path: Path) -> None:
    """The second creates what the first has created: what the second look is for."""
    meeting = Rendezvous(2)

    def create(connection: Connection, _: SqliteOptions) -> None:
        meeting.meet()  # both have seen an empty file
        for statement in statements(full_schema("sqlite")):
            connection.execute(statement)

    with patch.object(connecting, "_create", create):
        assert any(prepared_together(tmp_path / "raced.db"))


def test_both_have_seen_an_empty_file(tmp_path: Path) -> None:
    """The same moment, with the lock and the second look."""
    meeting, create = Rendezvous(2), connecting._create

    def create_together(connection: Connection, options: SqliteOptions) -> None:
        meeting.meet()
        create(connection, options)

    with patch.object(connecting, "_create", create_together):
        assert prepared_together(tmp_path / "raced.db") == [None, None]
    opened(sqlite_url(tmp_path)).close()


def test_creation_between_two_looks_at_the_header(tmp_path: Path) -> None:
    """Who opens sees the file before or after somebody else's creation of it, never a mixture that looks foreign."""
    url, attempts = sqlite_url(tmp_path), list[str]()

    class Interrupted(sqlite3.Connection):
        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            if sql == "PRAGMA user_version" and not attempts:
                # The application's id has been read.
                attempts.append(url)
                with suppress(StoreBusyError):
                    opened(url + "?busy_timeout=0").close()
            return super().execute(sql, parameters)

    options = SqliteOptions(path=url.removeprefix("sqlite:"))
    SqliteDriver(options, lambda options: connect(options, factory=Interrupted)).close()
    assert attempts
