"""What both colours of the chat client are tested on: a store in memory, with a clock that stands still."""

from __future__ import annotations

import pytest

from turnlog.testing.clocks import FixedClock


@pytest.fixture
def url() -> str:
    return "memory:"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()
