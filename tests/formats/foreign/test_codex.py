"""Codex's rollouts: items in either layout, what Codex says by itself, turns that were rolled back (O-5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.foreign.test_claude_code import shown
from tests.formats.json_strategies import json_values
from turnlog.formats import codex
from turnlog.formats.codex import Survey
from turnlog.formats.foreign import Entry
from turnlog.log.messages import AssistantMessage, MessageMetadata, ReasoningPart, SystemMessage, TextPart, ToolCall

Fields = dict[str, Any]


def read(lines: Iterable[Any]) -> tuple[list[Entry], Survey, list[tuple[int, str]]]:
    numbered = list(enumerate(lines, 1))
    faults: list[tuple[int, str]] = []
    found = codex.survey(numbered)
    entries = list(codex.read(numbered, found, lambda line, reason: faults.append((line, reason))))
    return entries, found, faults


def wrapped(*lines: tuple[str, Fields]) -> list[Fields]:
    return [
        {"timestamp": f"2026-03-01T10:{number:02}:00.000Z", "type": kind, "payload": payload}
        for number, (kind, payload) in enumerate(lines)
    ]


def item(**fields: Any) -> tuple[str, Fields]:
    return "response_item", fields


def event(kind: str, **fields: Any) -> tuple[str, Fields]:
    return "event_msg", {"type": kind, **fields}


def user(words: str) -> tuple[str, Fields]:
    return item(type="message", role="user", content=[{"type": "input_text", "text": words}])


def said(words: str, **fields: Any) -> tuple[str, Fields]:
    return item(type="message", role="assistant", content=[{"type": "output_text", "text": words}], **fields)


def call(id_: str, **fields: Any) -> tuple[str, Fields]:
    return item(type="function_call", name="shell", arguments='{"command":["ls"]}', call_id=id_, **fields)


def output(id_: str, words: str = "a b") -> tuple[str, Fields]:
    return item(type="function_call_output", call_id=id_, output=words)


META = (
    "session_meta",
    {
        "id": "019c0000-0000-7000-8000-000000000001",
        "timestamp": "2026-03-01T10:00:00Z",
        "cwd": "/home/ann/shop",
        "originator": "codex-tui",
        "cli_version": "0.140.0",
        "git": {"branch": "main", "commit_hash": "c0ffee"},
        "base_instructions": {"text": "You are a careful programmer."},
    },
)
CONTEXT = user("<environment_context>\n  <cwd>/home/ann/shop</cwd>\n</environment_context>")
THOUGHT = item(
    type="reasoning", summary=[{"type": "summary_text", "text": "List them."}], content=None, encrypted_content="gAA"
)
USAGE = event(
    "token_count",
    info={"last_token_usage": {"input_tokens": 900, "cached_input_tokens": 800, "output_tokens": 12}},
    rate_limits=None,
)


def test_items_become_messages_and_what_codex_says_by_itself_does_not() -> None:
    lines = wrapped(
        META,
        CONTEXT,
        user("Which files?"),
        event("user_message", message="Which files?"),
        ("turn_context", {"model": "gpt-5.4", "cwd": "/home/ann/shop"}),
        THOUGHT,
        call("call_1"),
        USAGE,
        output("call_1"),
        said("Two."),
        event("agent_message", message="Two."),
    )
    entries, found, faults = read(lines)
    assert not faults
    assert shown(entries) == [
        "s You are a careful programmer.",
        "CODEX.CONTEXT",
        "u Which files?",
        "a  call_1?",
        "=call_1",
        "a Two.",
    ]
    step = entries[3]
    assert step.message == AssistantMessage(
        [ReasoningPart(text="List them.", signature="gAA")],
        tool_calls=[ToolCall("call_1", "shell", '{"command":["ls"]}')],
    )
    assert isinstance(step.message, AssistantMessage)
    assert step.message.metadata == {MessageMetadata.USAGE: {"input_tokens": 900, "output_tokens": 12}}
    assert step.metadata == {"codex": {"model": "gpt-5.4"}}
    assert found.facts.id == META[1]["id"]
    assert found.facts.fields == {
        "cwd": "/home/ann/shop",
        "originator": "codex-tui",
        "version": "0.140.0",
        "git_branch": "main",
    }
    assert found.facts.left_out == {"user_message": 1, "agent_message": 1, "turn_context": 1, "token_count": 1}


def test_a_message_of_text_alone_needs_no_second_copy() -> None:
    entries, _, _ = read(wrapped(user("Hello"), said("Hi."), user("And?"), said("Yes.", id="msg_1")))
    natives = [entry.message.native for entry in entries if entry.message is not None]
    assert natives[:3] == [None, None, None]
    assert natives[3] is not None


def test_the_older_layout_is_read_too() -> None:
    head = {"id": "0b1c", "timestamp": "2025-08-18T01:16:13.522Z", "instructions": None, "git": {"branch": "dev"}}
    bare = [payload for _, payload in (CONTEXT, user("Hello"), said("Hi."))]
    entries, found, faults = read([head, {"record_type": "state"}, *bare])
    assert not faults
    assert shown(entries) == ["CODEX.CONTEXT", "u Hello", "a Hi."]
    assert found.facts.id == "0b1c"
    assert found.facts.left_out == {"session_meta": 1, "state": 1}


def test_a_head_without_instructions_is_one_too() -> None:
    entries, found, faults = read([{"id": "0b1c", "timestamp": "2025-08-18T01:16:13Z"}, user("Hello")[1]])
    assert not faults
    assert (shown(entries), found.facts.id) == (["u Hello"], "0b1c")


def test_instructions_of_the_older_layout_are_the_system_message() -> None:
    head = {"id": "0b1c", "timestamp": "2025-08-18T01:16:13Z", "instructions": "Be brief."}
    entries, _, _ = read([head, user("Hello")[1]])
    assert entries[0].message == SystemMessage("Be brief.")


def test_a_thought_and_the_text_that_it_led_to_are_one_message() -> None:
    (entry,), _, _ = read(wrapped(THOUGHT, said("Done.", id="msg_1")))
    assert entry.message == AssistantMessage([ReasoningPart(text="List them.", signature="gAA"), TextPart("Done.")])
    (entry,), _, _ = read(wrapped(THOUGHT, said("Done.")))
    assert entry.message == AssistantMessage([ReasoningPart(text="List them.", signature="gAA"), TextPart("Done.")])


def test_two_texts_in_a_row_are_two_messages() -> None:
    entries, _, _ = read(wrapped(said("I look.", phase="commentary"), said("Done.", phase="final_answer")))
    assert shown(entries) == ["a I look.", "a Done."]


def test_parallel_calls_are_one_step_whenever_their_results_come() -> None:
    lines = wrapped(call("c1"), call("c2"), user("Hurry."), output("c2"), output("c1"), said("Done."))
    entries, _, _ = read(lines)
    assert shown(entries) == ["a  c1? c2?", "=c2", "=c1", "u Hurry.", "a Done."]


def test_calls_of_other_kinds_are_calls_too() -> None:
    custom = item(
        type="custom_tool_call", call_id="c1", name="apply_patch", input="*** Begin Patch", status="completed"
    )
    patched = item(type="custom_tool_call_output", call_id="c1", output="ok")
    local = item(type="local_shell_call", call_id="c2", status="completed", action={"type": "exec", "command": ["ls"]})
    entries, _, faults = read(wrapped(custom, patched, local, output("c2")))
    assert not faults
    assert shown(entries) == ["a  c1?", "=c1", "a  c2?", "=c2"]
    assert isinstance(entries[2].message, AssistantMessage)
    assert entries[2].message.tool_calls[0] == ToolCall("c2", "local_shell", '{"type": "exec", "command": ["ls"]}')


def test_turns_that_were_rolled_back_are_kept_beside_the_conversation() -> None:
    lines = wrapped(
        user("Hello"),
        said("Hi."),
        user("Wrong way"),
        call("c1"),
        output("c1"),
        event("turn_aborted", reason="interrupted"),
        event("thread_rolled_back", num_turns=1),
        user("Right way"),
    )
    entries, _, _ = read(lines)
    rolled = "CODEX.ROLLED_BACK"
    assert shown(entries) == ["u Hello", "a Hi.", rolled, rolled, rolled, "CODEX.TURN_ABORTED", "u Right way"]


def test_a_compaction_is_an_event_and_its_replacement_is_not_stored_again() -> None:
    compacted = ("compacted", {"message": "So far: hello.", "replacement_history": [user("Hello")[1]]})
    entries, _, _ = read(wrapped(user("Hello"), compacted, user("Again")))
    assert shown(entries) == ["u Hello", "CODEX.COMPACTED", "u Again"]
    assert entries[1].payload == {"message": "So far: hello."}


def test_the_first_head_says_whose_session_it_is() -> None:
    """The file of a fork repeats its parent's lines, the parent's own head among them."""
    parent = ("session_meta", {"id": "parent"})
    _, found, _ = read(wrapped(("session_meta", {"id": "child", "forked_from_id": "parent"}), parent, user("Hello")))
    assert found.facts.id == "child"
    assert found.facts.fields["forked_from"] == "parent"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (5, "the line must be an object, not a number"),
        ({}, "the line has no 'type'"),
        ({"type": "response_item"}, "the line has no 'payload'"),
        ({"type": "response_item", "payload": {}}, "payload has no 'type'"),
        (
            {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c", "output": 5}},
            "payload.output m",
        ),
        ({"type": "response_item", "payload": {"type": "function_call"}}, "payload has no 'call_id'"),
        ({"type": "function_call", "call_id": "c", "name": 1, "arguments": ""}, "payload.name must be a string, not a"),
        ({"type": "event_msg", "payload": {"type": 5}}, "payload.type must be a string or null, not a number"),
        ({"timestamp": "noon", "type": "event_msg", "payload": {}}, "timestamp is no time: 'noon'"),
    ],
)
def test_a_wrong_line_is_named_with_its_path_and_left_out_alone(line: Any, said: str) -> None:
    entries, _, faults = read([*wrapped(user("Hello")), line, *wrapped(user("Still here"))])
    assert shown(entries) == ["u Hello", "u Still here"]
    ((number, reason),) = faults
    assert number == 2
    assert reason.startswith(said)


_KINDS = [
    *("session_meta", "response_item", "event_msg", "turn_context", "compacted", "message", "function_call"),
    *("function_call_output", "reasoning", "token_count", "thread_rolled_back", "user", "assistant", "c1"),
]
_fields = st.dictionaries(
    st.sampled_from(
        ["type", "role", "content", "call_id", "name", "arguments", "output", "summary", "id", "info", "num_turns"]
    ),
    st.sampled_from(_KINDS) | st.integers(0, 3) | json_values,
    max_size=6,
)
_items = st.sampled_from([user("x"), said("y"), call("c1"), call("c2"), output("c1"), output("c2"), THOUGHT, USAGE])
_lines = st.one_of(
    json_values,
    _fields,
    _items.map(lambda found: {"type": found[0], "payload": found[1]}),
    _items.map(lambda found: found[1]),
    st.fixed_dictionaries({"type": st.sampled_from(_KINDS), "payload": _fields | json_values}),
)


@given(st.lists(_lines, max_size=12))
def test_whatever_stands_in_a_line_it_is_read_or_named_never_more(lines: list[Any]) -> None:
    entries, _, faults = read(lines)
    assert {entry.line for entry in entries} | {line for line, _ in faults} <= set(range(1, len(lines) + 1))
    assert len({line for line, _ in faults}) == len(faults)
    assert shown(read(lines)[0]) == shown(entries)
