"""H-9, H-13: what is made for tasks does not fit a sync client, and is refused before anything is done."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.chat._sync.talking import Talk
from tests.chat.speaking import asks, lines
from turnlog import AsyncSessionService, SessionService, open_store
from turnlog.chat import (
    AsyncChatClient,
    AsyncSessionAdvisors,
    ChatClient,
    ModelRequest,
    SessionAdvisors,
    tool,
)
from turnlog.chat.advisor import AsyncNextModelCall
from turnlog.errors import InvalidValueError, ToolDefinitionError
from turnlog.models.protocol import Reply
from turnlog.models.scripted import AsyncScriptedModel, ScriptedModel


@pytest.fixture
def service() -> Iterator[SessionService]:
    with SessionService(open_store("memory:"), turn_wait=timedelta()) as opened:
        yield opened


async def search(key: str) -> str:
    """An async function."""
    return key


class Searching:
    async def __call__(self, key: str) -> str:
        return key


def test_an_async_tool_is_refused_by_a_sync_client(service: SessionService) -> None:
    """When the client is made, or before a call has done anything: it has no loop to run in."""
    with pytest.raises(ToolDefinitionError, match="'search': it is async: use it with AsyncChatClient"):
        ChatClient(ScriptedModel([]), tools=[search])
    with pytest.raises(ToolDefinitionError, match="it is async"):
        ChatClient(ScriptedModel([]), tools=[tool(Searching(), name="searching")])
    talk = Talk(service, "never")
    with pytest.raises(ToolDefinitionError, match="it is async"):
        talk.client.call("hi", session_id="s", tools=[search])
    assert not service.list().sessions


def test_a_sync_function_that_returns_a_coroutine_is_told_to_the_model() -> None:
    def disguised(key: str) -> object:
        return search(key)

    model = ScriptedModel([asks("c1", name="disguised"), "done"])
    ChatClient(model, tools=[disguised]).call("hi")
    assert "it returns a coroutine: use it with AsyncChatClient" in lines(model.prompts[1].messages)[-1]


def test_what_is_made_for_tasks_is_refused() -> None:
    """When the client is made: as it is, it would answer with a coroutine."""
    model: Any = AsyncScriptedModel(["1"])
    with pytest.raises(InvalidValueError, match="AsyncScriptedModel is an async model: use it with AsyncChatClient"):
        ChatClient(model)
    advisors: Any = AsyncSessionAdvisors(AsyncSessionService.open("memory:"))
    with pytest.raises(InvalidValueError, match="AsyncSessionTurnAdvisor is an async advisor"):
        ChatClient(ScriptedModel(["1"]), advisors=advisors)


class Waiting:
    """Made for tasks, though it is no coroutine function: it returns what it is given to await."""

    def around_model_call(self, request: ModelRequest, call_next: AsyncNextModelCall) -> Awaitable[Reply]:
        return call_next(request)


class Unclear:
    """Its hints cannot be read where the program runs."""

    def around_model_call(self, request: Any, call_next: Any) -> Any:
        return call_next(request)

    around_model_call.__annotations__["request"] = "Missing"  # as if it were imported for type checkers alone


async def test_what_is_made_for_threads_is_refused_by_an_async_client(service: SessionService) -> None:
    """As far as it says what it is."""
    wrong: Any = SessionAdvisors(service)
    with pytest.raises(InvalidValueError, match="SessionTurnAdvisor is an advisor for threads: use it with ChatClient"):
        AsyncChatClient(AsyncScriptedModel(["1"]), advisors=wrong)
    with pytest.raises(InvalidValueError, match="SessionMemoryAdvisor is an advisor for threads"):
        AsyncChatClient(AsyncScriptedModel(["1"]), advisors=wrong[1:])
    others: list[Any] = [Waiting(), Unclear()]
    client = AsyncChatClient(AsyncScriptedModel(["1"]), advisors=others)
    assert (await client.call("hi")).text == "1"
