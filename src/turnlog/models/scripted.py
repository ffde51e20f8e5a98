"""Models without a provider: one that says what it was told to, and keeps what it was asked."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import TypeAlias

from turnlog.errors import InvalidValueError
from turnlog.log.messages import AssistantMessage
from turnlog.models.protocol import Delta, Prompt, Reply, StreamItem

#: One answer: text, a message, a whole reply, an error to raise, or a function of the prompt that gives one of these.
Line: TypeAlias = str | AssistantMessage | Reply | BaseException | Callable[[Prompt], "str | AssistantMessage | Reply"]

#: Characters of one delta.
_PIECE = 8


class Script:
    """The lines that are left, and the prompts that were seen; shared by both colours."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._lines = iter(lines)
        self._lock = threading.Lock()
        #: Every prompt that the model was given, in order.
        self.prompts: list[Prompt] = []

    def next(self, prompt: Prompt) -> Reply:
        """The next answer; an error is raised, and so is the end of the script."""
        with self._lock:
            self.prompts.append(prompt)
            line = next(self._lines, None)
        if line is None:
            raise InvalidValueError(f"the script has ended: it has no answer to prompt {len(self.prompts)}")
        if isinstance(line, BaseException):
            raise line
        said = line if isinstance(line, (str, AssistantMessage, Reply)) else line(prompt)
        if isinstance(said, str):
            return Reply(message=AssistantMessage(said))
        return Reply(message=said) if isinstance(said, AssistantMessage) else said


class ScriptedModel:
    """Answers with the given lines in their order; ``prompts`` holds what it was asked. For threads.

    A line that is an exception is raised; one that is a function is called with the prompt.
    """

    def __init__(self, lines: Iterable[Line]) -> None:
        self._script = Script(lines)
        self.prompts = self._script.prompts

    def generate(self, prompt: Prompt) -> Reply:
        """The next line."""
        return self._script.next(prompt)

    def stream(self, prompt: Prompt) -> Iterator[StreamItem]:
        """The next line in pieces."""
        reply = self._script.next(prompt)
        yield from pieces(reply)
        yield reply


class AsyncScriptedModel:
    """:class:`ScriptedModel` for tasks."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._script = Script(lines)
        self.prompts = self._script.prompts

    async def generate(self, prompt: Prompt) -> Reply:
        """The next line."""
        return self._script.next(prompt)

    async def stream(self, prompt: Prompt) -> AsyncIterator[StreamItem]:
        """The next line in pieces."""
        reply = self._script.next(prompt)
        for piece in pieces(reply):
            yield piece
        yield reply


def pieces(reply: Reply) -> Iterator[Delta]:
    """The text of a reply as deltas."""
    text = reply.message.text
    for start in range(0, len(text), _PIECE):
        yield Delta(text=text[start : start + _PIECE])
