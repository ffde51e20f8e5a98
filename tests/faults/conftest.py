"""A folder in memory where the machine has one: thousands of files are opened, and no disk is part of the test."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.stores import write_template

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - each test run makes its own folder in it


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    place = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="turnlog-", dir=place) as name:
        yield Path(name)


@pytest.fixture(scope="session")
def template(folder: Path) -> Path:
    """The file that `tests.faults.operations.prepare` writes."""
    return write_template(folder / "template.db")
