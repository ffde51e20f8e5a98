"""Logs of other programs with one value wrong, for every place and every type of value: read, or named, never more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import pytest

from tests.formats.foreign import test_claude_code as claude_code
from tests.formats.foreign import test_codex as codex
from tests.formats.foreign.claude_lines import Transcript, text, thinking, use
from tests.formats.foreign.test_chatgpt import conversation, node, ways
from tests.formats.foreign.test_chatgpt import text as words
from tests.formats.samples import paths, put, without
from turnlog.errors import InvalidValueError

#: One of each type, and the containers that hold what they should not.
WRONG: Final[tuple[Any, ...]] = (
    None,
    True,
    -1,
    2.5,
    10**400,
    "",
    "x",
    "\ud800",
    [],
    {},
    [None],
    [[]],
    [{}],
    {"type": []},
    {"a": None},
)

CODEX: Final = codex.wrapped(
    ("session_meta", {"id": "s", "cwd": "/", "git": {"branch": "main"}, "base_instructions": {"text": "Be kind."}}),
    ("turn_context", {"model": "m"}),
    codex.user("Hello"),
    codex.item(type="message", role="developer", content=[{"type": "input_text", "text": "by itself"}]),
    codex.THOUGHT,
    codex.said("Let me look"),
    codex.call("c1"),
    codex.USAGE,
    codex.output("c1"),
    codex.item(type="local_shell_call", call_id="c2", status="completed", action={"type": "exec", "command": ["ls"]}),
    codex.output("c2"),
    codex.event("turn_aborted", reason="interrupted"),
    ("compacted", {"message": "so far"}),
    codex.user("And now?"),
    codex.event("thread_rolled_back", num_turns=1),
)
CLAUDE_CODE: Final = (
    Transcript()
    .user("u1", "Hello")
    .assistant("a1", "m1", thinking("hm"))
    .assistant("a2", "m1", text("Let me look"))
    .assistant("a3", "m1", use("c1", command="ls"))
    .result("r1", "c1", [text("a b")])
    .user("u2", [text("an aside")], isSidechain=True)
    .add("system", "s1", subtype="compact_boundary", content="compacted")
    .add("attachment", "t1", attachment={"type": "queued_command", "prompt": "Also this"})
    .add("queue-operation", "q1", operation="enqueue", content="Later")
    .add("summary", "x1", summary="All of it", leafUuid="r1")
    .lines
)
CHATGPT: Final = conversation(
    node("root", None),
    node(
        "u1",
        "root",
        "user",
        words("Hello", {"content_type": "image_asset_pointer", "asset_pointer": "file-service://1"}),
    ),
    node("a1", "u1", "assistant", {"content_type": "code", "language": "python", "text": "1"}, recipient="python"),
    node("t1", "a1", "tool", {"content_type": "execution_output", "text": "1"}, name="python"),
    node("a2", "t1", "assistant", {"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "c"}]}),
    node("a3", "a2", "assistant", words("One.")),
    current="a3",
)


def wrong(whole: Any) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """All that is one value away from it."""
    for path in paths(whole):
        yield path, without(whole, path)
        for value in WRONG:
            yield path, put(whole, path, value)


@pytest.mark.parametrize(
    ("lines", "read"), [(CODEX, codex.read), (CLAUDE_CODE, claude_code.read)], ids=["codex", "claude_code"]
)
def test_a_wrong_value_costs_no_line_but_its_own(lines: list[Any], read: Callable[[Any], Any]) -> None:
    for path, changed in wrong(lines):
        _, _, faults = read(changed)
        assert {line for line, _ in faults} <= {int(path[0]) + 1}, path


def test_a_wrong_value_in_a_tree_is_a_typed_error_or_read() -> None:
    for _, changed in wrong(CHATGPT):
        with suppress(InvalidValueError):
            ways(changed)
