"""The stores on the page about writing one keep the contract, are the ones that ship, and last where they say so."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_snippets import ROOT, blocks_of
from turnlog.errors import AppendOutcomeUnknownError, UnreadableDataError
from turnlog.storage.protocol import AsyncSessionRepository, RecordKeeper, SessionRepository
from turnlog.storage.whole_logs import WholeLogRepository
from turnlog.testing import dict_store
from turnlog.testing.clocks import FixedClock
from turnlog.testing.contract import INDEXED_METADATA, AsyncStoreContract, StoreContract
from turnlog.testing.factories import assistant, event, session, user
from turnlog.testing.wrong_stores import WRONG_STORES

PAGE = ROOT / "docs/how-to/write-a-store.md"
PROCESSES, APPENDS = 4, 25


def definitions() -> dict[str, Any]:
    """What the page's Python defines."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks_of(PAGE):
        if block.language == "python":
            exec(compile(block.text, str(PAGE), "exec"), namespace)  # noqa: S102 - running the page is the purpose
    return namespace


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    return definitions()


@pytest.fixture
def folder(page: dict[str, Any], tmp_path: Path) -> Callable[[], SessionRepository]:
    """Opens the store over one folder, as often as it is called."""

    def opened() -> SessionRepository:
        keeper: RecordKeeper = page["FolderKeeper"](tmp_path)
        return WholeLogRepository(keeper)

    return opened


class TestDictStoreOfThePage(StoreContract):
    @pytest.fixture
    def repository(self, page: dict[str, Any], clock: FixedClock) -> SessionRepository:
        store: SessionRepository = page["DictStore"](clock, INDEXED_METADATA)
        return store


class TestFolderOfThePage(StoreContract):
    @pytest.fixture
    def repository(self, page: dict[str, Any], clock: FixedClock, tmp_path: Path) -> SessionRepository:
        return WholeLogRepository(page["FolderKeeper"](tmp_path), clock, INDEXED_METADATA)


class TestInThreadsOfThePage(AsyncStoreContract):
    @pytest.fixture
    def repository(self, page: dict[str, Any], clock: FixedClock) -> AsyncSessionRepository:
        store: AsyncSessionRepository = page["InThreads"](page["DictStore"](clock, INDEXED_METADATA))
        return store


def test_the_store_on_the_page_is_the_one_that_ships() -> None:
    shipped = inspect.getsource(dict_store)
    first = next(block.text for block in blocks_of(PAGE) if block.language == "python")
    assert first == shipped[shipped.index("from __future__") :]


def test_the_store_on_the_page_is_short() -> None:
    """It must be taken in at a glance: all that is no blank line, imports included."""
    for block in [block for block in blocks_of(PAGE) if block.language == "python"][:2]:
        assert len([line for line in block.text.splitlines() if line]) <= 60


def test_what_a_folder_keeps_is_there_when_it_is_opened_again(folder: Callable[[], SessionRepository]) -> None:
    with folder() as store:
        store.create(session("a"))
        store.create(session("b"))
        store.append("b", [user(1, session_id="b"), assistant(2, "\ud800", session_id="b")])
        log = store.events("b")
        store.delete("a")
    with folder() as store:
        store.create(session("a"))
        assert store.events("b") == log
        assert [one.id for one in store.list()] == ["b", "a"]


def test_a_write_of_the_folder_that_fails_leaves_the_record_before_it(
    folder: Callable[[], SessionRepository], monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-14: it is not known what came of it, and appending again settles it."""

    def no_disk(_: int) -> None:
        raise OSError("the disk is gone")

    with folder() as store:
        store.create(session())
        store.append("s", [user(1)])
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", no_disk)
            with pytest.raises(AppendOutcomeUnknownError):
                store.append("s", [user(2)])
        assert [one.id for one in store.events("s")] == ["e1"]
        assert store.append("s", [user(2)]).version == 2


def test_a_damaged_file_of_the_folder_is_an_error_that_names_the_session(
    folder: Callable[[], SessionRepository], tmp_path: Path
) -> None:
    """R-10."""
    with folder() as store:
        store.create(session())
        (file,) = tmp_path.glob("*.record")
        file.write_bytes(file.read_bytes()[:-1])
        with pytest.raises(UnreadableDataError, match="session 's'"):
            store.events("s")


def test_processes_share_a_folder(folder: Callable[[], SessionRepository], tmp_path: Path) -> None:
    """No append is lost, no position comes twice, and no serial either."""
    with folder() as store:
        store.create(session())
    writers = [
        subprocess.Popen([sys.executable, "-m", __name__, str(tmp_path), f"w{number}"], cwd=ROOT)
        for number in range(PROCESSES)
    ]
    assert [writer.wait(50) for writer in writers] == [0] * PROCESSES
    with folder() as store:
        assert [one.position for one in store.events("s")] == list(range(1, PROCESSES * APPENDS + 1))
        tallies = [store.tally(one.id) for one in store.list(limit=500)]
    assert len({tally.log for tally in tallies if tally}) == PROCESSES * APPENDS + 1


def _append_and_create(place: Path, name: str) -> None:
    store: SessionRepository = WholeLogRepository(definitions()["FolderKeeper"](place))
    for number in range(APPENDS):
        store.append("s", [event(0, user(0).message, id=f"{name}.{number}")])
        store.create(session(f"{name}.{number}"))


def test_the_page_counts_the_wrong_stores() -> None:
    assert f"and {len(WRONG_STORES)} stores that are wrong" in " ".join(PAGE.read_text(encoding="utf-8").split())


if __name__ == "__main__":
    _append_and_create(Path(sys.argv[1]), sys.argv[2])
