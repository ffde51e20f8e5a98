"""A service on an empty store."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from turnlog import AsyncSessionService, open_async_store
from turnlog.testing.clocks import FixedClock


@pytest.fixture
async def service(url: str, clock: FixedClock) -> AsyncIterator[AsyncSessionService]:
    async with AsyncSessionService(open_async_store(url, clock=clock), allow_system_messages=True) as opened:
        yield opened
