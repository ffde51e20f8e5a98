"""What both colours of the service are tested on: each store, with a clock that stands still."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.postgres.conftest import admin_url, database, emptied
from turnlog.testing.clocks import FixedClock

__all__ = ["admin_url", "database"]


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.store)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return emptied(request.getfixturevalue("database"))
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path}/service.db"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()
