"""What a keyword is looked for in (F-6)."""

from __future__ import annotations

from turnlog.log.messages import AssistantMessage, Message, ToolMessage


def search_text(message: Message) -> str:
    """The text, then each tool call's name and arguments as written, then each result's text, joined by newlines."""
    pieces = [message.text] if message.text else []
    if isinstance(message, AssistantMessage):
        for call in message.tool_calls:
            pieces += (call.name, call.arguments)
    elif isinstance(message, ToolMessage):
        pieces += (result.text for result in message.results if result.text)
    return "\n".join(pieces)


def contains_folded(text: str, folded_term: str) -> bool:
    """Whether ``text`` holds a term that was case-folded before (full Unicode folding, no normalisation)."""
    return folded_term in text.casefold()
