"""What the readers of all providers share: typed access that names the path, and turns of neighbours with one role."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from msgspec import Struct

from turnlog.errors import InvalidValueError
from turnlog.formats.json_fields import as_object, is_array, json_name, optional_text_at, text_at


class Block(Struct, frozen=True):
    """A part of a message, whose place ``message`` is; ``kind`` is ``""`` where none is said."""

    place: str
    message: str
    kind: str
    fields: dict[str, Any]


class Message(Struct, frozen=True):
    """A message of any provider: its role and its parts."""

    place: str
    role: str
    blocks: tuple[Block, ...]


class Turn(Struct, frozen=True):
    """Neighbouring messages of one role, which providers read as one."""

    role: str
    messages: tuple[Message, ...]

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The parts of all its messages, in order."""
        return tuple(block for message in self.messages for block in message.blocks)


def joined(messages: Iterable[Message]) -> tuple[Turn, ...]:
    """The messages as turns."""
    return tuple(Turn(role, tuple(run)) for role, run in groupby(messages, key=lambda message: message.role))


def objects(value: object, place: str) -> list[tuple[str, dict[str, Any]]]:
    """The elements of an array of objects, each with its place."""
    if not is_array(value):
        raise InvalidValueError(f"{place} must be an array, not {json_name(value)}")
    placed = ((f"{place}[{index}]", item) for index, item in enumerate(value))
    return [(where, as_object(item, where)) for where, item in placed]


def required(request: dict[str, Any], key: str) -> Any:
    """What stands under a key of the request itself."""
    if key not in request:
        raise InvalidValueError(f"the request has no {key!r}")
    return request[key]


def model_of(request: dict[str, Any], *keys: str) -> str | None:
    """The model that the request names."""
    for key in keys:
        if request.get(key) is not None:
            return text_at(request, key, "request")
    return None


def text_or_null(fields: dict[str, Any], key: str, where: str) -> str | None:
    """The string under ``key``; None where there is none, or null."""
    return optional_text_at(fields, key, where)
