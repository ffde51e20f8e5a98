"""A service on an empty store."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from turnlog import AsyncSessionService, open_async_store
from turnlog.testing.clocks import FixedClock


@pytest.fixture
async def service(url: str, clock: FixedClock) -> AsyncIterator[AsyncSessionService]:
    store = open_async_store(url, clock=clock, indexed_metadata=["team"])
    async with AsyncSessionService(store) as opened:
        yield opened
