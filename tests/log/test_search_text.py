"""What a keyword is looked for in (F-6)."""

from __future__ import annotations

import pytest

from turnlog.log.messages import (
    AssistantMessage,
    MediaPart,
    Message,
    Native,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from turnlog.log.search_text import contains_folded, search_text

CALLS = (ToolCall("c1", "look_up", '{ "key": 1 }'), ToolCall("c2", "book", "not json"))
CASES: tuple[tuple[Message, str], ...] = (
    (UserMessage("hi"), "hi"),
    (UserMessage(None), ""),
    (UserMessage(""), ""),
    (SystemMessage("be kind"), "be kind"),
    (UserMessage((TextPart("a"), MediaPart(url="u", name="n"), TextPart("b"))), "ab"),
    (AssistantMessage((ReasoningPart(text="hm"), TextPart("no", refusal=True))), "no"),
    (AssistantMessage("wait", tool_calls=CALLS), 'wait\nlook_up\n{ "key": 1 }\nbook\nnot json'),
    (AssistantMessage(None, tool_calls=CALLS[:1]), 'look_up\n{ "key": 1 }'),
    (ToolMessage((ToolResult("c1", "one"), ToolResult("c2", "two", name="book"))), "one\ntwo"),
    (
        ToolMessage((ToolResult("c1", None), ToolResult("c2", (TextPart("t"), MediaPart(url="u"), TextPart("wo"))))),
        "two",
    ),
    (ToolMessage(()), ""),
    (UserMessage("hi", metadata={"k": "hidden"}, native=Native("f", {"k": "hidden"})), "hi"),
)


@pytest.mark.parametrize(("message", "text"), CASES, ids=repr)
def test_the_text_then_the_calls_then_the_results(message: Message, text: str) -> None:
    assert search_text(message) == text


def test_a_term_is_folded_once() -> None:
    assert contains_folded("Straße", "strasse")
    assert not contains_folded("Straße", "STRASSE")
