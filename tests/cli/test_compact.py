"""``turnlog compact``: a dry run first."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conversations import assistant, system, user
from tests.cli.running import CommandLine


@pytest.fixture
def chat(turnlog: CommandLine, file_of: Callable[..., Path]) -> CommandLine:
    turns = [message for n in range(1, 5) for message in (user(f"question {n}"), assistant(f"answer {n}"))]
    turnlog.ok("import", file_of({"id": "chat", "messages": [system("be brief"), *turns]}))
    return turnlog


def test_a_dry_run_says_what_would_be_and_writes_nothing(chat: CommandLine) -> None:
    said = chat.ok("compact", "chat", "--last-turns", "1").out
    assert "covered       6 events  at 2-7" in said
    assert "pinned        1 events  at 1" in said
    assert "kept          2 events  at 8-9" in said
    assert "say --apply" in said
    assert "question 1" in chat.ok("show", "chat", "--view").out


def test_apply_makes_it_the_view_and_it_can_be_undone(chat: CommandLine) -> None:
    assert "version 10; to undo it: rewind to 9" in chat.ok("compact", "chat", "--last-turns", "1", "--apply").out
    assert "question 1" not in chat.ok("show", "chat", "--view").out
    assert "question 1" in chat.ok("show", "chat").out
    chat.ok("rewind", "chat", "9")
    assert "question 1" in chat.ok("show", "chat", "--view").out


def test_programs_get_positions_and_tokens(chat: CommandLine) -> None:
    said = json.loads(chat.ok("compact", "chat", "--last-events", "3", "--json").out)
    assert said["covered"] == [2, 3, 4, 5, 6, 7]
    assert said["boundary"] is None
    assert said["tokens_after"] < said["tokens_before"]


def test_a_view_that_fits_is_left_alone_with_the_reason(chat: CommandLine) -> None:
    assert chat.ok("compact", "chat", "--max-tokens", "5000", "--apply").out == "chat: unchanged; the view fits\n"


@pytest.mark.parametrize(
    ("options", "code"),
    [((), 2), (("--last-turns", "0"), 2), (("--last-turns", "1", "--max-tokens", "9"), 2)],
)
def test_exactly_one_bound_is_given(chat: CommandLine, options: tuple[str, ...], code: int) -> None:
    chat.fails(code, "compact", "chat", *options)


def test_an_unknown_session_is_an_error(chat: CommandLine) -> None:
    chat.fails(3, "compact", "nobody", "--last-turns", "1")


def test_one_size_is_said_and_the_options_are_named_as_they_are_typed(turnlog: CommandLine) -> None:
    for options in ([], ["--last-turns", "1", "--max-tokens", "9"]):
        assert "one of --last-turns, --last-events and --max-tokens" in turnlog.fails(2, "compact", "chat", *options)
