"""A conversation with a real model through the official SDK: called and streamed, with its history (H-1, H-3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chat.strict import check_prompt
from tests.local_model.server import local_model
from turnlog import EventFilter, SessionService
from turnlog.chat import ChatClient, ModelRequest, SessionAdvisors
from turnlog.chat.advisor import NextModelCall
from turnlog.models import Reply
from turnlog.models.openai_chat import OpenAIChatModel

pytestmark = [pytest.mark.local_model, pytest.mark.timeout(600)]


class Watching:
    """Keeps every prompt that goes to the model."""

    def __init__(self) -> None:
        self.prompts: list[ModelRequest] = []

    def around_model_call(self, request: ModelRequest, call_next: NextModelCall) -> Reply:
        self.prompts.append(request)
        return call_next(request)


def test_a_conversation_called_and_streamed(tmp_path: Path) -> None:
    watching = Watching()
    with (
        local_model() as server,
        OpenAIChatModel("local", api_key="none", base_url=server.base_url, options={"max_tokens": 24}) as model,
        SessionService.open(f"sqlite:{tmp_path}/chat.db") as service,
    ):
        advisors = SessionAdvisors(service, event_filter=EventFilter.last(4))
        client = ChatClient(model, advisors=[*advisors, watching], system="Answer in one short sentence.")
        first = client.call("My name is Ada. What is the capital of Norway?", session_id="s")
        assert first.text.strip()
        assert first.usage.input_tokens > 0
        with client.stream("And of Sweden?", session_id="s") as stream:
            said = "".join(delta.text for delta in stream)
            assert said == stream.result().text != ""
        client.call("What is my name?", session_id="s")
        stored = [event.content for event in service.events("s")]
        assert [message.type.value for message in stored] == ["user", "assistant"] * 3
        assert stored[1].text == first.text
        assert stored[3].text == said
        for request in watching.prompts:
            check_prompt(request.messages)
        assert [message.text for message in watching.prompts[-1].messages][1:] == [
            *(message.text for message in stored[:4]),
            "What is my name?",
        ]
