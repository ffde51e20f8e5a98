"""Models that play the assistant's side of a recorded conversation again (H-1)."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from turnlog.errors import RecordingEndedError, RecordingMismatchError
from turnlog.formats.json_fields import is_object
from turnlog.log.messages import AssistantMessage, Message, MessageMetadata, SystemMessage, ToolMessage, ToolResult
from turnlog.models.protocol import Prompt, Reply, StreamItem, Usage
from turnlog.models.scripted import pieces


class Playback:
    """A recording and how far it has been played; shared by both colours."""

    def __init__(self, messages: Sequence[Message], *, strict: bool) -> None:
        self._said = [message for _, message in in_call_order(messages)]
        self._replies = [message for message in self._said if isinstance(message, AssistantMessage)]
        self._strict = strict
        self._played = 0
        self._lock = threading.Lock()
        #: Every prompt that the model was given, in order.
        self.prompts: list[Prompt] = []

    def next(self, prompt: Prompt) -> Reply:
        """The reply to this prompt, or with ``strict`` off the next one."""
        with self._lock:
            self.prompts.append(prompt)
            if self._strict:
                return _reply(self._reply_behind(prompt))
            if self._played == len(self._replies):
                raise RecordingEndedError(len(self._replies))
            self._played += 1
            return _reply(self._replies[self._played - 1])

    def _reply_behind(self, prompt: Prompt) -> AssistantMessage:
        asked = in_call_order(prompt.messages)
        for (index, mine), recorded in zip(asked, self._said, strict=False):
            if mine != recorded:
                where, was, is_ = f"messages[{index}]", _shown(recorded), _shown(mine)
                raise RecordingMismatchError(where, f"the recording has {was} here, the prompt has {is_}")
        if len(asked) >= len(self._said):
            raise RecordingEndedError(len(self._replies))
        following = self._said[len(asked)]
        if not isinstance(following, AssistantMessage):
            end = f"messages[{len(prompt.messages)}]"
            raise RecordingMismatchError(end, f"the prompt ends, and the recording goes on with {_shown(following)}")
        return following


class ReplayModel:
    """Answers as the model of a recorded conversation did; ``prompts`` holds what it was asked. For threads.

    It checks that each prompt is the recording up to a reply, system messages aside, and gives that reply; what differs
    raises :class:`turnlog.errors.RecordingMismatchError`. So it may be asked again, and in the middle of a recording.
    With ``strict`` off it plays its replies in order, whatever it is asked: compaction and filters shorten a prompt.
    Behind the last reply it raises :class:`turnlog.errors.RecordingEndedError`.
    """

    def __init__(self, messages: Sequence[Message], *, strict: bool = True) -> None:
        self._playback = Playback(messages, strict=strict)
        self.prompts = self._playback.prompts

    def generate(self, prompt: Prompt) -> Reply:
        """The recorded reply."""
        return self._playback.next(prompt)

    def stream(self, prompt: Prompt) -> Iterator[StreamItem]:
        """The recorded reply in pieces."""
        reply = self._playback.next(prompt)
        yield from pieces(reply)
        yield reply


class AsyncReplayModel:
    """:class:`ReplayModel` for tasks."""

    def __init__(self, messages: Sequence[Message], *, strict: bool = True) -> None:
        self._playback = Playback(messages, strict=strict)
        self.prompts = self._playback.prompts

    async def generate(self, prompt: Prompt) -> Reply:
        """The recorded reply."""
        return self._playback.next(prompt)

    async def stream(self, prompt: Prompt) -> AsyncIterator[StreamItem]:
        """The recorded reply in pieces."""
        reply = self._playback.next(prompt)
        for piece in pieces(reply):
            yield piece
        yield reply


def in_call_order(messages: Sequence[Message]) -> list[tuple[int, Message]]:
    """The messages with their places, without instructions, a message for each result, in the order of the calls.

    Of two conversations that say the same these are equal: which tool was done first is no difference.
    """
    said: list[tuple[int, Message]] = []
    batch: list[tuple[int, ToolResult]] = []
    calls: dict[str, int] = {}
    for index, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            batch += ((index, result) for result in message.results)
            continue
        said += _in_order(batch, calls)
        batch = []
        if isinstance(message, AssistantMessage):
            calls = {call.id: at for at, call in enumerate(message.tool_calls)}
        if not isinstance(message, SystemMessage):
            said.append((index, message))
    return [*said, *_in_order(batch, calls)]


def _in_order(batch: list[tuple[int, ToolResult]], calls: dict[str, int]) -> Iterator[tuple[int, Message]]:
    """Each result as a message."""
    for index, result in sorted(batch, key=lambda placed: calls.get(placed[1].id, len(calls))):
        yield index, ToolMessage((result,))


def _shown(message: Message) -> str:
    text = message.text
    if isinstance(message, AssistantMessage) and message.tool_calls:
        text += "".join(f" {call.name}({call.arguments})" for call in message.tool_calls)
    return f"{message.type.value} {text[:80]!r}"


def _reply(message: AssistantMessage) -> Reply:
    return Reply(message=message, usage=_usage(message.metadata.get(MessageMetadata.USAGE)))


def _usage(reported: Any) -> Usage | None:
    """What was reported when the reply was made, where the recording still says so."""
    if not is_object(reported):
        return None
    read, written = reported.get("input_tokens"), reported.get("output_tokens")
    return Usage(read, written) if isinstance(read, int) and isinstance(written, int) else None
