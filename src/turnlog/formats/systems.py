"""System messages where a provider has one place for all of them, at the top of a request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from turnlog.errors import InvalidValueError
from turnlog.formats.json_fields import is_object
from turnlog.formats.loss import Notes
from turnlog.formats.text import is_blank
from turnlog.formats.writing import copied
from turnlog.log.messages import MediaPart, Message, SystemMessage, TextPart


class SystemPlace(Struct, frozen=True):
    """Where a provider has its instructions, how they are read, and which blocks they are made of."""

    format: str
    keys: frozenset[str]
    read: Callable[[Any], list[Message]]
    blocks: Callable[[Any], list[dict[str, Any]]]


def system_original(message: SystemMessage, place: SystemPlace) -> Any:
    """What the provider sent, if the message came from its place for instructions and still says it; else None."""
    native = message.native
    data: object = None if native is None or native.format != place.format else native.data
    if not is_object(data):
        return None
    value = next((data[key] for key in place.keys & data.keys()), None)
    try:
        return copied(value) if value is not None and place.read(value) == [message] else None
    except InvalidValueError:
        return None


def system_texts(message: SystemMessage, index: int, notes: Notes | None) -> list[str]:
    """The texts of a system message that are not blank."""
    texts: list[str] = []
    for at, part in enumerate(message.parts):
        if isinstance(part, TextPart):
            if not is_blank(part.text):
                texts.append(part.text)
        elif notes is not None:
            what = "media" if isinstance(part, MediaPart) else "reasoning"
            notes.lost(index, f".content[{at}]", what, "instructions are text alone")
    return texts


def render_systems(
    systems: Sequence[tuple[int, SystemMessage]],
    place: SystemPlace,
    block: Callable[[str], dict[str, Any]],
    notes: Notes | None,
) -> Any:
    """What stands there: the only message's original, else the blocks of all; None where there are none."""
    blocks: list[dict[str, Any]] = []
    for index, message in systems:
        original = system_original(message, place)
        if original is None:
            blocks += map(block, system_texts(message, index, notes))
            continue
        if notes is not None:
            notes.keep(index)
        if len(systems) == 1:
            return original
        blocks += place.blocks(original)
    return blocks or None
