"""Messages of OpenAI's chat completions API, and of the many services that speak it.

``parse`` reads one message of any role and content form; ``render`` writes messages back. Nothing is lost: where our
message does not say all that the original said (an unknown key, a ``developer`` role, a part of an unknown type), the
original stands in ``native``, and ``render`` hands it back untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from turnlog.errors import InvalidValueError
from turnlog.formats.json_fields import as_object, object_at, optional_array_at, optional_text_at, text_at
from turnlog.formats.media import decode_base64
from turnlog.formats.openai_chat_content import parse_content, render_content
from turnlog.log.json_values import storable
from turnlog.log.messages import (
    AssistantMessage,
    Content,
    MediaPart,
    Message,
    Native,
    Part,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)

#: ``Native.format`` of what is kept here.
FORMAT: Final = "openai-chat"

#: The legacy API gave calls no id: call and result belong together by the function's name.
_FUNCTION_ID: Final = "function:"


def parse(data: Any, where: str = "message") -> Message:
    """The message that ``data``, a JSON object, says.

    Raises :class:`InvalidValueError` that begins with the place (``message.content[0].text must be…``), and
    :class:`UnstorableError` for what is no JSON value (R-9).
    """
    fields = as_object(data, where)
    role = text_at(fields, "role", where)
    reader = _ROLES.get(role)
    if reader is None:
        raise InvalidValueError(f"{where}.role is {role[:40]!a}, not one of {', '.join(_ROLES)}")
    message = reader(fields, where)
    if _rendered(message) == [fields]:
        return message
    return message.replace(native=Native(FORMAT, storable(fields, where)))


def render(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The messages as the API takes them; a tool message becomes one for each of its results."""
    return [rendered for message in messages for rendered in render_message(message)]


def render_message(message: Message) -> list[dict[str, Any]]:
    """One message as the API takes it: the original where ``native`` holds it and it still says the same."""
    native = message.native
    if native is not None and native.format == FORMAT and parse(native.data) == message:
        return [storable(native.data, "native.data")]
    return _rendered(message)


def _rendered(message: Message) -> list[dict[str, Any]]:
    if isinstance(message, ToolMessage):
        return [_rendered_result(result) for result in message.results]
    if not isinstance(message, AssistantMessage):
        return [{"role": message.type.value, "content": render_content(message.content)}]
    rendered: dict[str, Any] = {"role": "assistant"}
    match message.content:
        case (TextPart(text=refusal, refusal=True),):
            rendered |= {"content": None, "refusal": refusal}
        case content:
            rendered["content"] = render_content(content)
    if message.tool_calls:
        rendered["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    return [rendered]


def _rendered_result(result: ToolResult) -> dict[str, Any]:
    rendered = {"role": "tool", "tool_call_id": result.id, "content": render_content(result.content)}
    return rendered if result.name is None else rendered | {"name": result.name}


def _system(fields: dict[str, Any], where: str) -> SystemMessage:
    return SystemMessage(_content(fields, where))


def _user(fields: dict[str, Any], where: str) -> UserMessage:
    return UserMessage(_content(fields, where))


def _assistant(fields: dict[str, Any], where: str) -> AssistantMessage:
    content = _content(fields, where)
    if _ELSEWHERE & fields.keys():
        content = _with_other_words(fields, content, where)
    return AssistantMessage(content, tool_calls=_calls(fields, where))


def _tool(fields: dict[str, Any], where: str) -> ToolMessage:
    call_id = text_at(fields, "tool_call_id", where)
    name = optional_text_at(fields, "name", where)
    return ToolMessage((ToolResult(call_id, _content(fields, where), name=name),))


def _function(fields: dict[str, Any], where: str) -> ToolMessage:
    name = text_at(fields, "name", where)
    return ToolMessage((ToolResult(_FUNCTION_ID + name, _content(fields, where), name=name),))


_ROLES: Final[dict[str, Callable[[dict[str, Any], str], Message]]] = {
    "system": _system,
    "developer": _system,
    "user": _user,
    "assistant": _assistant,
    "tool": _tool,
    "function": _function,
}


#: Not in OpenAI's own API; the first is DeepSeek's, the second OpenRouter's, and many follow them.
_REASONING: Final = ("reasoning_content", "reasoning")
_ELSEWHERE: Final = {"refusal", "audio", *_REASONING}


def _content(fields: dict[str, Any], where: str) -> Content:
    content = fields.get("content")
    return content if content is None or type(content) is str else parse_content(content, f"{where}.content")


def _with_other_words(fields: dict[str, Any], content: Content, where: str) -> Content:
    """The content with what an assistant message says outside of it: reasoning, a refusal, speech."""
    thoughts = [fields[key] for key in _REASONING if isinstance(fields.get(key), str) and fields[key]]
    before = [ReasoningPart(text=thought) for thought in thoughts]
    after: list[Part] = []
    refusal = optional_text_at(fields, "refusal", where)
    if refusal is not None:
        after.append(TextPart(refusal, refusal=True))
    if fields.get("audio") is not None:
        after += _audio(fields["audio"], silent=not content, where=f"{where}.audio")
    if not before and not after:
        return content
    parts = (TextPart(content),) if isinstance(content, str) else content or ()
    return (*before, *parts, *after)


def _audio(data: object, *, silent: bool, where: str) -> list[Part]:
    """What was spoken, and its transcript where the message has no text of its own."""
    fields = as_object(data, where)
    file_id = text_at(fields, "id", where)
    encoded = optional_text_at(fields, "data", where)
    transcript = optional_text_at(fields, "transcript", where)
    sound = None if encoded is None else decode_base64(encoded)
    part = MediaPart(media_type="audio/*", file_id=file_id if sound is None else None, data=sound)
    return [TextPart(transcript), part] if transcript and silent else [part]


def _calls(fields: dict[str, Any], where: str) -> tuple[ToolCall, ...]:
    calls = optional_array_at(fields, "tool_calls", where)
    parsed = [_call(call, f"{where}.tool_calls[{index}]") for index, call in enumerate(calls)]
    if fields.get("function_call") is not None:
        place = f"{where}.function_call"
        function = object_at(fields, "function_call", where)
        name = text_at(function, "name", place)
        parsed.append(ToolCall(_FUNCTION_ID + name, name, text_at(function, "arguments", place)))
    return tuple(parsed)


def _call(data: object, where: str) -> ToolCall:
    fields = as_object(data, where)
    call_id = text_at(fields, "id", where)
    # A custom tool takes free text where a function takes JSON; the keys differ, the meaning does not.
    for kind, text in (("function", "arguments"), ("custom", "input")):
        if kind in fields:
            called = object_at(fields, kind, where)
            place = f"{where}.{kind}"
            return ToolCall(call_id, text_at(called, "name", place), text_at(called, text, place))
    raise InvalidValueError(f"{where} has neither 'function' nor 'custom'")
