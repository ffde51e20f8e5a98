"""The command line on a store of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import CommandLine


@pytest.fixture
def turnlog(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CommandLine:
    """``turnlog`` on a store that is not there yet."""
    return CommandLine(monkeypatch, tmp_path / "store.db")


@pytest.fixture
def file_of(tmp_path: Path) -> Callable[..., Path]:
    """Writes values as JSON Lines (or, with ``text``, what it is given) to a file and gives its path."""

    def write(*values: Any, name: str = "chat.jsonl", text: str | None = None) -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(value) + "\n" for value in values) if text is None else text, "utf-8")
        return path

    return write
