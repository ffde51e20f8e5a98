"""Content of OpenAI chat messages: a string, null, or parts of text, images, sound, files and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from turnlog.errors import InvalidValueError
from turnlog.formats.json_fields import as_object, is_array, json_name, object_at, optional_text_at, text_at
from turnlog.formats.media import base64_of, data_url, file_name, media_from_base64, split_data_url
from turnlog.formats.reading import Reading
from turnlog.log.messages import MediaPart, Part, TextPart

#: The sound formats of ``input_audio``, and their media types.
_SOUNDS: Final = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_SOUND_FORMATS: Final = {media_type: name for name, media_type in _SOUNDS.items()}


def read_content(content: Any, where: str, reading: Reading) -> None:
    """Content that is not a string."""
    if not is_array(content):
        raise InvalidValueError(f"{where} must be a string, an array of parts, or null, not {json_name(content)}")
    for index, data in enumerate(content):
        place = f"{where}[{index}]"
        fields = as_object(data, place)
        kind = text_at(fields, "type", place)
        reader = _PARTS.get(kind)
        if reader is None:
            reading.unknown(place, kind)
        else:
            reader(fields, place, reading)
    if not content or (len(content) == 1 and content[0]["type"] in {"text", "refusal"}):
        reading.layout()


_TEXT_KEYS: Final = frozenset({"type", "text"})
_REFUSAL_KEYS: Final = frozenset({"type", "refusal"})
_IMAGE_KEYS: Final = frozenset({"type", "image_url"})
_URL_KEYS: Final = frozenset({"url"})
_SOUND_KEYS: Final = frozenset({"type", "input_audio"})
_SOUND_DATA_KEYS: Final = frozenset({"data", "format"})
_FILE_KEYS: Final = frozenset({"type", "file"})
_FILE_DATA_KEYS: Final = frozenset({"file_data", "file_id", "filename"})


def _text(fields: dict[str, Any], where: str, reading: Reading) -> None:
    reading.beyond(fields, _TEXT_KEYS, where)
    reading.parts.append(text_at(fields, "text", where))


def _refusal(fields: dict[str, Any], where: str, reading: Reading) -> None:
    reading.beyond(fields, _REFUSAL_KEYS, where)
    reading.parts.append(TextPart(text_at(fields, "refusal", where), refusal=True))


def _image(fields: dict[str, Any], where: str, reading: Reading) -> None:
    reading.beyond(fields, _IMAGE_KEYS, where)
    # Some services take the URL itself where OpenAI wants an object around it.
    if type(fields.get("image_url")) is str:
        _add(_from_url(fields["image_url"], "image/*"), fields, reading)
        return
    image = object_at(fields, "image_url", where)
    reading.beyond(image, _URL_KEYS, f"{where}.image_url")
    _add(_from_url(text_at(image, "url", f"{where}.image_url"), "image/*"), fields, reading)


def _sound(fields: dict[str, Any], where: str, reading: Reading) -> None:
    reading.beyond(fields, _SOUND_KEYS, where)
    place = f"{where}.input_audio"
    sound = object_at(fields, "input_audio", where)
    reading.beyond(sound, _SOUND_DATA_KEYS, place)
    encoded = text_at(sound, "data", place)
    kind = text_at(sound, "format", place)
    part, _ = media_from_base64(encoded, _SOUNDS.get(kind, f"audio/{kind}"))
    _add(part, fields, reading)


def _file(fields: dict[str, Any], where: str, reading: Reading) -> None:
    reading.beyond(fields, _FILE_KEYS, where)
    place = f"{where}.file"
    file = object_at(fields, "file", where)
    reading.beyond(file, _FILE_DATA_KEYS, place)
    name = optional_text_at(file, "filename", place)
    if file.get("file_data") is not None:
        part = _from_url(text_at(file, "file_data", place), None, name)
    elif file.get("file_id") is None:
        raise InvalidValueError(f"{place} has neither 'file_data' nor 'file_id'")
    else:
        reading.is_own = True
        part = MediaPart(file_id=text_at(file, "file_id", place), name=name)
    _add(part, fields, reading)


def _from_url(url: str, media_type: str | None, name: str | None = None) -> MediaPart:
    """What a URL names, or holds: bytes only where they can be written back as the same URL."""
    held = split_data_url(url)
    if held is not None and data_url(*held) == url:
        return MediaPart(media_type=held[0], data=held[1], name=name)
    return MediaPart(media_type=media_type, url=url, name=name)


def _add(part: MediaPart, fields: dict[str, Any], reading: Reading) -> None:
    if write_media(part) != fields:
        reading.layout()
    reading.parts.append(part)


_PARTS: Final[dict[str, Callable[[dict[str, Any], str, Reading], None]]] = {
    "text": _text,
    "refusal": _refusal,
    "image_url": _image,
    "input_audio": _sound,
    "file": _file,
}


def write_media(part: MediaPart) -> dict[str, Any] | None:
    """The part for an image, a sound, or a file; None for what the API has no place for."""
    media_type = part.media_type or ""
    held = base64_of(part)
    if held is not None:
        media_type = held[0]
    if media_type in _SOUND_FORMATS and held is not None:
        return {"type": "input_audio", "input_audio": {"data": held[1], "format": _SOUND_FORMATS[media_type]}}
    if media_type.startswith(("audio/", "video/")):
        return None
    url = part.url if held is None else f"data:{held[0]};base64,{held[1]}"
    if url is not None and media_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}} if _is_sent(url) else None
    if url is not None and held is None:
        return None
    if url is not None:
        return {"type": "file", "file": {"file_data": url, "filename": file_name(part, media_type)}}
    file = {"file_id": part.file_id}
    return {"type": "file", "file": file if part.name is None else file | {"filename": part.name}}


def is_image(part: Part) -> bool:
    """Whether the part is written as an image, which is all that a tool's message can hold beside text."""
    written = write_media(part) if isinstance(part, MediaPart) else None
    return written is not None and written["type"] == "image_url"


def _is_sent(url: str) -> bool:
    return url.startswith(("https://", "http://", "data:"))
