"""Models: the protocol of a provider adapter, adapters for providers, and models that are scripted or replayed.

The adapters need the provider's own package: ``turnlog[openai]`` or ``turnlog[anthropic]``.
"""

from turnlog.formats.reply import Usage
from turnlog.formats.tools import ToolSpec
from turnlog.models.anthropic import AnthropicModel, AsyncAnthropicModel
from turnlog.models.openai_chat import AsyncOpenAIChatModel, OpenAIChatModel
from turnlog.models.openai_responses import AsyncOpenAIResponsesModel, OpenAIResponsesModel
from turnlog.models.protocol import AsyncChatModel, ChatModel, Delta, Prompt, Reply, StreamItem
from turnlog.models.recording import Recording, turns_of
from turnlog.models.replay import AsyncReplayModel, ReplayModel
from turnlog.models.scripted import AsyncScriptedModel, ScriptedModel
from turnlog.models.summarizer import chat_summarizer

__all__ = [
    "AnthropicModel",
    "AsyncAnthropicModel",
    "AsyncChatModel",
    "AsyncOpenAIChatModel",
    "AsyncOpenAIResponsesModel",
    "AsyncReplayModel",
    "AsyncScriptedModel",
    "ChatModel",
    "Delta",
    "OpenAIChatModel",
    "OpenAIResponsesModel",
    "Prompt",
    "Recording",
    "ReplayModel",
    "Reply",
    "ScriptedModel",
    "StreamItem",
    "ToolSpec",
    "Usage",
    "chat_summarizer",
    "turns_of",
]
