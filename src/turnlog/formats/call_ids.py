"""Ids of tool calls, as a provider accepts them: the same for a call and its result, different for different calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

from msgspec import Struct

from turnlog.log.messages import AssistantMessage, Message, ToolCall, ToolMessage

_OUTSIDE: Final = re.compile(r"[^a-zA-Z0-9_-]")


class IdRule(Struct, frozen=True):
    """What a provider accepts as id of a call; ``is_unique``: also not one that an earlier call of the request had."""

    longest: int
    pattern: re.Pattern[str] | None = None
    is_unique: bool = False

    def accepts(self, call_id: str) -> bool:
        """Whether the id can be sent as it is."""
        return 0 < len(call_id) <= self.longest and (
            self.pattern is None or self.pattern.fullmatch(call_id) is not None
        )


#: Letters, digits, ``_`` and ``-``.
WORD: Final = re.compile(r"[a-zA-Z0-9_-]+")


class CallIds:
    """The ids of one request, given out in its order: first a message's calls, then their results.

    Which id stands for another depends on that id alone as long as none collides, so that a conversation that goes on
    keeps the same beginning.
    """

    def __init__(self, messages: Sequence[Message], rule: IdRule) -> None:
        self._messages = messages
        self._rule = rule
        self._sent: set[str] = set()
        self._mapped: dict[str, str] = {}
        self._made_up: set[str] = set()
        self._present: set[str] | None = None
        self._open: dict[str, list[str]] = {}
        self._names: dict[str, str] = {}

    def calls(self, calls: Iterable[ToolCall]) -> list[str]:
        """The ids to send for the calls of one message."""
        self._open = {}
        sent: list[str] = []
        for call in calls:
            mapped = call.id if self._rule.accepts(call.id) else self._replaced(call.id)
            if call.id in self._open or (self._rule.is_unique and mapped in self._sent):
                mapped = self._another(call.id)
            self._note(call, mapped)
            sent.append(mapped)
        return sent

    def keep(self, calls: Iterable[ToolCall]) -> None:
        """Calls that are sent as the provider itself wrote them."""
        self._open = {}
        for call in calls:
            self._note(call, call.id)

    def result(self, call_id: str) -> str:
        """The id to send for the next result of that call."""
        sent = self._open.get(call_id)
        if sent is None:
            return call_id if self._rule.accepts(call_id) else self._replaced(call_id)
        return sent.pop(0) if len(sent) > 1 else sent[0]

    def is_kept(self, call_id: str) -> bool:
        """Whether a result for that call can be sent as it stands."""
        sent = self._open.get(call_id)
        return sent is None or sent == [call_id]

    def name(self, call_id: str) -> str | None:
        """The name of the tool that was called last under that id."""
        return self._names.get(call_id)

    def _note(self, call: ToolCall, sent: str) -> None:
        self._open.setdefault(call.id, []).append(sent)
        self._sent.add(sent)
        self._names[call.id] = call.name

    def _replaced(self, call_id: str) -> str:
        found = self._mapped.get(call_id)
        if found is None:
            found = self._mapped[call_id] = self._another(call_id)
        return found

    def _another(self, call_id: str) -> str:
        if self._present is None:
            self._present = set(_all_ids(self._messages))
        attempt = 0
        while (made := self._made(call_id, attempt)) in self._present or made in self._made_up or made in self._sent:
            attempt += 1
        self._made_up.add(made)
        return made

    def _made(self, call_id: str, attempt: int) -> str:
        seed = f"{call_id}\n{attempt}" if attempt else call_id
        digest = blake2b(seed.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
        readable = _OUTSIDE.sub("_", call_id)[: self._rule.longest - len(digest) - 1] or "call"
        return f"{readable}_{digest}"


def _all_ids(messages: Iterable[Message]) -> Iterable[str]:
    for message in messages:
        if isinstance(message, AssistantMessage):
            yield from (call.id for call in message.tool_calls)
        elif isinstance(message, ToolMessage):
            yield from (result.id for result in message.results)
