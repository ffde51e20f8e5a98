"""H-3, H-5: the session a call runs on, and what goes in and out through its context."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chat._async.talking import Talk, metadata_of
from tests.chat.speaking import asks, logged, look_up
from turnlog import AsyncSessionService, InvalidValueError
from turnlog.chat import (
    REQUEST_EVENT_ID,
    RESPONSE_EVENT_IDS,
    SESSION_ID,
    SESSION_METADATA,
    AsyncChatClient,
    AsyncSessionAdvisors,
    AsyncSessionMemoryAdvisor,
    AsyncSessionTurnAdvisor,
)
from turnlog.errors import MissingSessionIdError
from turnlog.models.protocol import Reply
from turnlog.models.scripted import AsyncScriptedModel


async def test_the_second_turn_sees_the_first(service: AsyncSessionService) -> None:
    """Seed 004: application code never loads or appends history by hand."""
    talk = Talk(service, "hello", "you said hi")
    assert (await talk.client.call("hi", session_id="s")).text == "hello"
    assert (await talk.client.call("what did I say?", session_id="s")).text == "you said hi"
    assert talk.prompts == [["user: hi"], ["user: hi", "assistant: hello", "user: what did I say?"]]
    assert await talk.log() == ["user: hi", "assistant: hello", "user: what did I say?", "assistant: you said hi"]


async def test_another_client_goes_on_with_the_session(service: AsyncSessionService) -> None:
    """H-1, seed 004: the client is stateless; the session keeps the state."""
    await Talk(service, "hello").client.call("hi", session_id="s")
    other = Talk(service, "again")
    await other.client.call("and?", session_id="s")
    assert other.prompts == [["user: hi", "assistant: hello", "user: and?"]]


async def test_sessions_do_not_mix(service: AsyncSessionService) -> None:
    """B118, B119"""
    talk = Talk(service, "for a", "for b")
    await talk.client.call("I am a", session_id="a")
    await talk.client.call("I am b", session_id="b")
    assert talk.prompts[1] == ["user: I am b"]
    assert await talk.log("b") == ["user: I am b", "assistant: for b"]


@pytest.mark.parametrize("wrong", [None, "", "  ", 7, b"s", ["s"]])
async def test_a_call_without_a_session_id_is_refused(service: AsyncSessionService, wrong: object) -> None:
    """Seed 004: the id must be present on every request; a shared default would merge users."""
    talk = Talk(service, "never")
    with pytest.raises(MissingSessionIdError, match="session_id"):
        await talk.client.call("hi", context={} if wrong is None else {SESSION_ID: wrong})
    assert not talk.model.prompts
    assert not (await service.list()).sessions


@pytest.mark.parametrize("advisor", [AsyncSessionMemoryAdvisor, AsyncSessionTurnAdvisor])
async def test_each_advisor_alone_needs_a_session_id(service: AsyncSessionService, advisor: Any) -> None:
    client = AsyncChatClient(AsyncScriptedModel(["never"]), advisors=[advisor(service)])
    with pytest.raises(MissingSessionIdError):
        await client.call("hi")


async def test_the_session_is_named_by_argument_or_context(service: AsyncSessionService) -> None:
    """H-5: ``SessionAdvisors.session(id)`` and ``session_id=`` are shorthands for the key of chat memories."""
    talk = Talk(service, "1", "2", "3", "4", context={SESSION_ID: "by default"})
    assert SESSION_ID == AsyncSessionMemoryAdvisor.SESSION_ID_CONTEXT_KEY == "chat_memory_conversation_id"
    await talk.client.call("a")
    await talk.client.call("b", context=AsyncSessionAdvisors.session("by method"))
    await talk.client.call("c", context={"chat_memory_conversation_id": "by key"})
    await talk.client.call("d", session_id="by argument")
    for name, said in [("by default", "a"), ("by method", "b"), ("by key", "c"), ("by argument", "d")]:
        assert (await talk.log(name))[0] == f"user: {said}"


async def test_a_session_is_made_on_first_use_with_the_calls_metadata(service: AsyncSessionService) -> None:
    """Seed 004: the metadata key's map is the new session's metadata, and is ignored for one that exists."""
    talk = Talk(service, "1", "2")
    result = await talk.client.call("hi", session_id="s", session_metadata={"agent_name": "support"})
    assert result.context[SESSION_METADATA] == {"agent_name": "support"}
    await talk.client.call("hi", session_id="s", session_metadata={"agent_name": "other"})
    assert await metadata_of(service, "s") == {"agent_name": "support"}


async def test_a_calls_metadata_replaces_the_default_as_a_whole(service: AsyncSessionService) -> None:
    """Seed 004: a request's own map replaces the default, it is not merged into it."""
    talk = Talk(service, "1", "2", context={SESSION_METADATA: {"agent_name": "support", "team": "a"}})
    await talk.client.call("hi", session_id="default")
    await talk.client.call("hi", session_id="own", context={SESSION_METADATA: {"team": "b"}})
    assert await metadata_of(service, "default") == {"agent_name": "support", "team": "a"}
    assert await metadata_of(service, "own") == {"team": "b"}


