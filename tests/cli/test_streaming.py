"""An import reads a file of any size in pieces: memory does not grow with it."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.conversations import assistant, user
from turnlog.cli.importing.importer import Importer
from turnlog.cli.importing.sources import Source
from turnlog.formats.openai_chat import render
from turnlog.storage.opening import open_store

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TEXT = "word " * 200


def one_message_a_line(file: TextIO, count: int) -> None:
    file.writelines(json.dumps(user(f"{number} {TEXT}")) + "\n" for number in range(count))


def one_conversation_a_line(file: TextIO, count: int) -> None:
    file.writelines(json.dumps([user(TEXT), assistant(TEXT)] * 2) + "\n" for _ in range(count // 4))


def _array(file: TextIO, elements: Iterator[Any]) -> None:
    file.write("[")
    file.writelines(", " * (index > 0) + json.dumps(element) for index, element in enumerate(elements))
    file.write("]")


def one_array_of_messages(file: TextIO, count: int) -> None:
    _array(file, (user(f"{number} {TEXT}") for number in range(count)))


def one_array_of_conversations(file: TextIO, count: int) -> None:
    _array(file, ([user(TEXT), assistant(TEXT)] * 2 for _ in range(count // 4)))


def one_object(file: TextIO, count: int) -> None:
    file.write('{"messages": ')
    one_array_of_messages(file, count)
    file.write(', "id": "big"}')


FORMS = [one_message_a_line, one_conversation_a_line, one_array_of_messages, one_array_of_conversations, one_object]


def peak_of_import(path: Path, store: Path) -> int:
    """The most memory, in bytes, that Python held at once while the file was imported."""
    with Source(str(path)) as source, open_store(f"sqlite:{store}?synchronous=OFF&unsafe=yes") as repository:
        tracemalloc.start()
        try:
            importer = Importer(source, NOON)
            importer.check()
            importer.write(repository)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


@pytest.mark.slow  # under load, as every allocation is traced
@pytest.mark.parametrize("write", FORMS)
def test_memory_does_not_grow_with_the_file(write: Callable[[TextIO, int], None], tmp_path: Path) -> None:
    peaks: list[int] = []
    for count in (1_200, 3_600):
        path = tmp_path / f"{count}.json"
        with path.open("w", encoding="utf-8") as file:
            write(file, count)
        peaks.append(peak_of_import(path, tmp_path / f"{count}.db"))
    grown = (tmp_path / "3600.json").stat().st_size - (tmp_path / "1200.json").stat().st_size
    assert grown > 2_000_000
    assert peaks[1] - peaks[0] < grown / 10, peaks


plain_messages = st.lists(st.builds(user, st.text(max_size=5)) | st.builds(assistant, st.text(max_size=5)), max_size=4)


@given(plain_messages.filter(bool), st.sampled_from([None, 1]))
def test_every_form_of_one_conversation_gives_the_same_events(
    tmp_path_factory: pytest.TempPathFactory, messages: list[Any], indent: int | None
) -> None:
    folder = tmp_path_factory.mktemp("forms")
    forms = [
        "\n".join(json.dumps(message) for message in messages),
        json.dumps(messages, indent=indent),
        json.dumps({"messages": messages}, indent=indent),
        json.dumps([messages], indent=indent),
        json.dumps([{"messages": messages}], indent=indent),
    ]
    with open_store("memory:") as repository:
        for number, text in enumerate(forms):
            path = folder / str(number) / "chat.json"
            path.parent.mkdir()
            path.write_text(text, "utf-8")
            with Source(str(path)) as source:
                importer = Importer(source, NOON)
                importer.check()
                importer.write(repository)
                assert importer.summary.new_events == (len(messages) if number == 0 else 0)
        assert render(event.content for event in repository.events("chat")) == messages
