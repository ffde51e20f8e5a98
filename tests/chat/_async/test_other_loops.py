"""H-3: the memory advisor around the model calls of a loop that is not ours."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chat.speaking import asks
from turnlog import (
    AssistantMessage,
    AsyncSessionService,
    SystemMessage,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from turnlog.chat import (
    AsyncSessionAdvisors,
    AsyncSessionMemoryAdvisor,
    ModelRequest,
)
from turnlog.models.protocol import Reply
from turnlog.models.scripted import AsyncScriptedModel


class TestInAnotherLoop:
    """The memory advisor around the model calls of a loop that is not ours: its ``around_turn`` is never called."""

    async def ask(
        self, memory: AsyncSessionMemoryAdvisor, model: AsyncScriptedModel, *said: Any, **context: Any
    ) -> Reply:
        async def call_next(request: ModelRequest) -> Reply:
            return await model.generate(request.prompt())

        named = AsyncSessionAdvisors.session("s") | context
        return await memory.around_model_call(ModelRequest(messages=said, context=named), call_next)

    async def test_a_loop_that_sends_the_turn_so_far(self, service: AsyncSessionService) -> None:
        """Seed 004: only the history before the overlap is prepended."""
        memory, model = AsyncSessionMemoryAdvisor(service), AsyncScriptedModel(["0", asks("c1"), "1"])
        await self.ask(memory, model, UserMessage("before"))
        asked = await self.ask(memory, model, UserMessage("a"))
        found = ToolMessage((ToolResult("c1", "found"),))
        await self.ask(memory, model, UserMessage("a"), asked.message, found)
        before = (UserMessage("before"), AssistantMessage("0"), UserMessage("a"))
        assert model.prompts[2].messages == (*before, asked.message, found)
        assert len(await service.events("s")) == 6

    @pytest.mark.parametrize("run", [{}, {"turnlog_run_id": "r"}])
    async def test_a_loop_that_sends_the_last_tool_result_alone(
        self, service: AsyncSessionService, run: dict[str, str]
    ) -> None:
        """Seed 004: a loop with its own history off; the turn so far comes from the log, a blank stand-in goes."""

        memory, model = AsyncSessionMemoryAdvisor(service), AsyncScriptedModel(["0", asks("c1"), asks("c2"), "1"])
        await self.ask(memory, model, UserMessage("before"))
        blank = SystemMessage("")
        await self.ask(memory, model, blank, UserMessage("a"), **run)
        first, second = (ToolMessage((ToolResult(call_id, "found"),)) for call_id in ("c1", "c2"))
        await self.ask(memory, model, blank, first, **run)
        await self.ask(memory, model, blank, second, **run)
        before = (UserMessage("before"), AssistantMessage("0"), UserMessage("a"))
        assert model.prompts[2].messages == (*before, asks("c1"), first)
        assert model.prompts[3].messages == (*before, asks("c1"), first, asks("c2"), second)
        assert len(await service.events("s")) == 8
