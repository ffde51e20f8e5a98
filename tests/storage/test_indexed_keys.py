"""V-2: an index that is filled while other processes have the store open is kept by them too."""

from __future__ import annotations

from pathlib import Path

import pytest

from turnlog import SessionChange, open_async_store, open_store
from turnlog.storage.sql import SqlRepository
from turnlog.testing.factories import session, user


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path}/indexed.db"


def filled(url: str) -> None:
    """What ``turnlog index team`` does, in a process of its own."""
    with open_store(url) as store:
        assert isinstance(store, SqlRepository)
        store.fill_index("team")


def test_whoever_opened_it_before_indexes_by_the_new_key(url: str) -> None:
    with open_store(url) as before:
        before.create(session("first", metadata={"team": "red"}))
        filled(url)
        before.create(session("second", metadata={"team": "red"}))
        before.update("first", SessionChange(set={"team": "blue"}))
        before.restore(session("third", metadata={"team": "blue"}), [[user(1, session_id="third")]])
        before.fork("third", session("fourth", metadata={"team": "red"}))
        with open_store(url, indexed_metadata=["team"]) as after:
            assert [found.id for found in after.find_by_metadata("team", "red")] == ["second", "fourth"]
            assert [found.id for found in after.find_by_metadata("team", "blue")] == ["first", "third"]


async def test_tasks_do_too(url: str) -> None:
    async with open_async_store(url) as before:
        await before.create(session("first"))
        filled(url)
        await before.create(session("second", metadata={"team": "red"}))
        async with open_async_store(url, indexed_metadata=["team"]) as after:
            assert [found.id for found in await after.find_by_metadata("team", "red")] == ["second"]
