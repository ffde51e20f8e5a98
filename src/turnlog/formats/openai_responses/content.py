"""Content of messages and outputs in the Responses API: a string, or parts of text, images and files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from turnlog.errors import InvalidValueError
from turnlog.formats.json_fields import as_object, is_array, json_name, optional_text_at, text_at
from turnlog.formats.media import base64_of, data_url, file_name, split_data_url, web_url
from turnlog.formats.reading import Reading
from turnlog.log.messages import MediaPart, TextPart

#: How closely an image is looked at, unless somebody says so.
_DETAIL: Final = "auto"
_TEXT_KEYS: Final = frozenset({"type", "text"})
_SAID_KEYS: Final = frozenset({"type", "text", "annotations", "logprobs"})
_REFUSAL_KEYS: Final = frozenset({"type", "refusal"})
_IMAGE_KEYS: Final = frozenset({"type", "image_url", "file_id", "detail"})
_FILE_KEYS: Final = frozenset({"type", "file_data", "file_url", "file_id", "filename"})


def read_content(content: Any, where: str, reading: Reading) -> None:
    """A message's content, or an output."""
    if isinstance(content, str):
        reading.parts.append(content)
        return
    if not is_array(content):
        raise InvalidValueError(f"{where} must be a string or an array of parts, not {json_name(content)}")
    for index, data in enumerate(content):
        place = f"{where}[{index}]"
        fields = as_object(data, place)
        kind = text_at(fields, "type", place)
        reader = _PARTS.get(kind)
        if reader is None:
            reading.unknown(place, kind)
        else:
            reader(fields, place, reading)
    if not content or (len(content) == 1 and content[0]["type"] in _TEXTS):
        reading.layout()


def _text(fields: dict[str, Any], where: str, reading: Reading) -> None:
    reading.beyond(fields, _TEXT_KEYS, where)
    reading.text(text_at(fields, "text", where))


def _said(fields: dict[str, Any], where: str, reading: Reading) -> None:
    reading.text(text_at(fields, "text", where))
    reading.beyond(fields, _SAID_KEYS, where)
    if fields.get("annotations"):
        reading.unknown(f"{where}.annotations", "citations")
    elif "annotations" not in fields or "logprobs" in fields:
        reading.layout()


def _refusal(fields: dict[str, Any], where: str, reading: Reading) -> None:
    reading.beyond(fields, _REFUSAL_KEYS, where)
    reading.parts.append(TextPart(text_at(fields, "refusal", where), refusal=True))


def _image(fields: dict[str, Any], where: str, reading: Reading) -> None:
    reading.beyond(fields, _IMAGE_KEYS, where)
    detail = optional_text_at(fields, "detail", where)
    if detail not in {None, _DETAIL}:
        reading.unknown(f"{where}.detail", f"detail {detail}")
    url = optional_text_at(fields, "image_url", where)
    file_id = optional_text_at(fields, "file_id", where)
    _add(_named(url, file_id, "image/*", None, where), fields, reading)


def _file(fields: dict[str, Any], where: str, reading: Reading) -> None:
    reading.beyond(fields, _FILE_KEYS, where)
    keys = [key for key in ("file_data", "file_url", "file_id") if fields.get(key) is not None]
    key = keys[0] if keys else "file_id"
    value = optional_text_at(fields, key, where)
    name = optional_text_at(fields, "filename", where)
    is_id = key == "file_id"
    _add(_named(None if is_id else value, value if is_id else None, None, name, where), fields, reading)


def _named(url: str | None, file_id: str | None, media_type: str | None, name: str | None, where: str) -> MediaPart:
    if url is not None:
        held = split_data_url(url)
        if held is not None and data_url(*held) == url:
            return MediaPart(media_type=held[0], data=held[1], name=name)
        return MediaPart(media_type=media_type, url=url, name=name)
    if file_id is None:
        raise InvalidValueError(f"{where} names nothing: neither an address, nor data, nor a 'file_id'")
    return MediaPart(media_type=media_type, file_id=file_id, name=name)


def _add(part: MediaPart, fields: dict[str, Any], reading: Reading) -> None:
    reading.is_own |= part.file_id is not None
    if write_media(part) != fields:
        reading.layout()
    reading.parts.append(part)


_TEXTS: Final = frozenset({"input_text", "output_text"})
_PARTS: Final[dict[str, Callable[[dict[str, Any], str, Reading], None]]] = {
    "input_text": _text,
    "output_text": _said,
    "refusal": _refusal,
    "input_image": _image,
    "input_file": _file,
}


def write_media(part: MediaPart) -> dict[str, Any] | None:
    """The part for an image or a file; None for sound and video, of which the API takes none."""
    media_type = part.media_type or ""
    held = base64_of(part)
    if held is not None:
        media_type = held[0]
    if media_type.startswith(("audio/", "video/")):
        return None
    url = web_url(part) if held is None else f"data:{held[0]};base64,{held[1]}"
    if media_type.startswith("image/"):
        return _written_image(part, url)
    if part.file_id is not None:
        return {"type": "input_file", "file_id": part.file_id}
    if url is None:
        return None
    if held is None:
        return {"type": "input_file", "file_url": url}
    return {"type": "input_file", "file_data": url, "filename": file_name(part, media_type)}


def _written_image(part: MediaPart, url: str | None) -> dict[str, Any] | None:
    image: dict[str, Any] = {"type": "input_image", "detail": _DETAIL}
    if part.file_id is not None:
        return image | {"file_id": part.file_id}
    return None if url is None else image | {"image_url": url}
