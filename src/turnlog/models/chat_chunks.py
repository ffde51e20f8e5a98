"""Chunks of a chat completions stream, put together to the answer in one piece that they stand for. Pure.

Services that speak this API differ in what they send twice, and in what they leave out; all of them are read here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from turnlog.errors import InvalidReplyError, InvalidValueError
from turnlog.formats.json_fields import (
    as_object,
    is_array,
    is_object,
    json_name,
    optional_array_at,
    optional_object_at,
)
from turnlog.formats.openai_chat import parse_reply
from turnlog.models.protocol import Delta, Reply
from turnlog.models.provider_request import cut_off, reply_of

#: Where services that show a model's reasoning put it; OpenAI itself does not show it in this API.
_REASONING: Final = ("reasoning_content", "reasoning")
#: They say what something is, and come whole: services repeat them as they like.
_LABELS: Final = frozenset({"id", "type", "role", "format", "index"})


class ChatAssembly:
    """A stream's chunks on their way to a reply. Of several choices the first counts."""

    def __init__(self) -> None:
        self._answer: dict[str, Any] = {}
        self._message: dict[str, Any] = {}
        self._calls = _Calls()
        self._finish_reason: object = None
        self._has_choice = False

    def add(self, chunk: dict[str, Any]) -> Iterator[Delta]:
        """Take a chunk in; what it says of the first choice."""
        if chunk.get("object") not in ("chat.completion.chunk", "", None):
            return  # some services send notes of their own in between
        try:
            # What is known already stays known: not every service says it last.
            self._answer |= {key: chunk[key] for key in ("model", "usage") if chunk.get(key)}
            for index, data in enumerate(optional_array_at(chunk, "choices", "chunk")):
                place = f"chunk.choices[{index}]"
                choice = as_object(data, place)
                if choice.get("index") in (0, None):
                    yield from self._add_choice(choice, place)
        except InvalidValueError as error:
            raise InvalidReplyError(f"the provider's stream cannot be put together: {error}") from error

    def _add_choice(self, choice: dict[str, Any], where: str) -> Iterator[Delta]:
        self._has_choice = True
        self._finish_reason = choice.get("finish_reason") or self._finish_reason
        # What a filter of content has found comes without a delta.
        delta = optional_object_at(choice, "delta", where) or {}
        where = f"{where}.delta"
        for index, piece in enumerate(optional_array_at(delta, "tool_calls", where)):
            self._calls.add(as_object(piece, f"{where}.tool_calls[{index}]"))
        if delta.get("content") is not None:
            self._message["content"] = _content(self._message.get("content"), delta["content"], f"{where}.content")
        _add(self._message, {key: value for key, value in delta.items() if key not in ("content", "tool_calls")})
        said = _said(delta)
        if said.text or said.reasoning:
            yield said

    def reply(self) -> Reply:
        """The whole reply; :class:`InvalidReplyError` where the stream was cut off."""
        if not self._has_choice:
            raise cut_off("it had no choice")
        if not self._finish_reason:
            raise cut_off("it gave no finish reason")
        choice = {"message": self._message | {"tool_calls": self._calls.made}, "finish_reason": self._finish_reason}
        return reply_of(parse_reply, self._answer | {"choices": [choice]})


class _Calls:
    """The calls of a stream, also where a service leaves out their numbers or ids, or gives all of them one number.

    A new id begins a call, and so does a name under a new number, or under none.
    """

    def __init__(self) -> None:
        self.made: list[dict[str, Any]] = []
        self._by_number: dict[int, dict[str, Any]] = {}

    def add(self, piece: dict[str, Any]) -> None:
        """Take a piece in."""
        number = piece.get("index")
        call = self._begun(piece, number)
        if call is None:
            self.made.append(call := dict[str, Any]())
        if type(number) is int:
            self._by_number[number] = call
        _add(call, {key: value for key, value in piece.items() if key != "index"})

    def _begun(self, piece: dict[str, Any], number: object) -> dict[str, Any] | None:
        """The call that a piece goes on with."""
        if piece.get("id"):
            return next((call for call in self.made if call.get("id") == piece["id"]), None)
        if type(number) is int and number in self._by_number:
            return self._by_number[number]
        function = piece.get("function")
        is_named = is_object(function) and bool(function.get("name"))
        return None if is_named or not self.made else self.made[-1]


def _add(whole: dict[str, Any], piece: dict[str, Any]) -> None:
    """Put what a piece says to what is known; null says nothing."""
    for key, value in piece.items():
        if value is not None:
            whole[key] = _joined(whole.get(key), value, key)


def _joined(before: Any, value: Any, key: str) -> Any:
    if is_object(value):
        whole: dict[str, Any] = before if is_object(before) else {}
        _add(whole, value)
        return whole
    if is_array(value):
        entries: list[Any] = before if is_array(before) else []
        _add_entries(entries, value)
        return entries
    if key in _LABELS:
        return before or value
    if type(before) is str and type(value) is str:
        return before if key == "name" and value == before else before + value
    return value


def _add_entries(entries: list[Any], pieces: Iterable[Any]) -> None:
    """Pieces of an entry have its number; what has none is an entry of its own."""
    for piece in pieces:
        entry = next((entry for entry in entries if _is_piece_of(entry, piece)), None)
        if entry is None:
            entries.append(_joined(None, piece, ""))
        else:
            _add(entry, piece)


def _is_piece_of(entry: Any, piece: Any) -> bool:
    if not is_object(piece) or not is_object(entry) or type(piece.get("index")) is not int:
        return False
    is_same_kind = all(None in (entry.get(key), piece.get(key)) or entry[key] == piece[key] for key in ("type", "id"))
    return is_same_kind and entry.get("index") == piece["index"]


def _content(before: Any, piece: Any, where: str) -> Any:
    """Content so far, and what comes behind it: text, or parts where a service shows reasoning among them."""
    if type(piece) is str and (before is None or type(before) is str):
        return (before or "") + piece
    parts, pieces = _as_parts(before), _as_parts(piece)
    if not is_array(pieces):
        raise InvalidValueError(f"{where} must be a string, an array of parts, or null, not {json_name(piece)}")
    for index, data in enumerate(pieces):
        place = f"{where}[{index}]"
        part = as_object(data, place)
        key = _goes_on(parts[-1], part) if parts else None
        if key is None:
            parts.append(part)
        else:
            parts[-1][key] = _content(parts[-1][key], part[key], f"{place}.{key}")
    return parts


def _as_parts(content: Any) -> Any:
    if type(content) is str:
        return [{"type": "text", "text": content}] if content else []
    return [] if content is None else content


def _goes_on(before: dict[str, Any], part: dict[str, Any]) -> str | None:
    """The key of what ``part`` says, if it goes on with the part before it."""
    kind = part.get("type")
    if kind not in ("text", "thinking") or not (before.keys() == part.keys() == {"type", kind}):
        return None
    return kind if before["type"] == kind and type(before[kind]) is type(part[kind]) in (str, list) else None


def _said(delta: dict[str, Any]) -> Delta:
    content, refusal = delta.get("content"), delta.get("refusal")
    shown = next((delta[key] for key in _REASONING if type(delta.get(key)) is str), "")
    thoughts = [_text(part.get("thinking")) for part in content if is_object(part)] if is_array(content) else []
    return Delta(text=_text(content) + _text(refusal), reasoning="".join((shown, *thoughts)))


def _text(content: Any) -> str:
    if is_array(content):
        return "".join(part["text"] for part in content if is_object(part) and type(part.get("text")) is str)
    return content if type(content) is str else ""
