"""Every store of turnlog's own passes the contract that it ships, in both colours."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from turnlog.storage.opening import open_async_store, open_store
from turnlog.storage.protocol import AsyncSessionRepository, SessionRepository
from turnlog.testing.clocks import FixedClock
from turnlog.testing.contract import INDEXED_METADATA, AsyncStoreContract, StoreContract


class TestMemory(StoreContract):
    @pytest.fixture
    def repository(self, clock: FixedClock) -> Iterator[SessionRepository]:
        with open_store("memory:", clock=clock, indexed_metadata=INDEXED_METADATA) as store:
            yield store


class TestAsyncMemory(AsyncStoreContract):
    @pytest.fixture
    async def repository(self, clock: FixedClock) -> AsyncIterator[AsyncSessionRepository]:
        async with open_async_store("memory:", clock=clock, indexed_metadata=INDEXED_METADATA) as store:
            yield store


class TestSqliteFile(StoreContract):
    @pytest.fixture
    def repository(self, clock: FixedClock, tmp_path: Path) -> Iterator[SessionRepository]:
        url = f"sqlite:{tmp_path / 'log.db'}"
        with open_store(url, clock=clock, indexed_metadata=INDEXED_METADATA) as store:
            yield store


class TestAsyncSqliteFile(AsyncStoreContract):
    @pytest.fixture
    async def repository(self, clock: FixedClock, tmp_path: Path) -> AsyncIterator[AsyncSessionRepository]:
        url = f"sqlite:{tmp_path / 'log.db'}"
        async with open_async_store(url, clock=clock, indexed_metadata=INDEXED_METADATA) as store:
            yield store


class TestSqliteInMemory(StoreContract):
    @pytest.fixture
    def repository(self, clock: FixedClock) -> Iterator[SessionRepository]:
        with open_store("sqlite::memory:", clock=clock, indexed_metadata=INDEXED_METADATA) as store:
            yield store


class TestAsyncSqliteInMemory(AsyncStoreContract):
    @pytest.fixture
    async def repository(self, clock: FixedClock) -> AsyncIterator[AsyncSessionRepository]:
        async with open_async_store("sqlite::memory:", clock=clock, indexed_metadata=INDEXED_METADATA) as store:
            yield store
