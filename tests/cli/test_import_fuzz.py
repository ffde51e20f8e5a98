"""Whatever bytes a file holds: it is imported, or refused by a typed error; never half of a log, never a traceback."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.formats.json_strategies import messages, odd_messages
from turnlog.cli.importing.importer import Importer, Summary
from turnlog.cli.importing.sources import Source
from turnlog.errors import ImportFormatError
from turnlog.formats import openai_chat, portable
from turnlog.log.session import Session
from turnlog.storage.opening import open_store
from turnlog.storage.protocol import SessionRepository
from turnlog.testing.strategies import batches

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def imported(data: bytes, repository: SessionRepository, *, skip_invalid: bool = False) -> Summary | None:
    """Import a file with these bytes; None where it is refused, and then nothing may have been stored."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "chat.jsonl"
        path.write_bytes(data)
        with Source(str(path)) as source:
            try:
                importer = Importer(source, NOON, skip_invalid=skip_invalid)
                importer.check()
            except ImportFormatError as error:
                assert str(error).startswith(f"{path}:")  # noqa: PT017 - most files are refused, and some are not
                assert not repository.list().sessions
                return None
            summary = importer.write(repository)
    assert summary.new_events + summary.replayed_events == summary.events
    return summary


conversations: st.SearchStrategy[list[Any]] = st.lists(messages | odd_messages(), max_size=3)
fields: st.SearchStrategy[dict[str, Any]] = st.dictionaries(st.text(max_size=3), st.integers())


def _object(both: tuple[list[Any], dict[str, Any]]) -> dict[str, Any]:
    return {"messages": both[0]} | both[1]


values: st.SearchStrategy[Any] = (
    conversations | st.tuples(conversations, fields).map(_object) | odd_messages() | st.none()
)


@given(st.lists(values, max_size=4), st.sampled_from(["lines", "document", "pretty"]), st.booleans())
def test_any_json(found: list[Any], form: str, skip_invalid: bool) -> None:  # noqa: FBT001 - drawn
    text = (
        "\n".join(map(json.dumps, found))
        if form == "lines"
        else json.dumps(found, indent=2 if form == "pretty" else None)
    )
    with open_store("memory:") as repository:
        summary = imported(text.encode(), repository, skip_invalid=skip_invalid)
        if summary is not None:
            again = imported(text.encode(), repository, skip_invalid=skip_invalid)
            assert again is not None
            assert again.new_events == 0


@given(st.lists(messages, min_size=1, max_size=5), st.integers(0, 10**6), st.binary(max_size=3), st.integers(0, 5))
def test_damaged_json_lines(found: list[Any], at: int, put: bytes, lost: int) -> None:
    data = "".join(json.dumps(message) + "\n" for message in found).encode()
    at %= len(data)
    damaged = data[:at] + put + data[at + lost :]
    for skip_invalid in (False, True):
        with open_store("memory:") as repository:
            imported(damaged, repository, skip_invalid=skip_invalid)


@given(batches("s", max_batches=5), st.integers(0, 10**6), st.binary(max_size=3), st.integers(0, 5))
def test_damaged_files_of_turnlogs_own(log: list[Any], at: int, put: bytes, lost: int) -> None:
    with open_store("memory:") as repository:
        repository.restore(Session(id="s", created_at=NOON), log)
        data = b"".join(
            portable.write(Session(id="s", created_at=NOON), sum(map(len, log)), repository.iter_batches("s"))
        )
    at %= len(data)
    damaged = data[:at] + put + data[at + lost :]
    for skip_invalid in (False, True):
        with open_store("memory:") as repository:
            imported(damaged, repository, skip_invalid=skip_invalid)


@given(st.binary(max_size=60))
def test_any_bytes(data: bytes) -> None:
    with open_store("memory:") as repository:
        imported(data, repository, skip_invalid=True)


@given(st.lists(messages, min_size=2, max_size=6))
def test_right_conversations_come_back_as_they_were(found: list[Any]) -> None:
    data = "".join(json.dumps(message) + "\n" for message in found).encode()
    expected = [json.loads(line) for line in data.splitlines()]
    with open_store("memory:") as repository:
        assert imported(data, repository) is not None
        assert openai_chat.render(event.content for event in repository.events("chat")) == expected
