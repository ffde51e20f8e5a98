"""Fixtures of the tests of reading: each runs on ``EventFilter.apply`` and on every store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.log.readers import READERS, Reader, open_reader


@pytest.fixture(scope="module", params=READERS)
def reader(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """One way to read; logs that are written to it do not meet, so tests may share it."""
    name: str = request.param
    with open_reader(name, tmp_path_factory.mktemp("reader")) as opened:
        yield opened
