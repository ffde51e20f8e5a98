"""H-7: Ctrl-C, which may come while the model is waited for, leaves a stream as closing it does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from turnlog import AssistantMessage, SessionService, UserMessage
from turnlog.chat import ChatClient, SessionAdvisors
from turnlog.chat.runs import INTERRUPTED
from turnlog.models import Delta, Prompt, Reply, StreamItem


class InterruptedModel:
    """Ctrl-C is typed while it thinks about the second half."""

    def generate(self, prompt: Prompt) -> Reply:
        return Reply(message=AssistantMessage(f"{len(prompt.messages)} messages"))

    def stream(self, prompt: Prompt) -> Iterator[StreamItem]:
        del prompt
        yield Delta("Half")
        raise KeyboardInterrupt


@pytest.mark.parametrize("keeps_partial", [False, True])
def test_an_interrupted_stream_leaves_what_an_abandoned_one_leaves(
    keeps_partial: bool,  # noqa: FBT001 - a case
) -> None:
    with SessionService.open("memory:") as service:
        advisors = SessionAdvisors(service, store_partial_replies=keeps_partial)
        client = ChatClient(InterruptedModel(), advisors=advisors)
        with pytest.raises(KeyboardInterrupt), client.stream("A story!", session_id="s") as stream:
            list(stream)
        events = service.events("s")
        assert events[0].content == UserMessage("A story!")
        partial = [(event.content.text, event.metadata[INTERRUPTED]) for event in events[1:]]
        assert partial == ([("Half", True)] if keeps_partial else [])
        assert client.call("Well?", session_id="s").text == f"{len(events) + 1} messages"
