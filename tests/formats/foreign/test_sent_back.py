"""What was read of other tools' files goes to any provider as a request that keeps its rules (P-1, P-2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.foreign import test_chatgpt, test_claude_code, test_codex
from tests.formats.foreign.claude_lines import Transcript, text, thinking, use
from tests.formats.foreign.test_chatgpt import HELLO, ROOT, conversation, node
from tests.formats.foreign.test_codex import CONTEXT, META, THOUGHT, call, output, said, user, wrapped
from turnlog.formats import ProblemLevel, Request, problems, render_request
from turnlog.formats.foreign import Entry
from turnlog.formats.rules import PROVIDERS
from turnlog.log.messages import Message


def claude_code() -> list[Entry]:
    transcript = Transcript().user("u1", "Both?").assistant("a0", "m1", thinking("Two calls."))
    transcript.assistant("a1", "m1", text("Yes.")).assistant("a2", "m1", use("t1"))
    transcript.result("r1", "t1").assistant("a3", "m1", use("t2"), parentUuid="a2")
    transcript.user("u2", "Hurry.").result("r2", "t2").assistant("a4", "m2", text("Done.")).user("u3", "Thanks.")
    return test_claude_code.entries_of(transcript)


def codex() -> list[Entry]:
    lines = [META, CONTEXT, user("Both?"), THOUGHT, call("c1", id="fc_1"), call("c2", id="fc_2"), output("c2")]
    lines += [user("Hurry."), output("c1"), said("Done.", id="msg_1"), user("Thanks.")]
    return test_codex.read(wrapped(*lines))[0]


def chatgpt() -> list[Entry]:
    code = {"content_type": "code", "text": "print(4)"}
    found = conversation(
        ROOT,
        HELLO,
        node("a1", "u1", "assistant", code, recipient="python"),
        node("t1", "a1", "tool", {"content_type": "execution_output", "text": "4"}, name="python"),
        node("a2", "t1", "assistant", test_chatgpt.text("It is 4.")),
        node("u2", "a2", "user", test_chatgpt.text("Thanks.")),
        current="u2",
    )
    return test_chatgpt.ways(found)[0]


def messages_of(entries: Iterable[Entry]) -> list[Message]:
    return [entry.message for entry in entries if entry.message is not None and entry.branch is None]


def refused(messages: list[Message], source: str, provider: str) -> list[Any]:
    rendered = render_request(Request(messages=tuple(messages), provider=source), provider)
    return [found for found in problems(rendered, provider) if found.level is ProblemLevel.ERROR]


SOURCES = [(claude_code, "anthropic"), (codex, "openai-responses"), (chatgpt, "openai-chat")]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("read", "source"), SOURCES)
def test_an_imported_conversation_can_go_on_with_any_provider(read: Any, source: str, provider: str) -> None:
    messages = messages_of(read())
    assert len(messages) >= 5
    assert refused(messages, source, provider) == []


ids = st.sampled_from(["t1", "t2", "t3"])
steps = st.lists(st.tuples(st.sampled_from(["say", "call", "answer"]), ids), max_size=12)


@given(steps)
def test_whatever_order_the_lines_have_what_is_answered_can_be_sent(found: list[tuple[str, str]]) -> None:
    transcript = Transcript().user("u", "Go.")
    asked = set[str]()
    answered = set[str]()
    for number, (step, id_) in enumerate(found):
        if step == "call" and id_ not in asked:
            asked.add(id_)
            transcript.assistant(f"a{number}", f"m{number}", use(id_))
        elif step == "answer" and id_ in asked - answered:
            answered.add(id_)
            transcript.result(f"r{number}", id_)
        elif step == "say":
            transcript.user(f"u{number}", f"{number}?")
    for id_ in sorted(asked - answered):
        transcript.result(f"late-{id_}", id_)
    transcript.user("end", "Thanks.")
    messages = messages_of(test_claude_code.entries_of(transcript))
    assert refused(messages, "anthropic", "anthropic") == []
    assert refused(messages, "anthropic", "openai-chat") == []
