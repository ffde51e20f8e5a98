"""Stores whose connections are watched: statements are written down, and held up or made to fail at a chosen one."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.opening import system_clock
from turnlog.storage.sql import AsyncSqlRepository, SqlRepository
from turnlog.storage.sql.drivers.sqlite import AsyncSqliteDriver, SqliteDriver, SqliteOptions
from turnlog.storage.sql.drivers.sqlite.connecting import Connection, connect

Watch = Callable[[str], None]


class Gate:
    """Holds up one statement in the middle of a write, once it is closed, until it is opened."""

    def __init__(self, statement: str) -> None:
        self._statement = statement
        self._is_open, self._is_reached = threading.Event(), threading.Event()
        self._is_open.set()

    def __call__(self, sql: str) -> None:
        """The watch: called before each statement."""
        if sql == self._statement and not self._is_open.is_set():
            self._is_reached.set()
            self._is_open.wait()

    def close(self) -> None:
        """Let the next such statement wait."""
        self._is_reached.clear()
        self._is_open.clear()

    def open(self) -> None:
        """Let it go on."""
        self._is_open.set()

    def wait_until_reached(self) -> None:
        """Return when a statement waits."""
        self._is_reached.wait()


def connecting_with(watch: Watch, opened: list[Connection] | None = None) -> Callable[[SqliteOptions], Connection]:
    """What connects; the watch is told of each statement before it is executed, and ``opened`` of each connection."""

    class Watched(sqlite3.Connection):
        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            watch(sql)
            return super().execute(sql, parameters)

    def connect_watched(options: SqliteOptions) -> Connection:
        connection = connect(options, factory=Watched)
        if opened is not None:
            opened.append(connection)
        return connection

    return connect_watched


def options_in(folder: Path) -> SqliteOptions:
    return SqliteOptions(path=str(folder / "raced.db"))


def watched_store(folder: Path, watch: Watch, opened: list[Connection] | None = None) -> SqlRepository:
    """A store for threads whose statements are watched."""
    driver = SqliteDriver(options_in(folder), connecting_with(watch, opened))
    store = SqlRepository(driver, system_clock, token_counter=EstimatedTokens())
    store.open()
    return store


def gated_async_store(folder: Path, watch: Watch) -> AsyncSqlRepository:
    """A store for tasks whose statements are watched."""
    driver = AsyncSqliteDriver(options_in(folder), connecting_with(watch))
    return AsyncSqlRepository(driver, system_clock, token_counter=EstimatedTokens())
