"""Models: the protocol of a provider adapter, and models that are scripted or replayed."""

from turnlog.formats.reply import Usage
from turnlog.formats.tools import ToolSpec
from turnlog.models.protocol import AsyncChatModel, ChatModel, Delta, Prompt, Reply, StreamItem
from turnlog.models.summarizer import chat_summarizer

__all__ = [
    "AsyncChatModel",
    "ChatModel",
    "Delta",
    "Prompt",
    "Reply",
    "StreamItem",
    "ToolSpec",
    "Usage",
    "chat_summarizer",
]
