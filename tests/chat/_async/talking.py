"""A client on a service, and what it says and stores."""

from __future__ import annotations

from typing import Any

from tests.chat.speaking import logged, prompts
from turnlog import AsyncSessionService
from turnlog.chat import AsyncChatClient, AsyncSessionAdvisors
from turnlog.models.scripted import AsyncScriptedModel, Line


class Talk:
    """A client on a service, with a model that says these lines."""

    def __init__(self, service: AsyncSessionService, *said: Line, **options: Any) -> None:
        client_options = {
            name: options.pop(name) for name in ("system", "tools", "context", "limits") if name in options
        }
        self.service = service
        self.model = AsyncScriptedModel(said)
        self.advisors = AsyncSessionAdvisors(service, **options)
        self.client = AsyncChatClient(self.model, advisors=self.advisors, **client_options)

    @property
    def prompts(self) -> list[list[str]]:
        return prompts(self.model.prompts)

    async def log(self, session_id: str = "s") -> list[str]:
        return logged(await self.service.events(session_id))


async def metadata_of(service: AsyncSessionService, session_id: str) -> dict[str, Any]:
    """The metadata of a session, which must be there."""
    session = await service.find(session_id)
    assert session is not None
    return session.metadata
