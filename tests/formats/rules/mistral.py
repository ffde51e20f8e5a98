"""Chats as the package ``mistral-common`` reads them, and the verdict of its validator."""

from __future__ import annotations

import importlib
import re
from typing import Any, Final

Fields = dict[str, Any]

#: Parts that Mistral's messages have too; each keeps its data under the name of its kind.
_PARTS: Final = ("text", "image_url", "input_audio")
_ROLES: Final = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


def foreign_parts(request: Fields) -> set[str]:
    """The kinds of parts in the request that ``mistral-common`` has no type for."""
    contents = [message.get("content") for message in request["messages"]]
    kinds = {part["type"] for content in contents if isinstance(content, list) for part in content}
    return kinds - {*_PARTS, "thinking"}


class Validator:
    """The newest validator of the package, as for chats that are served."""

    def __init__(self) -> None:
        # Found at run time: the package stands beside .venv, and only where scripts/cross-check put it.
        module: Any = importlib.import_module("mistral_common.protocol.instruct.validator")
        versions: Any = importlib.import_module("mistral_common.tokens.tokenizers.base").TokenizerVersion
        self._request: Any = module.ChatCompletionRequest
        self._refusals: tuple[type[Exception], ...] = (module.MistralCommonException,)
        self._validator: Any = module.get_validator(versions.v15, module.ValidationMode.serving)

    def refusal(self, request: Fields, *, goes_on: bool = True) -> str | None:
        """Why the messages are refused, without ids; None if they are not. What is no chat raises pydantic's error.

        An answer at the end has to say that it is to be continued, which it does unless ``goes_on`` is false.
        """
        messages = translated(request["messages"])
        if goes_on and messages and messages[-1]["role"] == "assistant":
            messages[-1]["prefix"] = True
        read = self._request.model_validate({"model": "m", "messages": messages})
        try:
            self._validator.validate_request(read)
        except self._refusals as refusal:
            return re.sub(r"\b\d{9}\b", "...", str(refusal))
        return None


def translated(messages: list[Fields]) -> list[Fields]:
    """The messages in Mistral's form, in which ids have nine characters: different ones stay different."""
    ids: dict[str, str] = {}
    return [_message(message, ids) for message in messages]


def _message(message: Fields, ids: dict[str, str]) -> Fields:
    role = _ROLES[message["role"]]
    content = message.get("content")
    said: Fields = {
        "role": role,
        "content": [_part(part) for part in content] if isinstance(content, list) else content,
    }
    if role == "tool":
        said["tool_call_id"] = _id(message["tool_call_id"], ids)
    if role == "assistant" and message.get("tool_calls") is not None:
        said["tool_calls"] = [_call(call, ids) for call in message["tool_calls"]]
    return said


def _call(call: Fields, ids: dict[str, str]) -> Fields:
    function = call["function"]
    return {
        "id": _id(call["id"], ids),
        "function": {"name": function["name"], "arguments": function["arguments"]},
    }


def _id(id_: str, ids: dict[str, str]) -> str:
    return ids.setdefault(id_, f"{len(ids):09d}")


def _part(part: Fields) -> Fields:
    kind = part["type"]
    if kind == "thinking":
        return {"type": kind, "thinking": "".join(text["text"] for text in part["thinking"])}
    return {"type": kind, kind: part[kind]}
