"""Content of OpenAI chat messages: a string, null, or parts of text, images, sound, files and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from turnlog.errors import InvalidValueError
from turnlog.formats.json_fields import as_object, is_array, json_name, object_at, optional_text_at, text_at
from turnlog.formats.media import data_url, decode_base64, encode_base64, split_data_url
from turnlog.log.messages import Content, MediaPart, Part, ReasoningPart, TextPart

#: The sound formats of ``input_audio``, and their media types.
_SOUNDS: Final = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_SOUND_FORMATS: Final = {media_type: name for name, media_type in _SOUNDS.items()}


def parse_content(content: Any, where: str) -> Content:
    """Content that is not a string. Parts of unknown types are left out: the message keeps them in ``native``."""
    if content is None:
        return None
    if not is_array(content):
        raise InvalidValueError(f"{where} must be a string, an array of parts, or null, not {json_name(content)}")
    parts: list[Part] = []
    for index, data in enumerate(content):
        place = f"{where}[{index}]"
        fields = as_object(data, place)
        reader = _PARTS.get(text_at(fields, "type", place))
        if reader is not None:
            parts.append(reader(fields, place))
    return tuple(parts) or None


def render_content(content: Content) -> str | list[dict[str, Any]] | None:
    """The content as the API takes it; it has no place for reasoning, which is left out."""
    if content is None or isinstance(content, str):
        return content
    rendered = [_render_part(part) for part in content if not isinstance(part, ReasoningPart)]
    return rendered or None


def _text(fields: dict[str, Any], where: str) -> Part:
    return TextPart(text_at(fields, "text", where))


def _refusal(fields: dict[str, Any], where: str) -> Part:
    return TextPart(text_at(fields, "refusal", where), refusal=True)


def _image(fields: dict[str, Any], where: str) -> Part:
    # Some services take the URL itself where OpenAI wants an object around it.
    if type(fields.get("image_url")) is str:
        return _from_url(fields["image_url"], "image/*")
    image = object_at(fields, "image_url", where)
    return _from_url(text_at(image, "url", f"{where}.image_url"), "image/*")


def _sound(fields: dict[str, Any], where: str) -> Part:
    place = f"{where}.input_audio"
    sound = object_at(fields, "input_audio", where)
    encoded = text_at(sound, "data", place)
    kind = text_at(sound, "format", place)
    media_type = _SOUNDS.get(kind, f"audio/{kind}")
    data = decode_base64(encoded)
    if data is None:
        return MediaPart(media_type=media_type, url=f"data:{media_type};base64,{encoded}")
    return MediaPart(media_type=media_type, data=data)


def _file(fields: dict[str, Any], where: str) -> Part:
    place = f"{where}.file"
    file = object_at(fields, "file", where)
    name = optional_text_at(file, "filename", place)
    if file.get("file_data") is not None:
        return _from_url(text_at(file, "file_data", place), None, name)
    if file.get("file_id") is None:
        raise InvalidValueError(f"{place} has neither 'file_data' nor 'file_id'")
    return MediaPart(file_id=text_at(file, "file_id", place), name=name)


def _from_url(url: str, media_type: str | None, name: str | None = None) -> Part:
    """What a URL names, or holds: bytes only where they can be written back as the same URL."""
    held = split_data_url(url)
    if held is not None and data_url(*held) == url:
        return MediaPart(media_type=held[0], data=held[1], name=name)
    return MediaPart(media_type=media_type, url=url, name=name)


_PARTS: Final[dict[str, Callable[[dict[str, Any], str], Part]]] = {
    "text": _text,
    "refusal": _refusal,
    "image_url": _image,
    "input_audio": _sound,
    "file": _file,
}


def _render_part(part: TextPart | MediaPart) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "refusal", "refusal": part.text} if part.refusal else {"type": "text", "text": part.text}
    media_type = part.media_type or ""
    if part.data is not None and media_type in _SOUND_FORMATS:
        sound = {"data": encode_base64(part.data), "format": _SOUND_FORMATS[media_type]}
        return {"type": "input_audio", "input_audio": sound}
    url = part.url if part.data is None else data_url(part.media_type, part.data)
    if url is not None and media_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    file = {"file_id": part.file_id} if url is None else {"file_data": url}
    return {"type": "file", "file": file if part.name is None else file | {"filename": part.name}}
