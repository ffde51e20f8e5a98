"""The stores on the page about writing one keep the contract, and are the ones that ship."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from tests.docs.test_snippets import ROOT, blocks_of
from turnlog.storage.protocol import AsyncSessionRepository, SessionRepository
from turnlog.testing import dict_store
from turnlog.testing.clocks import FixedClock
from turnlog.testing.contract import INDEXED_METADATA, AsyncStoreContract, StoreContract
from turnlog.testing.wrong_stores import WRONG_STORES

PAGE = ROOT / "docs/how-to/write-a-store.md"


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """What the page's Python defines."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks_of(PAGE):
        if block.language == "python":
            exec(compile(block.text, str(PAGE), "exec"), namespace)  # noqa: S102 - running the page is the purpose
    return namespace


class TestDictStoreOfThePage(StoreContract):
    @pytest.fixture
    def repository(self, page: dict[str, Any], clock: FixedClock) -> SessionRepository:
        store: SessionRepository = page["DictStore"](clock, INDEXED_METADATA)
        return store


class TestInThreadsOfThePage(AsyncStoreContract):
    @pytest.fixture
    def repository(self, page: dict[str, Any], clock: FixedClock) -> AsyncSessionRepository:
        store: AsyncSessionRepository = page["InThreads"](page["DictStore"](clock, INDEXED_METADATA))
        return store


def test_the_store_on_the_page_is_the_one_that_ships() -> None:
    shipped = inspect.getsource(dict_store)
    first = next(block.text for block in blocks_of(PAGE) if block.language == "python")
    assert first == shipped[shipped.index("from __future__") :]


def test_the_page_counts_the_wrong_stores() -> None:
    assert f"and {len(WRONG_STORES)} stores that are wrong" in " ".join(PAGE.read_text(encoding="utf-8").split())
