"""Places in an async call where a test holds it, cancels it, and looks at what it has left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.chat._async.talking import Talk
from tests.chat.guarding import check_pairing
from turnlog import AsyncSessionService
from turnlog.models.protocol import Delta, Prompt, Reply, StreamItem
from turnlog.models.scripted import AsyncScriptedModel, Line

#: So long a test waits for what must happen; only a failing one waits it out.
PATIENCE = 20.0


class Gate:
    """Something that has been reached, and goes on when it is told to."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.go_on = asyncio.Event()

    async def wait(self) -> None:
        self.reached.set()
        await asyncio.wait_for(self.go_on.wait(), PATIENCE)

    async def is_reached(self) -> None:
        await asyncio.wait_for(self.reached.wait(), PATIENCE)


class Hanging:
    """A model that hangs at the gate from some call on; by default where it has no line left."""

    def __init__(self, *said: Line, hangs_at: int | None = None) -> None:
        self.gate = Gate()
        self._model = AsyncScriptedModel(said)
        self._hangs_at = len(said) if hangs_at is None else hangs_at

    async def generate(self, prompt: Prompt) -> Reply:
        if len(self._model.prompts) >= self._hangs_at:
            await self.gate.wait()
        return await self._model.generate(prompt)

    async def stream(self, prompt: Prompt) -> AsyncIterator[StreamItem]:
        yield Delta("one")
        await self.gate.wait()
        yield Delta("two")
        yield await self._model.generate(prompt)


async def cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asyncio.shield(task), PATIENCE)
    assert task.cancelled()


async def check_next_turn(service: AsyncSessionService) -> None:
    """At once, whoever comes next finds a session that is free and a log that makes a good prompt."""
    talk = Talk(service, "fine")
    await talk.client.call("and now?", session_id="s")
    check_pairing(talk.model.prompts[0].messages)
    assert talk.prompts[0][-1] == "user: and now?"
