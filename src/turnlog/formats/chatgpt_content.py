"""The content of a message in ChatGPT's export, by its ``content_type``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from turnlog.errors import InvalidValueError
from turnlog.formats.json_fields import as_object, is_object, json_name, optional_array_at, optional_text_at
from turnlog.log.messages import MediaPart, Part, ReasoningPart, TextPart

#: Content that the user neither wrote nor read: custom instructions, memories.
OTHERS: Final = frozenset({"user_editable_context", "model_editable_context", "app_pairing_content"})

#: Where pictures, sounds and films stand in a part, and their media types.
_POINTERS: Final = {
    "image_asset_pointer": "image/*",
    "audio_asset_pointer": "audio/*",
    "video_container_asset_pointer": "video/*",
}


def read_parts(content: dict[str, Any], kind: str, where: str) -> list[Part]:
    """What is said, as parts; none where nothing is. Raises :class:`InvalidValueError` that names the path."""
    return _READERS.get(kind, _unknown)(content, where)


def spoken_text(parts: list[Part]) -> str:
    """The text of the parts, joined."""
    return "".join(part.text for part in parts if isinstance(part, TextPart))


def _text(content: dict[str, Any], where: str) -> list[Part]:
    parts: list[Part] = []
    for index, part in enumerate(optional_array_at(content, "parts", where)):
        place = f"{where}.parts[{index}]"
        if isinstance(part, str):
            parts += [TextPart(part)] if part else []
        elif part is not None:
            parts += _part(as_object(part, place), place)
    return parts


def _part(fields: dict[str, Any], where: str) -> list[Part]:
    kind = optional_text_at(fields, "content_type", where) or ""
    if kind in _POINTERS:
        pointer = optional_text_at(fields, "asset_pointer", where)
        return [MediaPart(media_type=_POINTERS[kind], file_id=pointer)] if pointer else []
    if kind == "real_time_user_audio_video_asset_pointer":
        sound = fields.get("audio_asset_pointer")
        return _part(sound, f"{where}.audio_asset_pointer") if is_object(sound) else []
    text = optional_text_at(fields, "text", where)
    return [TextPart(text)] if text else []


def _field(key: str) -> Callable[[dict[str, Any], str], list[Part]]:
    def read(content: dict[str, Any], where: str) -> list[Part]:
        text = optional_text_at(content, key, where)
        return [TextPart(text)] if text else []

    return read


def _quote(content: dict[str, Any], where: str) -> list[Part]:
    texts = [optional_text_at(content, key, where) for key in ("title", "url", "text", "result", "summary")]
    text = "\n".join(text for text in texts if text)
    return [TextPart(text)] if text else []


def _thoughts(content: dict[str, Any], where: str) -> list[Part]:
    parts: list[Part] = []
    for index, thought in enumerate(optional_array_at(content, "thoughts", where)):
        place = f"{where}.thoughts[{index}]"
        fields = as_object(thought, place)
        texts = [optional_text_at(fields, key, place) for key in ("summary", "content")]
        text = "\n".join(text for text in texts if text)
        parts += [ReasoningPart(text=text)] if text else []
    return parts


def _recap(content: dict[str, Any], where: str) -> list[Part]:
    text = optional_text_at(content, "content", where)
    return [ReasoningPart(text=text)] if text else []


def _unknown(content: dict[str, Any], where: str) -> list[Part]:
    """Content of a type that is not known here: what text it has."""
    if content.get("parts") is not None:
        return _text(content, where)
    text = content.get("text")
    if text is not None and type(text) is not str:
        raise InvalidValueError(f"{where}.text must be a string or null, not {json_name(text)}")
    return [TextPart(text)] if text else []


_READERS: Final[dict[str, Callable[[dict[str, Any], str], list[Part]]]] = {
    "text": _text,
    "multimodal_text": _text,
    "code": _field("text"),
    "execution_output": _field("text"),
    "system_error": _field("text"),
    "tether_quote": _quote,
    "tether_browsing_display": _quote,
    "sonic_webpage": _quote,
    "thoughts": _thoughts,
    "reasoning_recap": _recap,
}
