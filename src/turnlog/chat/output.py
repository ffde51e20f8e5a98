"""Structured output: a reply read as a Python type (H-1)."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from turnlog.chat.request import ChatResult, ModelRequest, Outcome
from turnlog.errors import InvalidReplyError, InvalidValueError
from turnlog.formats.json_text import decode_as
from turnlog.log.messages import Message, TextPart, UserMessage
from turnlog.models.protocol import Reply

#: What a JSON document can be read as: a dataclass, a TypedDict, a Struct, a pydantic model, ``list[int]``…
OutputType: TypeAlias = Any


class Output(Struct, frozen=True):
    """How a type is asked for, and read."""

    type: OutputType
    schema: dict[str, Any]

    def problem(self, reply: Reply) -> str:
        """Why the reply cannot be read as the type; blank where it can, and where it asks for tools first."""
        if reply.message.tool_calls:
            return ""
        try:
            self._decoded(reply.message.text)
        except ValueError as error:  # msgspec's and pydantic's are both of this kind
            return str(error)
        return ""

    def again(self, request: ModelRequest, problem: str) -> ModelRequest:
        """The request with what was wrong, said behind the last user message; the wrong reply is not shown."""
        note = f"The answer must be JSON that meets the schema. The last one did not: {problem}"
        messages = list(request.messages)
        for index in range(len(messages) - 1, -1, -1):
            message = messages[index]
            if isinstance(message, UserMessage):
                messages[index] = message.replace(content=(*message.parts, TextPart("\n\n" + note)), native=None)
                return request.replace(messages=tuple(messages))
        added: tuple[Message, ...] = (*messages, UserMessage(note))
        return request.replace(messages=added)

    def read(self, result: ChatResult) -> Any:
        """The value, None where the turn did not end with a reply; :class:`InvalidReplyError` if it is none."""
        if result.outcome is not Outcome.REPLY:
            return None
        try:
            return self._decoded(result.text)
        except ValueError as error:
            raise InvalidReplyError(f"the reply is no {_name(self.type)}: {error}") from error

    def _decoded(self, text: str) -> Any:
        if hasattr(self.type, "model_validate_json"):
            return self.type.model_validate_json(_bare(text))
        return decode_as(_bare(text), self.type)


def with_output(type_: OutputType) -> Output:
    """How ``type_`` is asked for; :class:`InvalidValueError` where it has no JSON schema."""
    if hasattr(type_, "model_json_schema"):
        return Output(type_, type_.model_json_schema())
    try:
        return Output(type_, msgspec.json.schema(type_))
    except (TypeError, NotImplementedError, RuntimeError) as error:
        raise InvalidValueError(f"{_name(type_)} has no JSON schema: {error}") from error


def _bare(text: str) -> str:
    """The JSON itself: models like to put it into a Markdown block."""
    stripped = text.strip()
    if stripped.startswith("```") and stripped.endswith("```"):
        return stripped[3:-3].removeprefix("json").strip()
    return stripped


def _name(type_: OutputType) -> str:
    return getattr(type_, "__name__", str(type_))[:80]
