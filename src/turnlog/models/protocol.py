"""What a chat model is to turnlog (H-1): an adapter asks a provider with a prompt, and makes a reply of the answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from turnlog.formats.reply import Usage
from turnlog.formats.tools import ToolSpec
from turnlog.log.messages import AssistantMessage, Message

#: Tools and usage are values of the wire formats; a model speaks of them too.
__all__ = ["AsyncChatModel", "ChatModel", "Delta", "Prompt", "Reply", "StreamItem", "ToolSpec", "Usage"]


class Prompt(Struct, frozen=True, kw_only=True):
    """One model call: messages, tools, and what else the caller asks of the model."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    #: A JSON schema that the answer must meet, where one is wanted.
    output_schema: dict[str, Any] | None = None
    #: Options by the provider's own names (temperature, reasoning effort…), handed on as they are.
    options: dict[str, Any] = {}


class Reply(Struct, frozen=True, kw_only=True):
    """A whole answer."""

    message: AssistantMessage
    usage: Usage | None = None
    model: str | None = None
    finish_reason: str = "stop"


class Delta(Struct, frozen=True):
    """A piece of an answer on its way: of its text, or of its reasoning."""

    text: str = ""
    reasoning: str = ""


#: What a stream yields: deltas, and at its end the whole reply.
StreamItem: TypeAlias = Delta | Reply


@runtime_checkable
class ChatModel(Protocol):
    """A model for threads."""

    def generate(self, prompt: Prompt) -> Reply:
        """Answer the prompt."""
        ...

    def stream(self, prompt: Prompt) -> Iterator[StreamItem]:
        """Answer in pieces; the last item is the whole reply."""
        ...


@runtime_checkable
class AsyncChatModel(Protocol):
    """A model for tasks."""

    async def generate(self, prompt: Prompt) -> Reply:
        """Answer the prompt."""
        ...

    def stream(self, prompt: Prompt) -> AsyncIterator[StreamItem]:
        """Answer in pieces; the last item is the whole reply."""
        ...
