"""Files in the state that the fault tests begin with, stores on them, and what the files hold."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from inspect import isawaitable
from pathlib import Path
from typing import Any, TypeAlias

from tests.faults.operations import AnyRepository, clock, prepare
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.sql import AsyncSqlRepository, SqlRepository
from turnlog.storage.sql.drivers.sqlite import AsyncSqliteDriver, SqliteDriver, SqliteOptions
from turnlog.testing.driver_faults import Watch, watched

Dump: TypeAlias = "dict[str, list[tuple[Any, ...]]]"
Opening: TypeAlias = Callable[[Path, Watch], AnyRepository]


def sync_store(path: Path, watch: Watch) -> SqlRepository:
    driver = SqliteDriver(SqliteOptions(path=str(path), busy_timeout=0), watched(watch))
    return SqlRepository(driver, clock(), token_counter=EstimatedTokens())


def async_store(path: Path, watch: Watch) -> AsyncSqlRepository:
    driver = AsyncSqliteDriver(SqliteOptions(path=str(path), busy_timeout=0), watched(watch))
    return AsyncSqlRepository(driver, clock(), token_counter=EstimatedTokens())


async def opened(store: AnyRepository) -> AnyRepository:
    opening: Any = store.open()
    if isawaitable(opening):
        await opening
    return store


async def close(store: AnyRepository) -> None:
    closing_: Any = store.close()
    if isawaitable(closing_):
        await closing_


def write_template(path: Path) -> Path:
    """A file with what `prepare` writes, its write-ahead log moved into it."""
    store = SqlRepository(SqliteDriver(SqliteOptions(path=str(path))), clock(), token_counter=EstimatedTokens())
    with store:
        prepare(store)
    return path


def copied(template: Path, path: Path) -> Path:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    shutil.copyfile(template, path)
    return path


def dump(path: Path) -> Dump:
    """All rows of all tables, read by a connection of its own."""
    with closing(sqlite3.connect(path, timeout=0)) as connection:
        named = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        return {name: _rows(connection, name) for (name,) in named.fetchall()}


def _rows(connection: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    found = connection.execute(f"SELECT * FROM {table}")  # noqa: S608 - a name out of the schema
    return sorted(found, key=repr)


def is_locked(path: Path) -> bool:
    """Whether some connection is in the middle of writing."""
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        connection.execute("ROLLBACK")
        return False
