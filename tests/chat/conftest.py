"""What both colours of the chat client are tested on: each embedded store, with a clock that stands still."""

from __future__ import annotations

from pathlib import Path

import pytest

from turnlog.testing.clocks import FixedClock


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path}/chat.db"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()
