"""M-1, M-2, H-3: what the memory advisor stores, and what it does not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chat._async.talking import Talk
from tests.chat.speaking import asks, logged, look_up
from turnlog import (
    AssistantMessage,
    AsyncSessionService,
    EventFilter,
    InvalidValueError,
    MediaPart,
    MessageType,
    ReasoningPart,
    UserMessage,
)
from turnlog.chat import RESPONSE_EVENT_IDS, AsyncSessionMemoryAdvisor
from turnlog.log.message_filter import MessageFilter


class TestWhatIsStored:
    """Seed 004, M-1, M-2: a rejected message is never written; tool traffic always is; the prompt is unaffected."""

    async def test_a_filter_keeps_messages_out_of_the_log(self, service: AsyncSessionService) -> None:
        """The seed's example: nothing confidential, and still no empty replies."""
        kept = ~MessageFilter.contains_text("confidential") & MessageFilter.skip_empty_messages()
        talk = Talk(service, "fine", "CONFIDENTIAL: no", "ok", message_filter=kept)
        await talk.client.call("this is confidential", session_id="s")
        await talk.client.call("public", session_id="s")
        await talk.client.call("more", session_id="s")
        assert talk.prompts[0] == ["user: this is confidential"]
        assert await talk.log() == ["assistant: fine", "user: public", "user: more", "assistant: ok"]

    async def test_the_prompt_has_the_rejected_message_on_every_round(self, service: AsyncSessionService) -> None:
        talk = Talk(service, asks("c1"), asks("c2"), "done", tools=[look_up], message_filter=lambda _: False)
        await talk.client.call("secret", session_id="s")
        turn = ["user: secret", "assistant: calls c1", "tool c1: found c1", "assistant: calls c2", "tool c2: found c2"]
        assert talk.prompts == [turn[:1], turn[:3], turn]
        assert await talk.log() == turn[1:]

    async def test_a_rejected_turn_does_not_confuse_the_history_before_it(self, service: AsyncSessionService) -> None:
        """The history stands before the turn once, on every round, though the log lacks the turn's opening."""
        talk = Talk(service, "1", asks("c1"), "2", tools=[look_up])
        await talk.client.call("a", session_id="s")
        kept = MessageFilter.by_message_type(MessageType.ASSISTANT)
        other = Talk(service, asks("c1"), asks("c2"), "2", tools=[look_up], message_filter=kept)
        await other.client.call("b", session_id="s")
        before = ["user: a", "assistant: 1", "user: b"]
        assert [prompt[:3] for prompt in other.prompts] == [before] * 3
        assert [len(prompt) for prompt in other.prompts] == [3, 5, 7]

    async def test_tool_traffic_is_stored_whatever_the_filter_says(self, service: AsyncSessionService) -> None:
        kept = MessageFilter.by_message_type(MessageType.USER)
        talk = Talk(service, asks("c1", text="let me see"), "done", tools=[look_up], message_filter=kept)
        await talk.client.call("a", session_id="s")
        assert await talk.log() == ["user: a", "assistant: let me see + calls c1", "tool c1: found c1"]

    async def test_to_hide_tool_traffic_hide_it_on_read(
        self, service: AsyncSessionService, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Seed 004: a filter on user and assistant messages; the call left without its results goes too."""
        shown = EventFilter(message_types={MessageType.USER, MessageType.ASSISTANT})
        talk = Talk(service, asks("c1"), "1", "2", tools=[look_up], event_filter=shown)
        await talk.client.call("a", session_id="s")
        await talk.client.call("b", session_id="s")
        assert talk.prompts[2] == ["user: a", "assistant: 1", "user: b"]
        assert "a filter that hides tool messages" in caplog.text

    async def test_an_empty_reply_after_tools_is_not_stored(self, service: AsyncSessionService) -> None:
        """M-1, the default: some models refuse a history with an empty assistant message."""
        talk = Talk(service, asks("c1"), AssistantMessage("  "), "2", tools=[look_up])
        result = await talk.client.call("a", session_id="s")
        assert result.context[RESPONSE_EVENT_IDS] == []
        await talk.client.call("b", session_id="s")
        assert talk.prompts[2] == ["user: a", "assistant: calls c1", "tool c1: found c1", "user: b"]

    async def test_all_stores_an_empty_reply_too(self, service: AsyncSessionService) -> None:
        """Seed 004: a custom filter replaces the default."""
        talk = Talk(service, asks("c1"), AssistantMessage(""), tools=[look_up], message_filter=MessageFilter.all())
        await talk.client.call("a", session_id="s")
        assert len(await talk.log()) == 4

    async def test_a_reply_of_media_or_signed_reasoning_says_something(self, service: AsyncSessionService) -> None:
        image = AssistantMessage([MediaPart(media_type="image/png", data=b"x")])
        thought = AssistantMessage([ReasoningPart(signature="abc")])
        talk = Talk(service, image, thought)
        await talk.client.call("draw", session_id="s")
        await talk.client.call("think", session_id="s")
        assert [event.message for event in await service.events("s")][1::2] == [image, thought]

    async def test_several_user_messages_are_one_request(self, service: AsyncSessionService) -> None:
        """H-3: the run of user messages at the request's end is stored, all of it, before the model is asked."""
        talk = Talk(service, "1", "2")
        await talk.client.call([UserMessage("a"), UserMessage("b")], session_id="s")
        events = await service.events("s")
        assert logged(events) == ["user: a", "user: b", "assistant: 1"]
        await talk.client.call("c", session_id="s", event_filter=EventFilter.last(1))
        assert talk.prompts[1] == ["user: a", "user: b", "assistant: 1", "user: c"]

    async def test_the_request_is_stored_before_the_model_is_asked(self, service: AsyncSessionService) -> None:
        """Seed 004: the trailing message is stored on the way down, so a model that fails leaves the question."""
        talk = Talk(service, asks("c1"), ConnectionError("no answer"), tools=[look_up])
        with pytest.raises(ConnectionError):
            await talk.client.call("a", session_id="s")
        assert await talk.log() == ["user: a", "assistant: calls c1", "tool c1: found c1"]

    @pytest.mark.parametrize("wrong", ["all", 1])
    async def test_a_message_filter_is_callable(self, service: AsyncSessionService, wrong: Any) -> None:
        with pytest.raises(InvalidValueError, match="made of a callable"):
            AsyncSessionMemoryAdvisor(service, message_filter=wrong)
