"""An engine that fails with what is none of its own errors leaves nothing behind for the next write."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from turnlog.errors import StoreError
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.opening import system_clock
from turnlog.storage.sql import SqlRepository
from turnlog.storage.sql.drivers.sqlite import SqliteDriver, SqliteOptions
from turnlog.storage.sql.drivers.sqlite.connecting import connect
from turnlog.testing import factories


class Failing(sqlite3.Connection):
    """Raises ``error`` instead of the next statement that begins with ``word``."""

    word = ""
    error: Exception | None = None

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        error = Failing.error
        if error is not None and sql.startswith(Failing.word):
            Failing.error = None
            raise error
        return super().execute(sql, parameters)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlRepository]:
    driver = SqliteDriver(SqliteOptions(path=str(tmp_path / "s.db")), lambda options: connect(options, factory=Failing))
    with SqlRepository(driver, system_clock, token_counter=EstimatedTokens()) as opened:
        opened.create(factories.session())
        yield opened
    Failing.error = None


@pytest.mark.parametrize("error", [MemoryError(), SystemError("returned NULL without setting an exception")], ids=repr)
@pytest.mark.parametrize("word", ["BEGIN IMMEDIATE", "INSERT", "UPDATE", "COMMIT"])
def test_it_is_an_error_of_the_store_and_of_one_write_alone(store: SqlRepository, word: str, error: Exception) -> None:
    batch = [factories.user(1)]
    Failing.word, Failing.error = word, error
    with pytest.raises(StoreError) as raised:
        store.append("s", batch)
    assert raised.value.__cause__ is error
    assert store.version("s") == 0
    assert store.append("s", batch).version == 1
