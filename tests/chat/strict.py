"""What the strictest providers ask of a prompt's messages, said once more, plainly, for the tests."""

from __future__ import annotations

from collections.abc import Sequence

from turnlog.formats import ProblemLevel, problems
from turnlog.formats.openai_chat import render as render_openai
from turnlog.log.messages import AssistantMessage, Message, SystemMessage, ToolMessage, ToolStatus

PROVIDERS = ("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock")


def check_prompt(messages: Sequence[Message]) -> None:
    """System messages first; every call answered exactly once by the tool messages directly behind it."""
    others = [message for message in messages if not isinstance(message, SystemMessage)]
    assert list(messages[len(messages) - len(others) :]) == others, "a system message in the middle"
    assert others, "an empty prompt"
    waiting: list[str] = []
    for message in others:
        if isinstance(message, ToolMessage):
            for result in message.results:
                assert result.status is not ToolStatus.INTERIM
                assert result.id in waiting, f"a result for no call: {result.id}"
                waiting.remove(result.id)
            continue
        assert not waiting, f"calls without results: {waiting}"
        if isinstance(message, AssistantMessage):
            waiting = [call.id for call in message.tool_calls]
            assert len(set(waiting)) == len(waiting)
            assert message.tool_calls or message.parts, "an empty assistant message"
    assert not waiting, f"calls without results: {waiting}"
    found = problems({"model": "gpt", "messages": render_openai(messages)}, "openai-chat")
    assert not [problem for problem in found if problem.level is ProblemLevel.ERROR], found
