"""Whole requests to providers on the command line: in, out, and in again (P-1, O-5)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import CommandLine
from tests.formats.samples import PROVIDERS, accepted
from turnlog.formats import parse_request, render_request
from turnlog.storage.opening import open_store

FileOf = Callable[..., Path]

CHAT: dict[str, Any] = {
    "model": "m",
    "system": "Be brief.",
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Look."}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s1"},
                {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "x"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "5"},
                {"type": "text", "text": "And?", "cache_control": {"type": "ephemeral"}},
            ],
        },
    ],
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_recorded_requests_go_in_and_come_out_as_they_were(provider: str, turnlog: CommandLine, tmp_path: Path) -> None:
    sent = [recorded.request for recorded, whose in accepted() if whose == provider][:40]
    path = tmp_path / "sent.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        for request in sent:
            file.write(json.dumps(request) + "\n")
    turnlog.ok("import", path, "--format", provider, "--session-prefix", "x-")
    again = turnlog.ok("import", path, "--format", provider, "--session-prefix", "x-")
    assert f"{len(sent)} sessions" in again.out or ", 0 new events" in again.out
    exported = tmp_path / "out.jsonl"
    turnlog.ok("export", "--format", provider, "--output", exported)
    found = {line["id"]: line for line in map(json.loads, exported.read_text("utf-8").splitlines())}
    for number, request in enumerate(sent, 1):
        line = found["x-sent" if number == 1 else f"x-sent-{number}"]
        messages = parse_request(request, provider).messages
        assert parse_request(line, provider).messages == messages
        if messages:
            alone = parse_request(request, provider).replace(rest={}, tools=())
            assert {key: line[key] for key in render_request(alone)} == render_request(alone)


def test_a_request_becomes_a_session_with_what_stands_beside_its_messages(
    turnlog: CommandLine, file_of: FileOf
) -> None:
    turnlog.ok("import", file_of(text=json.dumps(CHAT, indent=1), name="talk.json"), "--format", "anthropic")
    with open_store(str(turnlog.store)) as store:
        session = store.find("talk")
        assert session is not None
        assert session.metadata["imported"] == {"file": "talk.json", "number": 1, "format": "anthropic", "model": "m"}
        # A version stands behind the system message, the question, the step of call and result, and the last words.
        assert [len(batch) for batch in store.iter_batches("talk")] == [1, 1, 2, 1]


def test_an_id_and_metadata_beside_the_messages_name_the_session(turnlog: CommandLine, file_of: FileOf) -> None:
    first = CHAT | {"id": "a", "metadata": {"k": 1}}
    turnlog.ok(
        "import", file_of(text=json.dumps([first, CHAT | {"id": "b"}]), name="talks.json"), "--format", "anthropic"
    )
    with open_store(str(turnlog.store)) as store:
        assert {session.id for session in store.list(limit=10)} == {"a", "b"}
        found = store.find("a")
        assert found is not None
        assert found.metadata["k"] == 1


def test_a_log_goes_out_in_another_providers_form_and_what_it_cannot_hold_is_named(
    turnlog: CommandLine, file_of: FileOf, tmp_path: Path
) -> None:
    turnlog.ok("import", file_of(CHAT, name="talk.json"), "--format", "anthropic")
    told = turnlog.ok("export", "talk", "--format", "openai-responses", "--output", tmp_path / "out.jsonl")
    assert told.err.splitlines()[-1] == (
        "left out, as openai-responses has no place for it: reasoning (1), cache_control (1)"
    )
    line = json.loads((tmp_path / "out.jsonl").read_text("utf-8"))
    assert line["instructions"] == "Be brief."
    assert [item.get("type", item.get("role")) for item in line["input"]] == [
        "user",
        "function_call",
        "function_call_output",
        "user",
    ]
    assert "s1" not in json.dumps(line)


def test_what_openai_chat_cannot_hold_is_named_too(turnlog: CommandLine, file_of: FileOf) -> None:
    turnlog.ok("import", file_of(CHAT, name="talk.json"), "--format", "anthropic")
    told = turnlog.ok("export", "talk", "--format", "openai-chat")
    assert told.err == "left out, as openai-chat has no place for it: reasoning (1), cache_control (1)\n"


def test_a_wrong_request_is_named_with_line_and_place_and_nothing_is_written(
    turnlog: CommandLine, file_of: FileOf
) -> None:
    wrong = {"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]}
    path = file_of(CHAT, wrong, name="talk.jsonl")
    told = turnlog.fails(8, "import", path, "--format", "anthropic")
    assert "talk.jsonl:2: messages[0].content[0].text must be a string, not a number" in told
    assert not turnlog.store.exists()


def test_damaged_lines_can_be_left_out(turnlog: CommandLine, file_of: FileOf) -> None:
    path = file_of(text=f"{json.dumps(CHAT)}\n{{broken\nnull\n{json.dumps(CHAT)}\n", name="talk.jsonl")
    told = turnlog.ok("import", path, "--format", "anthropic", "--skip-invalid")
    assert f"skipped {path}:2: invalid JSON" in told.err
    assert f"skipped {path}:3: the request must be an object, not null" in told.err
    with open_store(str(turnlog.store)) as store:
        assert {session.id for session in store.list(limit=10)} == {"talk", "talk-4"}


def test_the_view_goes_out_too(turnlog: CommandLine, file_of: FileOf) -> None:
    turnlog.ok("import", file_of(CHAT, name="talk.json"), "--format", "anthropic")
    turnlog.ok("clear", "talk")
    line = json.loads(turnlog.ok("export", "talk", "--format", "gemini", "--view").out)
    assert line["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert "Look." in turnlog.ok("export", "talk", "--format", "gemini").out
    assert "Look." not in json.dumps(line)
