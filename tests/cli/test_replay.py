"""O-1: recorded conversations are held again, and what is stored is what was recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conversations import TRIP, assistant, system, tool, user
from tests.cli.running import CommandLine
from tests.conftest import ROOT
from turnlog import EventFilter, Message, SessionService, SystemMessage
from turnlog.formats.openai_chat import parse_messages

FileOf = Callable[..., Path]


def stored(turnlog: CommandLine, session: str) -> list[Message]:
    with SessionService.open(f"sqlite:{turnlog.store}") as service:
        return [event.content for event in service.events(session, EventFilter.real_only())]


def spoken(messages: list[dict[str, Any]]) -> list[Message]:
    return [message for message in parse_messages(messages) if not isinstance(message, SystemMessage)]


def test_a_conversation_is_stored_as_it_was_recorded(turnlog: CommandLine, file_of: FileOf) -> None:
    told = turnlog.ok("replay", file_of(*TRIP)).out
    assert told.startswith("chat: 2 requests, 3 model calls, 2 tool calls, 7 events, longest prompt 7 messages, ")
    assert stored(turnlog, "chat") == spoken(TRIP)


@pytest.mark.parametrize("options", [(), ("--compact-turns", 2), ("--last", 2), ("--compact-turns", 3, "--last", 1)])
def test_the_log_is_whole_however_short_the_prompts_are(turnlog: CommandLine, options: tuple[str | int, ...]) -> None:
    file = ROOT / "examples" / "conversations.jsonl"
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    held = turnlog.ok("replay", file, "--json", "--session-prefix", "again/", *options).json_lines()
    assert [each["session"] for each in held] == [f"again/{line['id']}" for line in lines]
    for line in lines:
        assert stored(turnlog, f"again/{line['id']}") == spoken(line["messages"])
    compacts = "--compact-turns" in options
    assert any(each["compactions"] for each in held) is compacts


def test_prompts_are_shown_round_by_round_with_what_compaction_did(turnlog: CommandLine, file_of: FileOf) -> None:
    talk = [system("Be brief.")]
    for turn in range(3):
        talk += [user(f"Question {turn}?"), assistant(f"Answer {turn}.")]
    lines = turnlog.ok("replay", file_of(*talk), "--prompts", "--compact-turns", 2).out.splitlines()
    assert [line.split()[1] for line in lines if line.split()[0].isdecimal()] == ["SU", "SUAU", "SUAU"]
    compactions = [line for line in lines if "compacted: the view is now" in line]
    assert [line.rsplit(" ", 1)[1] for line in compactions] == ["3-4", "6-7"]
    assert "Answer 2." in lines[-3]


def test_one_conversation_of_a_file(turnlog: CommandLine, file_of: FileOf) -> None:
    file = file_of({"id": "one", "messages": TRIP}, {"id": "two", "messages": TRIP})
    held = turnlog.ok("replay", file, "--only", "two", "--json").json_lines()
    assert [each["session"] for each in held] == ["two"]
    assert "no conversation 'three'" in turnlog.fails(3, "replay", file, "--only", "three")


def test_a_session_that_is_there_is_not_added_to(turnlog: CommandLine, file_of: FileOf) -> None:
    file = file_of(*TRIP)
    turnlog.ok("import", file)
    assert "chat" in turnlog.fails(4, "replay", file)
    turnlog.ok("replay", file, "--session-prefix", "again-")


@pytest.mark.parametrize("end", [2, 3, 5, 7])
def test_a_recording_may_end_anywhere(end: int, turnlog: CommandLine, file_of: FileOf) -> None:
    """With a request, in the middle of calls, and with results: the last batch returned directly."""
    turnlog.ok("replay", file_of(*TRIP[:end]))
    kept = stored(turnlog, "chat")
    # Calls without a recorded result have one in the log, which says so.
    assert kept[: end - 1] == spoken(TRIP[:end])
    assert len(kept) == end - 1 + (2 if end == 3 else 0)


def test_what_cannot_be_held_again_is_named_or_left_out(turnlog: CommandLine, file_of: FileOf) -> None:
    broken = [user("?"), assistant("One."), assistant("Two.")]
    file = file_of({"id": "bad", "messages": broken}, {"id": "good", "messages": TRIP})
    assert "bad cannot be held again: messages[2]: a second reply" in turnlog.fails(2, "replay", file)
    ran = turnlog.ok("replay", file, "--skip-invalid", "--json")
    assert [each["session"] for each in ran.json_lines()] == ["good"]
    assert "skipped bad: messages[2]" in ran.err


@pytest.mark.parametrize(("option", "value"), [("--compact-turns", 0), ("--last", 0), ("--last", -1)])
def test_counts_begin_at_one(option: str, value: int, turnlog: CommandLine, file_of: FileOf) -> None:
    assert option in turnlog.fails(2, "replay", file_of(*TRIP), option, value)


def test_a_file_that_is_none_is_refused_as_import_does(turnlog: CommandLine, file_of: FileOf) -> None:
    turnlog.fails(8, "replay", file_of(user("?"), tool("a", "?"), text="{nonsense"))
    turnlog.fails(8, "replay", "nowhere.jsonl")
    assert not turnlog.store.exists()