async def test_session_metadata_is_a_dict(service: AsyncSessionService) -> None:
    with pytest.raises(InvalidValueError, match="chat_memory_session_metadata must be a dict"):
        await Talk(service, "never").client.call("hi", session_id="s", context={SESSION_METADATA: "support"})


async def test_the_ids_of_stored_events_come_out_through_the_context(service: AsyncSessionService) -> None:
    """Seed 004: the trailing message's event id, and the reply's; with tools, those of the last round."""
    talk = Talk(service, asks("c1", "c2"), "done", tools=[look_up])
    result = await talk.client.call("hi", session_id="s")
    events = await service.events("s")
    assert logged(events) == [
        "user: hi",
        "assistant: calls c1, c2",
        "tool c1: found c1",
        "tool c2: found c2",
        "assistant: done",
    ]
    assert result.context[REQUEST_EVENT_ID] == result.session.request_event_id == events[3].id
    assert result.context[RESPONSE_EVENT_IDS] == result.session.response_event_ids == [events[4].id]
    assert (REQUEST_EVENT_ID, RESPONSE_EVENT_IDS) == ("chat_memory_request_event_id", "chat_memory_response_event_ids")


async def test_the_request_event_id_can_be_read_on_the_way_down(service: AsyncSessionService) -> None:
    """Seed 004: the id can be read from the forwarded request, so by an advisor inside."""
    seen: list[str] = []

    class Inside:
        async def around_model_call(self, request: Any, call_next: Any) -> Reply:
            seen.append(request.context[REQUEST_EVENT_ID])
            reply: Reply = await call_next(request)
            return reply

    model = AsyncScriptedModel(["hello"])
    client = AsyncChatClient(model, advisors=[*AsyncSessionAdvisors(service), Inside()])
    await client.call("hi", session_id="s")
    assert seen == [(await service.events("s"))[0].id]


async def test_what_is_not_stored_has_no_id(service: AsyncSessionService) -> None:
    """Seed 004: the request's id is absent, the reply's ids are an empty list, when nothing was stored."""
    talk = Talk(service, "hello", message_filter=lambda _: False)
    result = await talk.client.call("hi", session_id="s")
    assert REQUEST_EVENT_ID not in result.context
    assert result.session.request_event_id is None
    assert result.context[RESPONSE_EVENT_IDS] == []
    assert await talk.log() == []


async def test_an_id_of_an_earlier_call_does_not_linger(service: AsyncSessionService) -> None:
    """A context that is handed on to the next call does not bring the ids of the last one."""
    talk = Talk(service, "hello", message_filter=lambda _: False)
    result = await talk.client.call(
        "hi", session_id="s", context={REQUEST_EVENT_ID: "old", RESPONSE_EVENT_IDS: ["old"]}
    )
    assert REQUEST_EVENT_ID not in result.context
    assert result.context[RESPONSE_EVENT_IDS] == []


async def test_the_context_given_is_not_written_to(service: AsyncSessionService) -> None:
    given: dict[str, Any] = {SESSION_ID: "s", "mine": 1}
    result = await Talk(service, "hello").client.call("hi", context=given)
    assert given == {SESSION_ID: "s", "mine": 1}
    assert result.context["mine"] == 1
    assert not [key for key in result.context if "private" in key]
