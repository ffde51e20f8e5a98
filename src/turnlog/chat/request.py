"""The values that pass through a call: what is asked, what each model round is given, and what comes of it (H-1)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Self, cast

from msgspec import Struct

from turnlog.chat.context import CallContext
from turnlog.chat.tools import Tool
from turnlog.errors import InvalidReplyError, InvalidValueError
from turnlog.log.message_filter import MessageFilter
from turnlog.log.messages import (
    MESSAGE_CLASSES,
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserMessage,
)
from turnlog.models.protocol import Prompt, Reply, ToolSpec, Usage

_says_something = MessageFilter.skip_empty_messages()


class Outcome(StrEnum):
    """How a turn ended."""

    #: With a reply of the model.
    REPLY = "reply"
    #: With the results of tools that return directly; the model was not asked again.
    DIRECT = "direct"
    #: At a limit; each call of the last batch has a result all the same.
    LIMIT = "limit"


class TurnRequest(Struct, frozen=True, kw_only=True):
    """One call, as ``around_turn`` sees it. ``context`` is shared by everything in the call, and may be written to.

    ``messages`` are the caller's, the user's last. ``steps`` is what an earlier attempt of the same run has done
    already (H-8). ``output_schema`` is the JSON schema of the answer, where one is wanted.
    """

    messages: tuple[Message, ...]
    context: dict[str, Any]
    tools: tuple[Tool, ...] = ()
    options: dict[str, Any] = {}
    output_schema: dict[str, Any] | None = None
    steps: tuple[Message, ...] = ()

    def replace(self, **changes: Any) -> Self:
        """A changed copy."""
        return type(self)(**{name: getattr(self, name) for name in self.__struct_fields__} | changes)


class ModelRequest(Struct, frozen=True, kw_only=True):
    """One model call, as ``around_model_call`` sees it: from the second round on ``messages`` hold the turn so far."""

    messages: tuple[Message, ...]
    context: dict[str, Any]
    tools: tuple[ToolSpec, ...] = ()
    options: dict[str, Any] = {}
    output_schema: dict[str, Any] | None = None

    def replace(self, **changes: Any) -> Self:
        """A changed copy."""
        return type(self)(**{name: getattr(self, name) for name in self.__struct_fields__} | changes)

    def prompt(self) -> Prompt:
        """What the model is given."""
        return Prompt(messages=self.messages, tools=self.tools, options=self.options, output_schema=self.output_schema)


class ToolRequest(Struct, frozen=True, kw_only=True):
    """One tool call, as ``around_tool_call`` sees it; ``tool`` is None where there is none of that name."""

    call: ToolCall
    tool: Tool | None
    context: dict[str, Any]
    idempotency_key: str


class ChatResult(Struct, frozen=True, kw_only=True):
    """What a call gives.

    ``message`` is the model's last reply; ``results`` those of the last tool batch, where the
    turn ended with them; ``output`` the answer as the Python type that was asked for.
    """

    message: AssistantMessage | None
    outcome: Outcome
    usage: Usage
    context: dict[str, Any]
    results: tuple[ToolResult, ...] = ()
    rounds: int = 0
    output: Any = None
    model: str | None = None
    finish_reason: str = "stop"

    @property
    def text(self) -> str:
        """The reply's text, or that of the results that the turn ended with."""
        if self.outcome is Outcome.REPLY:
            return "" if self.message is None else self.message.text
        return "\n".join(result.text for result in self.results)

    @property
    def session(self) -> CallContext:
        """Typed access to the context: session id, run id, and the ids of the stored events (H-5)."""
        return CallContext(self.context)

    def replace(self, **changes: Any) -> Self:
        """A changed copy."""
        return type(self)(**{name: getattr(self, name) for name in self.__struct_fields__} | changes)


def messages_of(
    said: str | Message | Sequence[Message], system: str | SystemMessage | None = None, before: Sequence[Message] = ()
) -> tuple[Message, ...]:
    """The messages that a call sends: instructions, what the caller puts before, and what the user says."""
    spoken: Sequence[Message]
    if isinstance(said, str):
        spoken = (UserMessage(said),)
    else:
        spoken = (said,) if isinstance(said, MESSAGE_CLASSES) else _several(said)
    for message in (*before, *spoken):
        if not isinstance(message, MESSAGE_CLASSES):
            raise _unsayable(message)
    instructions: tuple[Message, ...] = ()
    if system is not None:
        instructions = (SystemMessage(system) if isinstance(system, str) else system,)
    return (*instructions, *before, *spoken)


def _several(said: object) -> Sequence[Message]:
    if not isinstance(said, Sequence):
        raise _unsayable(said)
    return tuple(cast("Sequence[Message]", said))


def _unsayable(said: object) -> InvalidValueError:
    return InvalidValueError(f"a call sends text or messages, not {type(said).__name__}")


def as_reply(reply: object) -> Reply:
    """The reply, if it is one at all."""
    if not isinstance(reply, Reply):
        raise InvalidReplyError(f"a model answers with a Reply, not {type(reply).__name__}")
    return reply


def checked_reply(reply: object, *, may_be_empty: bool) -> Reply:
    """The reply, if it is one that can be stored and answered.

    An empty one is none, but after a tool round it says that there is nothing to add.
    """
    reply = as_reply(reply)
    message = reply.message
    ids = [call.id for call in message.tool_calls]
    if twice := sorted({call_id for call_id in ids if ids.count(call_id) > 1}):
        raise InvalidReplyError(f"the reply has several calls with the id {twice[0]!r:.80}: results name calls by it")
    if not (may_be_empty or _says_something(message)):
        raise InvalidReplyError(f"the model's reply is empty (it finished with {reply.finish_reason!r:.60})")
    return reply
