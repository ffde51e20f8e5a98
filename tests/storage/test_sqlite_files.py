"""Which file a SQLite store is, by whatever name and from whatever folder it was opened; and why one cannot be."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from pathlib import Path

import pytest

from turnlog import SessionService, UserMessage
from turnlog.errors import InvalidValueError, StoreUnavailableError
from turnlog.storage.opening import open_async_store, open_store
from turnlog.storage.sql.drivers.sqlite.connecting import SqliteOptions
from turnlog.storage.sql.drivers.sqlite.errors import translation
from turnlog.testing import factories

pytestmark = pytest.mark.store


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder beside the working folder."""
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(here)
    return elsewhere


def test_a_store_stays_the_same_file_wherever_the_process_goes(elsewhere: Path) -> None:
    """Connections are made when they are needed: the first reader's after the first write."""
    with SessionService.open("sqlite:chat.db") as service:
        service.create("s")
        os.chdir(elsewhere)
        service.append_message("s", UserMessage("Hello"))
        assert service.version("s") == 1
    assert list(elsewhere.iterdir()) == []


def test_a_store_for_tasks_is_the_file_that_was_named_when_it_was_made(elsewhere: Path) -> None:
    async def use() -> None:
        store = open_async_store("sqlite:chat.db")
        os.chdir(elsewhere)
        async with store:
            await store.create(factories.session())

    asyncio.run(use())
    assert list(elsewhere.iterdir()) == []


def test_by_whatever_link_it_is_opened_there_is_one_lock_for_checkpoints(tmp_path: Path) -> None:
    """Two that checkpoint at once may damage a file: before SQLite 3.51.3 one lock keeps them apart (R-15)."""
    folder = tmp_path / "folder"
    folder.mkdir()
    link = tmp_path / "link.db"
    link.symlink_to(folder / "chat.db")
    for path in (folder / "chat.db", link):
        with open_store(f"sqlite:{path}") as store:
            store.create(factories.session(path.name))
    assert sorted(path.name for path in folder.iterdir()) == ["chat.db", "chat.db-checkpoint"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "link.db"]


def test_a_file_that_cannot_be_opened_is_told_with_what_stands_in_the_way(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="it is a folder"):
        open_store(f"sqlite:{tmp_path}")
    with pytest.raises(StoreUnavailableError, match=f"there is no folder {tmp_path / 'none'}$"):
        open_store(f"sqlite:{tmp_path / 'none' / 'chat.db'}")


def test_a_folder_that_cannot_be_written_to_is_told_to_those_who_read() -> None:
    error = sqlite3.OperationalError("attempt to write a readonly database")
    error.sqlite_errorcode = sqlite3.SQLITE_READONLY
    assert "its folder, which reading needs as well" in str(translation(error, "chat.db"))


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_what_names_no_file_is_refused(path: str) -> None:
    with pytest.raises(InvalidValueError, match="is no path of a file"):
        SqliteOptions(path=path)
