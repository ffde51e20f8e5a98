"""From our messages to items of the Responses API."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from turnlog.formats.json_fields import is_array, is_object
from turnlog.formats.loss import Notes
from turnlog.formats.openai_responses.content import write_media
from turnlog.formats.openai_responses.reading import FORMAT, IDS, read
from turnlog.formats.systems import system_texts
from turnlog.formats.text import is_blank
from turnlog.formats.writing import CONTINUE, Place, Writing, content_blocks, copied, count_same, final_results
from turnlog.log.messages import (
    AssistantMessage,
    Content,
    MediaPart,
    Message,
    ReasoningPart,
    SystemMessage,
    ToolMessage,
    ToolStatus,
)

#: Calls that the caller answers, and what answers them.
_OUTPUT: Final = "function_call_output"
_ANSWERS: Final = {"function_call": _OUTPUT, "custom_tool_call": "custom_tool_call_output"}
#: Files that were uploaded are known to OpenAI's other API too.
_FORMATS: Final = (FORMAT, "openai-chat")


class _Parts:
    def text(self, text: str) -> dict[str, Any]:
        return {"type": "input_text", "text": text}

    def media(self, part: MediaPart, place: Place, _writing: Writing) -> dict[str, Any] | None:
        return None if place == "assistant" else write_media(part)

    def refusal(self, text: str, place: Place) -> dict[str, Any] | None:
        return {"type": "refusal", "refusal": text} if place == "assistant" else None

    def reasoning(self, _part: ReasoningPart) -> dict[str, Any] | None:
        return None  # only with the item that it led to, which is in the original


class _SaidParts(_Parts):
    def text(self, text: str) -> dict[str, Any]:
        return {"type": "output_text", "text": text, "annotations": []}


#: The input of a request in which nobody says anything.
NOTHING: Final = [{"role": "user", "content": CONTINUE}]

_PARTS: Final = _Parts()
_SAID: Final = _SaidParts()


def render(messages: Iterable[Message], notes: Notes | None = None) -> dict[str, Any]:
    """``input``, and ``instructions`` where the first message is a system message, as the API takes them.

    ``notes`` collects what is left out.
    """
    found = list(messages)
    request: dict[str, Any] = {}
    first = found[0] if found else None
    begin = 0
    if isinstance(first, SystemMessage) and not _is_item(first):
        begin = 1
        instructions = _instructions(first, notes)
        if instructions is not None:
            request["instructions"] = instructions
    if len(found) == begin + 1 and _is_text(found[begin]):
        request["input"] = found[begin].text
        return request
    items = _items(found, begin, notes)
    if not items and found:
        items = copied(NOTHING)
    request["input"] = items
    return request


def _is_item(message: SystemMessage) -> bool:
    native = message.native
    return native is not None and native.format == FORMAT and is_array(native.data)


def _is_text(message: Message) -> bool:
    native = message.native
    return (
        native is not None and native.format == FORMAT and isinstance(native.data, str) and native.data == message.text
    )


def _instructions(message: SystemMessage, notes: Notes | None) -> str | None:
    native = message.native
    if native is not None and native.format == FORMAT and is_object(native.data) and isinstance(message.content, str):
        return message.content  # blank, as it came
    return "\n\n".join(system_texts(message, 0, notes)) or None


class _Sent:
    """What of the request is written already: the ids of its items, and the kind of item that answers each call."""

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self.answers: dict[str, str] = {}


def _items(messages: Sequence[Message], begin: int, notes: Notes | None) -> list[dict[str, Any]]:
    writing = Writing(messages, _FORMATS, IDS, notes)
    items: list[dict[str, Any]] = []
    sent = _Sent()
    index = begin
    while index < len(messages):
        message = messages[index]
        writing.begin(index, message)
        whole = _whole(messages, index, writing, sent)
        if whole is not None:
            items += whole
            writing.kept(1)
        else:
            items += _written(message, writing, sent)
        index += 1
    return items


def _whole(messages: Sequence[Message], index: int, writing: Writing, sent: _Sent) -> list[dict[str, Any]] | None:
    """The items as they came, if the message still says the same and none of them stands in the request already."""
    message = messages[index]
    data: object = None if message.native is None or not writing.is_own else message.native.data
    if not is_array(data) or count_same(messages, index, data, read) != 1:
        return None
    ids = {item["id"] for item in data if isinstance(item.get("id"), str)}
    if ids & sent.ids:
        return None
    if isinstance(message, AssistantMessage):
        writing.ids.keep(message.tool_calls)
        sent.answers |= {item["call_id"]: _ANSWERS[item["type"]] for item in data if item.get("type") in _ANSWERS}
    elif isinstance(message, ToolMessage) and not all(_is_answer(item, writing, sent) for item in data):
        return None
    sent.ids |= ids
    items: list[dict[str, Any]] = copied(data)
    while items and items[-1].get("type") == "reasoning" and str(items[-1].get("id")).startswith("rs_"):
        items.pop()
        writing.lost("", "reasoning", "nothing follows it, which is refused")
    return items


def _is_answer(item: dict[str, Any], writing: Writing, sent: _Sent) -> bool:
    """Whether an output answers its call as that is written here."""
    return writing.ids.is_kept(item["call_id"]) and sent.answers.get(item["call_id"], item["type"]) == item["type"]


def _written(message: Message, writing: Writing, sent: _Sent) -> list[dict[str, Any]]:
    if isinstance(message, AssistantMessage):
        return _assistant(message, writing, sent)
    if isinstance(message, ToolMessage):
        return _outputs(message, writing, sent)
    content = _content(message.content, "user", ".content", _PARTS, writing)
    if content is None and not isinstance(message, SystemMessage) and message.native is not None and not writing.is_own:
        content = f"(content that only {message.native.format} reads: left out)"
    return [] if content is None else [{"role": message.type.value, "content": content}]


def _assistant(message: AssistantMessage, writing: Writing, sent: _Sent) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    content = _content(message.content, "assistant", ".content", _SAID, writing)
    if content is not None:
        items.append({"role": "assistant", "content": content})
    if message.tool_calls:
        ids = writing.ids.calls(message.tool_calls)
        sent.answers |= dict.fromkeys(ids, _OUTPUT)
        items += (
            {"type": "function_call", "call_id": call_id, "name": call.name, "arguments": call.arguments}
            for call, call_id in zip(message.tool_calls, ids, strict=True)
        )
    return items


def _outputs(message: ToolMessage, writing: Writing, sent: _Sent) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for index, result in final_results(message):
        output = _content(result.content, "result", f".results[{index}].content", _PARTS, writing)
        if result.status is not ToolStatus.OK:
            why = f"{writing.format} has no place for it; what the result says is sent"
            writing.lost(f".results[{index}].status", f"status {result.status.value}", why)
        call_id = writing.ids.result(result.id)
        kind = sent.answers.get(call_id, _OUTPUT)
        items.append({"type": kind, "call_id": call_id, "output": "" if output is None else output})
    return items


def _content(
    content: Content, place: Place, path: str, parts: _Parts, writing: Writing
) -> str | list[dict[str, Any]] | None:
    """A string as it is; parts as parts, and the only text among them as a string."""
    if isinstance(content, str):
        return content if place == "result" or not is_blank(content) or writing.is_own else None
    written = content_blocks(content, place, path, parts, writing)
    if len(written) == 1 and "text" in written[0]:
        text: str = written[0]["text"]
        return text
    return written or None
