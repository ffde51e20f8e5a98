"""The PostgreSQL store passes the contract, in both colours."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from turnlog.storage.opening import open_async_store, open_store
from turnlog.storage.protocol import AsyncSessionRepository, SessionRepository
from turnlog.testing.clocks import FixedClock
from turnlog.testing.contract import INDEXED_METADATA, AsyncStoreContract, StoreContract

pytestmark = pytest.mark.store


class TestPostgres(StoreContract):
    @pytest.fixture
    def repository(self, clock: FixedClock, url: str) -> Iterator[SessionRepository]:
        with open_store(url, clock=clock, indexed_metadata=INDEXED_METADATA) as store:
            yield store


class TestAsyncPostgres(AsyncStoreContract):
    @pytest.fixture
    async def repository(self, clock: FixedClock, url: str) -> AsyncIterator[AsyncSessionRepository]:
        async with open_async_store(url, clock=clock, indexed_metadata=INDEXED_METADATA) as store:
            yield store
