"""Seeded conversations: question, call, result, answer; 200 to 2,000 characters, the same in every run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from itertools import cycle, islice

from turnlog import AssistantMessage, Message, SessionEvent, ToolCall, ToolMessage, ToolResult, UserMessage

_WORDS = [
    first + second + third
    for first in ("ba", "co", "di", "fu", "ga", "le", "mi", "no", "pe", "ru")
    for second in ("n", "r", "st", "l")
    for third in ("a", "en", "ing", "o", "é", "ly")
]
#: How many different messages a long log holds before they come again: making them takes longer than storing them.
_DIFFERENT = 2_000


def messages(seed: int) -> Iterator[Message]:
    """An endless conversation, four messages a turn."""
    chance = random.Random(seed)  # noqa: S311 - repeatable traffic
    turn = 0
    while True:
        turn += 1
        call = f"call_{seed}_{turn}"
        yield UserMessage(_text(chance, 200, 600))
        yield AssistantMessage(tool_calls=[ToolCall(call, "look_up", f'{{"query": "{_text(chance, 200, 400)}"}}')])
        yield ToolMessage([ToolResult(call, _text(chance, 400, 2_000))])
        yield AssistantMessage(_text(chance, 300, 2_000))


def repeated(seed: int) -> Iterator[Message]:
    """An endless conversation that repeats itself now and then."""
    return cycle(_some(seed))


def events(session_id: str, count: int, seed: int = 1) -> list[SessionEvent]:
    """The first ``count`` messages of a conversation as events."""
    return [SessionEvent(session_id=session_id, message=message) for message in islice(repeated(seed), count)]


@cache
def _some(seed: int) -> list[Message]:
    return list(islice(messages(seed), _DIFFERENT))


def _text(chance: random.Random, least: int, most: int) -> str:
    wanted = chance.randint(least, most)
    words = chance.choices(_WORDS, k=wanted // 3)
    return " ".join(words)[:wanted]
