"""From our messages to OpenAI's chat messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from turnlog.formats.json_fields import is_object
from turnlog.formats.loss import Notes
from turnlog.formats.openai_chat.content import write_media
from turnlog.formats.openai_chat.reading import FORMAT, IDS, read
from turnlog.formats.writing import Place, Writing, content_blocks, copied, count_same, final_results
from turnlog.log.messages import (
    AssistantMessage,
    Content,
    MediaPart,
    Message,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolMessage,
    ToolStatus,
    UserMessage,
)

#: Files that were uploaded are known to OpenAI's other API too.
_FORMATS: Final = (FORMAT, "openai-responses")


class _Parts:
    def text(self, text: str) -> dict[str, Any]:
        return {"type": "text", "text": text}

    def media(self, part: MediaPart, place: Place, _writing: Writing) -> dict[str, Any] | None:
        written = None if place == "assistant" else write_media(part)
        return written if place != "result" or written is None or written["type"] == "image_url" else None

    def refusal(self, text: str, place: Place) -> dict[str, Any] | None:
        return {"type": "refusal", "refusal": text} if place == "assistant" else None

    def reasoning(self, _part: ReasoningPart) -> dict[str, Any] | None:
        return None


_PARTS: Final = _Parts()


def render(messages: Iterable[Message], notes: Notes | None = None) -> list[dict[str, Any]]:
    """The messages as the API takes them; a tool message becomes one for each of its results.

    ``notes`` collects what is left out.
    """
    found = messages if isinstance(messages, list) else list(messages)
    writing = Writing(found, _FORMATS, IDS, notes)
    rendered: list[dict[str, Any]] = []
    for index, message in enumerate(found):
        writing.begin(index, message)
        if writing.is_own and _is_whole(found, index, writing):
            rendered.append(copied(message.native.data if message.native else None))
            writing.kept(1)
        elif isinstance(message, ToolMessage):
            rendered += _results(message, writing)
        else:
            rendered.append(_rendered(message, writing))
    return rendered


def render_message(message: Message) -> list[dict[str, Any]]:
    """One message as the API takes it: the original where ``native`` holds it and it still says the same."""
    return render([message])


def _is_whole(messages: Sequence[Message], index: int, writing: Writing) -> bool:
    message = messages[index]
    data: object = None if message.native is None else message.native.data
    if not is_object(data) or count_same(messages, index, data, read) != 1:
        return False
    if isinstance(message, AssistantMessage):
        writing.ids.keep(message.tool_calls)
    return not isinstance(message, ToolMessage) or all(writing.ids.is_kept(result.id) for result in message.results)


def _rendered(message: SystemMessage | UserMessage | AssistantMessage, writing: Writing) -> dict[str, Any]:
    if isinstance(message, AssistantMessage):
        return _assistant(message, writing)
    content = _content(message.content, "user", ".content", writing)
    if content is None:
        native = message.native
        is_foreign = isinstance(message, UserMessage) and native is not None and not writing.is_own
        content = f"(content that only {native.format} reads: left out)" if native and is_foreign else ""
    return {"role": message.type.value, "content": content}


def _assistant(message: AssistantMessage, writing: Writing) -> dict[str, Any]:
    rendered: dict[str, Any] = {"role": "assistant"}
    match message.content:
        case (TextPart(text=refusal, refusal=True),) if not message.tool_calls:
            rendered |= {"content": None, "refusal": refusal}
        case content:
            rendered["content"] = _content(content, "assistant", ".content", writing)
    if message.tool_calls:
        rendered["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call, call_id in zip(message.tool_calls, writing.ids.calls(message.tool_calls), strict=True)
        ]
    elif rendered["content"] is None and "refusal" not in rendered:
        rendered["content"] = ""
    return rendered


def _results(message: ToolMessage, writing: Writing) -> list[dict[str, Any]]:
    rendered: list[dict[str, Any]] = []
    for index, result in final_results(message):
        content = _content(result.content, "result", f".results[{index}].content", writing)
        if result.status is not ToolStatus.OK:
            why = f"{writing.format} has no place for it; what the result says is sent"
            writing.lost(f".results[{index}].status", f"status {result.status.value}", why)
        fields = {"role": "tool", "tool_call_id": writing.ids.result(result.id), "content": content or ""}
        rendered.append(fields if result.name is None else fields | {"name": result.name})
    return rendered


def _content(content: Content, place: Place, path: str, writing: Writing) -> str | list[dict[str, Any]] | None:
    """The content as the API takes it. Blank text is taken, and is sent."""
    if content is None or isinstance(content, str):
        return content
    return content_blocks(content, place, path, _PARTS, writing, keep_blank=True) or None
