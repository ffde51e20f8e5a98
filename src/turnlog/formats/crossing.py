"""Calls and results side by side, for a provider that wants them so, whatever the one they came from took."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from turnlog.formats.loss import Loss
from turnlog.log.messages import (
    AssistantMessage,
    Message,
    Part,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolStatus,
    UserMessage,
)


class Paired(Struct, frozen=True):
    """The messages, where each stood before, and what could not be paired."""

    messages: list[Message]
    indices: list[int]
    losses: list[Loss]


class _Pairs:
    """Which result answers which call: of the message that used its id last, and of several results the last one."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.answers: dict[int, list[ToolResult | None]] = {}
        #: Results that answer nothing, by message.
        self.lonely: dict[int, list[tuple[int, ToolResult]]] = {}
        self.overtaken: list[tuple[int, int, ToolResult]] = []
        self._slots: dict[str, list[tuple[int, int]]] = {}
        self._from: dict[tuple[int, int], tuple[int, int]] = {}
        for index, message in enumerate(messages):
            if isinstance(message, AssistantMessage):
                self._ask(index, message.tool_calls)
            elif isinstance(message, ToolMessage):
                for at, result in enumerate(message.results):
                    if result.status is not ToolStatus.INTERIM:
                        self._answer(index, at, result)

    def _ask(self, index: int, calls: Sequence[ToolCall]) -> None:
        self.answers[index] = [None] * len(calls)
        for call in calls:
            self._slots[call.id] = []
        for at, call in enumerate(calls):
            self._slots[call.id].append((index, at))

    def _answer(self, index: int, at: int, result: ToolResult) -> None:
        slots = self._slots.get(result.id)
        if slots is None:
            self.lonely.setdefault(index, []).append((at, result))
            return
        slot = next((slot for slot in slots if self.answers[slot[0]][slot[1]] is None), slots[-1])
        asked, call = slot
        before = self.answers[asked][call]
        if before is not None:
            self.overtaken.append((*self._from[slot], before))
        self.answers[asked][call] = result
        self._from[slot] = (index, at)


def paired(messages: Sequence[Message]) -> Paired:
    """The messages with each call's result right behind it.

    A call without a result becomes a text that says so, a result without a call is told by the user.
    """
    pairs = _Pairs(messages)
    made = Paired([], [], [])
    for index, at, result in pairs.overtaken:
        made.losses.append(Loss(f"messages[{index}].results[{at}]", f"result of {result.id!a}", "a later one follows"))
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and message.tool_calls:
            _add_calls(index, message, messages, pairs.answers[index], made)
        elif not isinstance(message, ToolMessage):
            _add(index, message, made)
        else:
            for at, result in pairs.lonely.get(index, ()):
                why = "its call is not here; what it says is sent as the user's words"
                made.losses.append(Loss(f"messages[{index}].results[{at}]", f"result of {result.id!a}", why))
                _add(index, _told(result), made)
    return made


def _add(index: int, message: Message, made: Paired) -> None:
    made.messages.append(message)
    made.indices.append(index)


def _add_calls(
    index: int, message: AssistantMessage, messages: Sequence[Message], answers: list[ToolResult | None], made: Paired
) -> None:
    answered = [call for call, answer in zip(message.tool_calls, answers, strict=True) if answer is not None]
    results = [answer for answer in answers if answer is not None]
    if len(answered) < len(answers):
        message = _without_dead(index, message, answers, made)
    _add(index, message, made)
    behind = _behind(index, messages)
    if [result for follower in behind for result in follower.results] == results:
        # As they are: they may hold what their provider sent.
        for at, follower in enumerate(behind, index + 1):
            _add(at, follower, made)
    elif results:
        _add(index, ToolMessage(results), made)


def _behind(index: int, messages: Sequence[Message]) -> list[ToolMessage]:
    behind: list[ToolMessage] = []
    for at in range(index + 1, len(messages)):
        message = messages[at]
        if not isinstance(message, ToolMessage):
            break
        behind.append(message)
    return behind


def _without_dead(
    index: int, message: AssistantMessage, answers: list[ToolResult | None], made: Paired
) -> AssistantMessage:
    parts: list[Part] = list(message.parts)
    calls: list[ToolCall] = []
    for at, (call, answer) in enumerate(zip(message.tool_calls, answers, strict=True)):
        if answer is not None:
            calls.append(call)
            continue
        why = "it has no result, which is told as text"
        made.losses.append(Loss(f"messages[{index}].tool_calls[{at}]", f"call of {call.name!a}", why))
        parts.append(TextPart(f"(Called {call.name} with {call.arguments}; there is no result.)"))
    return message.replace(content=parts, tool_calls=calls)


def _told(result: ToolResult) -> UserMessage:
    head = TextPart(f"(Result of call {result.id}:)")
    content = result.content
    if content is None:
        return UserMessage((head,))
    return UserMessage((head, TextPart(content)) if isinstance(content, str) else (head, *content))
