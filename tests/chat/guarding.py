"""What a prompt's tool traffic must be, said plainly."""

from __future__ import annotations

from collections.abc import Sequence

from turnlog.log.messages import AssistantMessage, Message, ToolMessage, ToolStatus


def check_pairing(messages: Sequence[Message]) -> None:
    """Every call has exactly one final result in the tool messages directly behind it; there are no others."""
    waiting: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            assert message.results
            for each in message.results:
                assert each.status is not ToolStatus.INTERIM
                assert each.id in waiting
                waiting.remove(each.id)
            continue
        assert not waiting
        if isinstance(message, AssistantMessage):
            waiting = [call.id for call in message.tool_calls]
            assert len(waiting) == len(set(waiting))
    assert not waiting
