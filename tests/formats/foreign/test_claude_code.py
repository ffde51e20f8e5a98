"""Claude Code's session files: messages over several lines, side chains, what was left behind (O-5)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.foreign.claude_lines import SESSION, Transcript, text, thinking, use
from tests.formats.json_strategies import json_values
from turnlog.formats import claude_code
from turnlog.formats.claude_code import Survey
from turnlog.formats.foreign import Entry
from turnlog.log.messages import (
    AssistantMessage,
    MediaPart,
    MessageMetadata,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolStatus,
    UserMessage,
)


def read(lines: Iterable[Any]) -> tuple[list[Entry], Survey, list[tuple[int, str]]]:
    numbered = list(enumerate(lines, 1))
    faults: list[tuple[int, str]] = []
    found = claude_code.survey(numbered)
    entries = list(claude_code.read(numbered, found, lambda line, reason: faults.append((line, reason))))
    return entries, found, faults


def entries_of(transcript: Transcript) -> list[Entry]:
    entries, _, faults = read(transcript.lines)
    assert not faults
    return entries


def shown(entries: Iterable[Entry]) -> list[str]:
    """Each entry in a word: who says what, on which branch."""
    return [_shown(entry) for entry in entries]


def _shown(entry: Entry) -> str:
    message = entry.message
    where = "" if entry.branch is None else f"{entry.branch}: "
    if message is None:
        return f"{where}{entry.type.name}"
    if isinstance(message, ToolMessage):
        return f"{where}={','.join(result.id for result in message.results)}"
    calls = "".join(f" {call.id}?" for call in message.tool_calls) if isinstance(message, AssistantMessage) else ""
    return f"{where}{message.type.value[0]} {message.text}{calls}"


def test_a_reply_over_several_lines_is_one_message() -> None:
    transcript = Transcript().user("u1", "How many?")
    transcript.assistant("a1", "m1", thinking("Count them.")).assistant("a2", "m1", text("Let me count."))
    transcript.assistant("a3", "m1", use("toolu_1", command="wc -l")).result("r1", "toolu_1")
    question, reply, result = entries_of(transcript)
    assert question.message == UserMessage("How many?")
    assert reply.message == AssistantMessage(
        [ReasoningPart(text="Count them.", signature="c2ln"), TextPart("Let me count.")],
        tool_calls=[ToolCall("toolu_1", "Bash", '{"command":"wc -l"}')],
    )
    assert isinstance(reply.message, AssistantMessage)
    assert reply.message.metadata == {MessageMetadata.USAGE: {"input_tokens": 103, "output_tokens": 7}}
    assert reply.metadata == {"claude_code": {"uuid": "a1", "request_id": "req_m1", "model": "claude-opus-4-6"}}
    assert result.message == ToolMessage([ToolResult("toolu_1", "5")])
    assert [entry.timestamp for entry in (question, reply)] == [
        datetime(2026, 3, 1, 10, 0, tzinfo=UTC),
        datetime(2026, 3, 1, 10, 1, tzinfo=UTC),
    ]


def test_parallel_calls_answered_between_the_lines_of_their_reply_stay_one_step() -> None:
    transcript = Transcript().user("u1", "Both?").assistant("a1", "m1", use("t1")).result("r1", "t1", parentUuid="a1")
    transcript.assistant("a2", "m1", use("t2"), parentUuid="a1").result("r2", "t2", parentUuid="a2")
    transcript.assistant("a3", "m2", text("Done."), parentUuid="r1")
    assert shown(entries_of(transcript)) == ["u Both?", "a  t1? t2?", "=t1", "=t2", "a Done."]


def test_a_result_that_comes_late_is_put_next_to_its_call() -> None:
    transcript = Transcript().user("u1", "Start it.").assistant("a1", "m1", use("t1"))
    transcript.user("u2", "Are you there?").result("r1", "t1").assistant("a2", "m2", text("Yes."))
    assert shown(entries_of(transcript)) == ["u Start it.", "a  t1?", "=t1", "u Are you there?", "a Yes."]


def test_a_call_that_was_never_answered_stays() -> None:
    transcript = Transcript().user("u1", "Go.").assistant("a1", "m1", use("t1")).user("u2", "Stop.")
    assert shown(entries_of(transcript)) == ["u Go.", "a  t1?", "u Stop."]


def test_a_side_chain_is_the_branch_of_its_agent() -> None:
    transcript = Transcript().user("u1", "Find it.").assistant("a1", "m1", use("t1", "Task"))
    side: dict[str, Any] = {"isSidechain": True, "agentId": "a7f.3"}
    transcript.user("s1", "Search.", parentUuid=None, **side).assistant("s2", "m2", use("t2"), **side)
    transcript.result("s3", "t2", **side).assistant("s4", "m3", text("Found."), **side)
    transcript.result("r1", "t1", "Found.", parentUuid="a1").assistant("a2", "m4", text("Here."))
    assert shown(entries_of(transcript)) == [
        "u Find it.",
        "a  t1?",
        "agent-a7f_3: u Search.",
        "agent-a7f_3: a  t2?",
        "agent-a7f_3: =t2",
        "agent-a7f_3: a Found.",
        "=t1",
        "a Here.",
    ]


def test_side_chains_of_older_files_are_told_apart_by_their_parents() -> None:
    transcript = Transcript().user("u1", "Find both.")
    transcript.user("s1", "One.", parentUuid=None, isSidechain=True)
    transcript.user("x1", "Two.", parentUuid=None, isSidechain=True)
    transcript.assistant("s2", "m1", text("1"), parentUuid="s1", isSidechain=True)
    transcript.assistant("x2", "m2", text("2"), parentUuid="x1", isSidechain=True)
    branches = [entry.branch for entry in entries_of(transcript)]
    assert branches == [None, "sidechain-1", "sidechain-2", "sidechain-1", "sidechain-2"]


def test_a_side_chain_keeps_its_name_where_only_some_lines_say_it() -> None:
    transcript = Transcript().user("u1", "Find it.")
    transcript.assistant("s1", "m1", use("t1"), parentUuid=None, isSidechain=True)
    transcript.result("s2", "t1", parentUuid="s1", isSidechain=True, agentId="a7f3")
    transcript.user("x1", "Other.", parentUuid=None, isSidechain=True, agentId="b8")
    transcript.assistant("x2", "m2", text("Yes."), parentUuid="x1", isSidechain=True)
    branches = [entry.branch for entry in entries_of(transcript)]
    assert branches == [None, "sidechain-1", "sidechain-1", "agent-b8", "agent-b8"]


def test_the_file_of_a_sub_agent_is_a_session_of_its_own() -> None:
    side: dict[str, Any] = {"isSidechain": True, "agentId": "a7f3"}
    transcript = Transcript().user("s1", "Search.", **side).assistant("s2", "m1", text("Found."), **side)
    entries, found, _ = read(transcript.lines)
    assert shown(entries) == ["u Search.", "a Found."]
    assert found.facts.id == f"{SESSION}/agent-a7f3"
    assert found.facts.fields["parent_session"] == SESSION


def test_what_the_user_went_back_behind_is_kept_beside_the_conversation() -> None:
    """B95: the newest line decides which way is the conversation."""
    transcript = Transcript().user("u1", "Hello").assistant("a1", "m1", text("Hi."))
    transcript.user("u2", "Wrong way").assistant("a2", "m2", use("t1")).result("r1", "t1")
    transcript.user("u3", "Right way", parentUuid="a1").assistant("a3", "m3", text("Good."))
    entries = entries_of(transcript)
    left = "CLAUDE_CODE.LEFT_BEHIND"
    assert shown(entries) == ["u Hello", "a Hi.", left, left, left, "u Right way", "a Good."]
    assert entries[2].payload == {"message": {"role": "user", "content": "Wrong way"}}


def test_a_compaction_cuts_no_history_off() -> None:
    transcript = Transcript().user("u1", "Long ago").assistant("a1", "m1", text("Yes."))
    boundary = {"trigger": "auto", "preTokens": 150_000}
    transcript.add(
        "system",
        "b1",
        subtype="compact_boundary",
        content="Conversation compacted",
        parentUuid=None,
        logicalParentUuid="a1",
        compactMetadata=boundary,
    )
    transcript.user("c1", "This session goes on from an earlier one.", isCompactSummary=True)
    transcript.user("u2", "And now?")
    entries = entries_of(transcript)
    assert shown(entries) == [
        "u Long ago",
        "a Yes.",
        "CLAUDE_CODE.COMPACT_BOUNDARY",
        "CLAUDE_CODE.SUMMARY",
        "u And now?",
    ]
    assert entries[2].payload is not None
    assert entries[2].payload["compactMetadata"] == boundary


def test_messages_that_a_compaction_kept_are_read_once_and_its_summary_is_none_of_the_users() -> None:
    """What was kept stands a second time behind the summary, as its child."""
    transcript = Transcript().user("u1", "Long ago").assistant("a1", "m1", text("Yes."))
    transcript.add("system", "b1", subtype="compact_boundary", parentUuid=None, logicalParentUuid="a1")
    transcript.user("c1", "This session goes on from an earlier one.", isCompactSummary=True)
    transcript.assistant("a1", "m1", text("Yes."), parentUuid="c1").user("u2", "And now?", parentUuid="a1")
    entries, found, faults = read(transcript.lines)
    assert not faults
    summary = ["CLAUDE_CODE.COMPACT_BOUNDARY", "CLAUDE_CODE.SUMMARY"]
    assert shown(entries) == ["u Long ago", "a Yes.", *summary, "u And now?"]
    assert found.facts.left_out == {"repeated": 1}


def test_keys_that_are_null_say_nothing() -> None:
    transcript = Transcript().user("u1", [{"type": "text", "text": "Go.", "citations": None}], isMeta=None)
    transcript.assistant("a1", "m1", use("t1") | {"caller": None})
    block = {"type": "tool_result", "tool_use_id": "t1", "content": "5", "is_error": None, "agentId": None}
    transcript.user("r1", [block])
    entries = entries_of(transcript)
    assert shown(entries) == ["u Go.", "a  t1?", "=t1"]
    assert all(entry.message is not None and entry.message.native is None for entry in (entries[0], entries[2]))


def test_a_parent_that_is_not_in_the_file_leaves_nothing_behind() -> None:
    transcript = Transcript().user("u1", "Hello").assistant("a1", "m1", text("Hi."))
    transcript.user("u2", "Again", parentUuid="somewhere-else")
    assert shown(entries_of(transcript)) == ["u Hello", "a Hi.", "u Again"]


def test_a_circle_of_parents_ends() -> None:
    transcript = Transcript().user("u1", "Hello", parentUuid="u2").user("u2", "Again", parentUuid="u1")
    transcript.user("x", "Elsewhere", parentUuid="y").user("y", "More", parentUuid="x")
    assert len(entries_of(transcript)) == 4


def test_what_is_no_message_is_kept_beside_or_counted() -> None:
    transcript = Transcript().user("u1", "Hello")
    transcript.user("n1", "Caveat: what follows was typed at a shell.", isMeta=True)
    transcript.assistant("e1", "m0", text("API Error: 529 Overloaded"), isApiErrorMessage=True)
    transcript.add("system", "y1", subtype="turn_duration", durationMs=5)
    transcript.add("progress", "p1", data={"type": "hook_progress"})
    transcript.add("attachment", "q1", attachment={"type": "queued_command", "prompt": "Hurry up."})
    transcript.lines.append({"type": "queue-operation", "operation": "remove", "content": "Or not."})
    transcript.lines.append({"type": "queue-operation", "operation": "dequeue"})
    transcript.lines.append({"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}})
    transcript.lines.append({"type": "summary", "summary": "A greeting", "leafUuid": "u1"})
    entries, found, faults = read(transcript.lines)
    assert not faults
    assert shown(entries) == [
        "u Hello",
        "CLAUDE_CODE.META",
        "CLAUDE_CODE.API_ERROR",
        "CLAUDE_CODE.SYSTEM",
        "u Hurry up.",
        "CLAUDE_CODE.QUEUE",
    ]
    assert found.facts.left_out == {
        "progress": 1,
        "queue-operation": 1,
        "file-history-snapshot": 1,
        "summary": 1,
    }
    assert found.facts.fields == {
        "cwd": "/home/ann/shop",
        "git_branch": "main",
        "version": "2.1.30",
        "title": "A greeting",
    }


def test_what_was_typed_meanwhile_may_have_pictures_and_what_claude_code_says_then_is_its_own() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    notification = {"type": "queued_command", "prompt": "Task b1 is done.", "commandMode": "task-notification"}
    transcript = Transcript().user("u1", "Hello")
    transcript.add("attachment", "q1", attachment={"type": "queued_command", "prompt": [text("And this."), image]})
    transcript.add("attachment", "q2", attachment=notification)
    transcript.add("attachment", "q3", attachment={"type": "queued_command", "prompt": "Caveat.", "isMeta": True})
    transcript.add("attachment", "q4", attachment={"type": "queued_command", "prompt": []})
    transcript.user("u2", "Task b2 is done.", origin={"kind": "task-notification"})
    transcript.user("u3", "Thanks.", origin={"kind": "human"})
    transcript.add("attachment", "q5", attachment={"type": "queued_command", "prompt": [text("No."), {"type": "text"}]})
    entries, found, faults = read(transcript.lines)
    assert faults == [(8, "attachment.prompt[1] has no 'text'")]
    assert shown(entries) == ["u Hello", "u And this.", *["CLAUDE_CODE.META"] * 3, "u Thanks."]
    assert entries[1].message == UserMessage([TextPart("And this."), MediaPart(media_type="image/png", data=b"hi")])
    assert entries[2].payload == {"attachment": notification}
    assert found.facts.left_out == {"attachment": 1}


def test_a_line_that_stands_twice_is_read_once() -> None:
    transcript = Transcript().user("u1", "Hello").assistant("a1", "m1", text("Hi."))
    entries, found, _ = read([*transcript.lines, *transcript.lines])
    assert shown(entries) == ["u Hello", "a Hi."]
    assert found.facts.left_out == {"repeated": 2}


def test_results_are_kept_once_with_how_they_ended() -> None:
    transcript = Transcript().user("u1", "Go.").assistant("a1", "m1", use("t1"))
    transcript.result("r1", "t1", [{"type": "text", "text": "no such file"}], is_error=True)
    result = entries_of(transcript)[-1].message
    assert result == ToolMessage([ToolResult("t1", "no such file", status=ToolStatus.ERROR)])
    assert isinstance(result, ToolMessage)
    assert result.native is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ([], "the line must be an object, not an array"),
        ({"sessionId": "s"}, "the line has no 'type'"),
        ({"type": "user"}, "the line has no 'message'"),
        ({"type": "user", "message": {"content": 5}}, "message.content must be a string or an array of blocks"),
        ({"type": "user", "message": {"content": [{"type": "text"}]}}, "message.content[0] has no 'text'"),
        ({"type": "assistant", "message": {"content": [{"type": "tool_use"}]}}, "message.content[0] has no 'id'"),
        ({"type": "assistant", "message": {"content": 5}}, "message.content[0] must be an object, not a number"),
        ({"type": "user", "timestamp": "noon", "message": {"content": "x"}}, "timestamp is no time: 'noon'"),
        ({"type": "user", "isSidechain": True, "agentId": 5}, "the line.agentId must be a string or null, not a"),
    ],
)
def test_a_wrong_line_is_named_with_its_path_and_left_out_alone(line: Any, said: str) -> None:
    before = Transcript().user("u1", "Hello").lines
    entries, _, faults = read([*before, line, *Transcript().user("u2", "Still here").lines])
    assert shown(entries) == ["u Hello", "u Still here"]
    ((number, reason),) = faults
    assert number == 2
    assert reason.startswith(said)


def test_a_wrong_line_of_a_reply_does_not_take_the_others_with_it() -> None:
    transcript = Transcript().user("u1", "Go.").assistant("a1", "m1", text("One"))
    transcript.assistant("a2", "m1", {"type": "text"}).assistant("a3", "m1", text(" two")).user("u2", "Next")
    entries, _, faults = read(transcript.lines)
    assert shown(entries) == ["u Go.", "a One two", "u Next"]
    assert [line for line, _ in faults] == [3]


_KEYS = ["type", "uuid", "parentUuid", "sessionId", "isSidechain", "agentId", "timestamp", "message", "isMeta"]
_TEXTS = st.sampled_from(["u1", "a1", "user", "assistant", "system", "2026-01-01T00:00:00Z", "t1"])
_blocks = st.lists(
    st.one_of(
        st.builds(use, st.sampled_from(["t1", "t2"])),
        st.just(text("x")),
        st.builds(lambda id_: {"type": "tool_result", "tool_use_id": id_}, st.sampled_from(["t1", "t2"])),
        json_values,
    ),
    max_size=3,
)
_messages = st.fixed_dictionaries(
    {"content": st.text(max_size=3) | _blocks | json_values}, optional={"id": _TEXTS, "usage": json_values}
)
_lines = st.one_of(
    json_values,
    st.dictionaries(st.sampled_from(_KEYS), _TEXTS | st.booleans() | json_values, max_size=6),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["user", "assistant", "system"]), "message": _messages},
        optional={
            "uuid": _TEXTS,
            "parentUuid": _TEXTS,
            "isSidechain": st.booleans(),
            "isMeta": st.booleans(),
            "logicalParentUuid": _TEXTS,
            "attachment": json_values,
        },
    ),
)


@given(st.lists(_lines, max_size=10))
def test_whatever_stands_in_a_line_it_is_read_or_named_never_more(lines: list[Any]) -> None:
    entries, found, faults = read(lines)
    numbers = [entry.line for entry in entries] + [line for line, _ in faults]
    assert set(numbers) <= set(range(1, len(lines) + 1))
    assert len({line for line, _ in faults}) == len(faults)
    assert sum(found.facts.left_out.values()) <= len(lines)
    again, _, _ = read(lines)
    assert shown(again) == shown(entries)
