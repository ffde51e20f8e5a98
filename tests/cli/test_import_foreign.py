"""``import`` of what other programs keep: Claude Code, Codex, ChatGPT (O-5)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.running import CommandLine
from tests.formats.foreign.claude_lines import SESSION, Transcript, text, use
from tests.formats.foreign.test_chatgpt import HELLO, ROOT, conversation, node
from tests.formats.foreign.test_chatgpt import text as parts
from tests.formats.foreign.test_codex import CONTEXT, META, call, output, said, user, wrapped
from turnlog.cli.importing.conversations import Form
from turnlog.cli.importing.importer import Importer
from turnlog.cli.importing.sources import Source
from turnlog.errors import ImportFormatError
from turnlog.storage.opening import open_store

FileOf = Callable[..., Path]

CLAUDE = (
    Transcript()
    .user("u1", "Which files?")
    .assistant("a1", "m1", text("Let me look."))
    .assistant("a2", "m1", use("t1", command="ls"))
    .result("r1", "t1", "a b")
    .assistant("a3", "m2", text("Two: a and b."))
    .lines
)
CODEX = wrapped(META, CONTEXT, user("Which files?"), call("c1"), output("c1"), said("Two."))
CODEX_SESSION = "019c0000-0000-7000-8000-000000000001"
CHATGPT = [
    conversation(
        ROOT,
        HELLO,
        node("a1", "u1", "assistant", parts("In Oslo.")),
        node("a2", "u1", "assistant", parts("In Rome.")),
        current="a2",
    ),
    conversation(ROOT, HELLO, current="u1", conversation_id="conv-2"),
    conversation(conversation_id="empty"),
]


def said_in(turnlog: CommandLine, session: str) -> list[str]:
    """What the log holds, an event each: a role and its text, or a type."""
    lines = turnlog.ok("show", session, "--json").json_lines()
    return [_said(line) for line in lines]


def _said(line: dict[str, Any]) -> str:
    message = line.get("message")
    if message is None:
        return str(line["type"])
    where = f"{line['branch']}: " if line["branch"] else ""
    calls = "".join(f" {call['id']}?" for call in message.get("tool_calls", ()))
    return f"{where}{message['role']} {message.get('content')}{calls}"


@pytest.mark.parametrize(
    ("content", "form", "session", "count"),
    [
        (CLAUDE, "claude-code", SESSION, 4),
        (CODEX, "codex", CODEX_SESSION, 6),
        (CHATGPT, "chatgpt", "conv-1", 2),
    ],
)
@pytest.mark.parametrize("layout", ["plain", "gzipped", "named"])
def test_each_form_is_told_from_the_file(
    turnlog: CommandLine, tmp_path: Path, content: list[Any], form: str, session: str, count: int, layout: str
) -> None:
    data = json.dumps(content) if form == "chatgpt" else "".join(json.dumps(line) + "\n" for line in content)
    path = tmp_path / "export.json"
    path.write_bytes(gzip.compress(data.encode()) if layout == "gzipped" else data.encode())
    turnlog.ok("import", path, *(["--format", form] if layout == "named" else []))
    assert len(said_in(turnlog, session)) == count
    (listed,) = [line for line in turnlog.ok("sessions", "--json").json_lines() if line["id"] == session]
    assert listed["metadata"]["imported"]["format"] == form


def test_a_pretty_printed_export_is_told_too(turnlog: CommandLine, file_of: FileOf) -> None:
    turnlog.ok("import", file_of(text="\ufeff" + json.dumps(CHATGPT, indent=2)))
    assert said_in(turnlog, "conv-1") == ["user Where is it warm?", "assistant In Rome."]


def test_a_session_of_claude_code_is_stored_step_by_step(turnlog: CommandLine, file_of: FileOf) -> None:
    turnlog.ok("import", file_of(*CLAUDE), "--principal", "ann", "--session-prefix", "old/")
    session = f"old/{SESSION}"
    assert said_in(turnlog, session) == [
        "user Which files?",
        "assistant Let me look. t1?",
        "tool None",
        "assistant Two: a and b.",
    ]
    with open_store(str(turnlog.store)) as store:
        assert [len(batch) for batch in store.iter_batches(session)] == [1, 2, 1]
        found = store.find(session)
        assert found is not None
        assert found.created_at == datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
        assert found.principal == "ann"
        assert found.metadata["imported"] == {
            "file": "chat.jsonl",
            "format": "claude-code",
            "cwd": "/home/ann/shop",
            "git_branch": "main",
            "version": "2.1.30",
        }
        times = [event.timestamp for event in store.events(session)]
    assert times == sorted(times)


def test_side_chains_are_branches_of_the_log(turnlog: CommandLine, file_of: FileOf) -> None:
    side: dict[str, Any] = {"isSidechain": True, "agentId": "a7f3"}
    transcript = Transcript().user("u1", "Find it.").assistant("a1", "m1", use("t1"))
    transcript.user("s1", "Search.", parentUuid=None, **side).assistant("s2", "m2", text("Found."), **side)
    transcript.result("r1", "t1", parentUuid="a1")
    turnlog.ok("import", file_of(*transcript.lines))
    assert said_in(turnlog, SESSION) == [
        "user Find it.",
        "assistant None t1?",
        "agent-a7f3: user Search.",
        "agent-a7f3: assistant Found.",
        "tool None",
    ]
    assert len(turnlog.ok("show", SESSION, "--root", "--json").json_lines()) == 3


def test_importing_again_stores_what_is_new_and_nothing_else(turnlog: CommandLine, file_of: FileOf) -> None:
    transcript = Transcript().user("u1", "Which files?").assistant("a1", "m1", use("t1"))
    path = file_of(*transcript.lines)
    turnlog.ok("import", path)
    transcript.result("r1", "t1").assistant("a2", "m2", text("Two.")).user("u2", "Thanks.")
    file_of(*transcript.lines)
    assert "0 new sessions, 3 new events; 2 events were there already" in turnlog.ok("import", path).out
    assert "0 new sessions, 0 new events; 5 events were there already" in turnlog.ok("import", path).out
    assert len(said_in(turnlog, SESSION)) == 5


def test_a_file_whose_conversation_went_another_way_is_refused_and_changes_nothing(
    turnlog: CommandLine, file_of: FileOf
) -> None:
    """B95: what is stored is never replaced by another branch of the file."""
    transcript = Transcript().user("u1", "Hello").assistant("a1", "m1", text("Hi.")).user("u2", "Wrong way")
    turnlog.ok("import", file_of(*transcript.lines))
    before = said_in(turnlog, SESSION)
    transcript.user("u3", "Right way", parentUuid="a1")
    turnlog.fails(4, "import", file_of(*transcript.lines))
    assert said_in(turnlog, SESSION) == before
    turnlog.ok("import", file_of(*transcript.lines), "--session-prefix", "again/")
    assert said_in(turnlog, f"again/{SESSION}")[-1] == "user Right way"


def test_ways_left_behind_in_chatgpt_are_sessions_that_name_their_source(turnlog: CommandLine, file_of: FileOf) -> None:
    path = file_of(text=json.dumps(CHATGPT))
    (said_so,) = turnlog.ok("import", path, "--session-prefix", "gpt/", "--dry-run", "--json").json_lines()
    assert said_so["summary"]["forks"] == ["gpt/conv-1/a1"]
    ran = turnlog.ok("import", path, "--session-prefix", "gpt/")
    assert "1 session is a way through a conversation that was left behind, 'gpt/conv-1/a1' the first of" in ran.err
    sessions = {line["id"]: line["metadata"] for line in turnlog.ok("sessions", "--json").json_lines()}
    assert set(sessions) == {"gpt/conv-1", "gpt/conv-1/a1", "gpt/conv-2"}
    assert said_in(turnlog, "gpt/conv-1/a1") == ["user Where is it warm?", "assistant In Oslo."]
    assert sessions["gpt/conv-1/a1"]["forked_from"] == "gpt/conv-1"
    assert sessions["gpt/conv-1/a1"]["imported"]["forked_at"] == "u1"


def test_conversations_without_an_id_are_named_by_the_file_and_their_place(
    turnlog: CommandLine, file_of: FileOf
) -> None:
    found = [conversation(HELLO | {"parent": None}, conversation_id=None) for _ in range(2)]
    turnlog.ok("import", file_of(text=json.dumps(found), name="conversations.json"))
    sessions = {line["id"] for line in turnlog.ok("sessions", "--json").json_lines()}
    assert sessions == {"conversations", "conversations-2"}


def test_what_became_no_event_is_said(turnlog: CommandLine, file_of: FileOf) -> None:
    lines = [*CLAUDE, {"type": "summary", "summary": "Files", "leafUuid": "a3"}]
    path = file_of(*lines)
    assert "chat.jsonl: became no event: 1 summary" in turnlog.ok("import", path, "--dry-run").err
    (said_so,) = turnlog.ok("import", path, "--json").json_lines()
    assert said_so["summary"]["left_out"] == {"summary": 1}


def test_a_file_of_titles_alone_makes_no_session(turnlog: CommandLine, file_of: FileOf) -> None:
    path = file_of({"type": "summary", "summary": "Files", "leafUuid": "a3"})
    assert "0 new sessions" in turnlog.ok("import", path).out


BROKEN = [
    (
        [*CLAUDE[:2], {"type": "user", "sessionId": SESSION, "message": {"content": 5}}, *CLAUDE[2:]],
        3,
        "message.content m",
    ),
    ([*CODEX[:3], {"type": "response_item", "payload": {"type": "function_call"}}, *CODEX[3:]], 4, "payload has no 'c"),
]


@pytest.mark.parametrize(("lines", "number", "reason"), BROKEN)
def test_a_wrong_line_is_named_or_skipped(
    turnlog: CommandLine, file_of: FileOf, lines: list[Any], number: int, reason: str
) -> None:
    path = file_of(*lines)
    assert f"chat.jsonl:{number}: {reason}" in turnlog.fails(8, "import", path)
    assert not turnlog.store.exists()
    ran = turnlog.ok("import", path, "--skip-invalid")
    assert f"skipped {path}:{number}: {reason}" in ran.err


def test_a_line_that_is_no_json_is_named_or_skipped(turnlog: CommandLine, file_of: FileOf) -> None:
    text_of = "".join(json.dumps(line) + "\n" for line in CLAUDE[:2]) + '{"type": "user"\n'
    text_of += "".join(json.dumps(line) + "\n" for line in CLAUDE[2:])
    path = file_of(text=text_of)
    assert "chat.jsonl:3: invalid JSON" in turnlog.fails(8, "import", path)
    turnlog.ok("import", path, "--skip-invalid")
    assert len(said_in(turnlog, SESSION)) == 4


def test_a_wrong_conversation_of_an_export_is_named_or_skipped(turnlog: CommandLine, file_of: FileOf) -> None:
    wrong = conversation({"id": "x", "parent": None, "message": 5}, current="x", conversation_id="wrong")
    path = file_of(text="[\n" + ",\n".join(map(json.dumps, [CHATGPT[0], wrong, CHATGPT[1]])) + "\n]")
    assert "chat.jsonl:3: mapping['x'].message must be an object" in turnlog.fails(8, "import", path)
    ran = turnlog.ok("import", path, "--skip-invalid")
    assert f"skipped {path}:3" in ran.err
    assert "3 new sessions" in ran.out


def test_an_export_that_is_cut_short_is_refused_with_its_line(turnlog: CommandLine, file_of: FileOf) -> None:
    path = file_of(text=json.dumps(CHATGPT, indent=1)[:-10])
    assert "invalid JSON" in turnlog.fails(8, "import", path, "--skip-invalid")


def test_other_files_are_not_taken_for_these(turnlog: CommandLine, file_of: FileOf) -> None:
    """A text that speaks of a mapping, or of sessions, is no such file."""
    chat = {"role": "user", "content": 'What is {"mapping": {"title": 1}, "sessionId": "s"}?', "title": "x"}
    turnlog.ok("import", file_of(chat, {"role": "assistant", "content": "JSON."}))
    assert len(said_in(turnlog, "chat")) == 2


@given(
    st.sampled_from([Form.CLAUDE_CODE, Form.CODEX, Form.CHATGPT]),
    st.sampled_from([CLAUDE, CODEX, CHATGPT]),
    st.lists(st.tuples(st.integers(0, 4_000), st.binary(max_size=3)), max_size=3),
    st.booleans(),
)
def test_whatever_bytes_a_file_holds_it_is_imported_or_refused(
    form: Form,
    content: list[Any],
    damage: list[tuple[int, bytes]],
    skip_invalid: bool,  # noqa: FBT001 - drawn
) -> None:
    data = json.dumps(content) if content is CHATGPT else "\n".join(map(json.dumps, content))
    damaged = bytearray(data.encode())
    for at, bytes_ in damage:
        damaged[at : at + len(bytes_)] = bytes_
    with TemporaryDirectory() as folder, open_store("memory:") as store:
        path = Path(folder) / "export.json"
        path.write_bytes(damaged)
        with Source(str(path)) as source:
            importer = Importer(source, datetime(2026, 1, 1, tzinfo=UTC), form=form, skip_invalid=skip_invalid)
            try:
                importer.check()
            except ImportFormatError as error:
                assert str(error).startswith(f"{path}:")  # noqa: PT017 - most files are refused, and some are not
                return
            summary = importer.write(store)
    assert summary.new_events == summary.events
