"""Images and documents in Anthropic's messages."""

from __future__ import annotations

from typing import Any, Final

from turnlog.formats.json_fields import object_at, optional_text_at, text_at
from turnlog.formats.media import base64_of, media_from_base64, web_url
from turnlog.formats.reading import Reading
from turnlog.log.messages import MediaPart

_IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_PDF: Final = "application/pdf"
_PLAIN: Final = "text/plain"

_IMAGE_KEYS: Final = frozenset({"type", "source"})
_DOCUMENT_KEYS: Final = frozenset({"type", "source", "title"})
_SOURCE_KEYS: Final = {
    "base64": frozenset({"type", "media_type", "data"}),
    "text": frozenset({"type", "media_type", "data"}),
    "url": frozenset({"type", "url"}),
    "file": frozenset({"type", "file_id"}),
}


def read_image(fields: dict[str, Any], where: str, reading: Reading) -> None:
    """An ``image`` block."""
    reading.beyond(fields, _IMAGE_KEYS, where)
    _source(object_at(fields, "source", where), f"{where}.source", reading, "image/*", None)


def read_document(fields: dict[str, Any], where: str, reading: Reading) -> None:
    """A ``document`` block: PDF or plain text; its title is the name."""
    reading.beyond(fields, _DOCUMENT_KEYS, where)
    title = optional_text_at(fields, "title", where)
    _source(object_at(fields, "source", where), f"{where}.source", reading, None, title)


def _source(source: dict[str, Any], where: str, reading: Reading, media_type: str | None, name: str | None) -> None:
    kind = text_at(source, "type", where)
    keys = _SOURCE_KEYS.get(kind)
    if keys is None:
        reading.unknown(where, f"{kind} source")
        return
    reading.beyond(source, keys, where)
    if kind == "url":
        part = MediaPart(media_type=media_type or _PDF, url=text_at(source, "url", where), name=name)
    elif kind == "file":
        reading.is_own = True
        part = MediaPart(media_type=media_type, file_id=text_at(source, "file_id", where), name=name)
    else:
        part = _held(source, where, reading, name)
    reading.parts.append(part)
    if part.data is None and (write_media(part) or {}).get("source") != source:
        reading.layout()


def _held(source: dict[str, Any], where: str, reading: Reading, name: str | None) -> MediaPart:
    media_type, data = text_at(source, "media_type", where), text_at(source, "data", where)
    if source["type"] == "text":
        # Lone surrogates have no bytes: then the original says what it was.
        encoded = data.encode("utf-8", "replace")
        part, is_same = MediaPart(media_type=media_type, data=encoded, name=name), encoded.decode() == data
        is_same = is_same and media_type == _PLAIN
    else:
        part, is_same = media_from_base64(data, media_type, name)
        is_same = is_same and (media_type in _IMAGES or media_type == _PDF)
    if not is_same:
        reading.layout()
    return part


def write_media(part: MediaPart) -> dict[str, Any] | None:
    """The block for an image or a document; None for anything else."""
    source, is_image = _written(part)
    if source is None:
        return None
    block: dict[str, Any] = {"type": "image" if is_image else "document", "source": source}
    if part.name is not None and not is_image:
        block["title"] = part.name
    return block


def _written(part: MediaPart) -> tuple[dict[str, Any] | None, bool]:
    if part.file_id is not None:
        return {"type": "file", "file_id": part.file_id}, (part.media_type or "").startswith("image/")
    held = base64_of(part)
    if held is not None:
        return _written_data(part, *held)
    url = web_url(part)
    is_image = (part.media_type or "").startswith("image/")
    is_known = url is not None and (is_image or part.media_type == _PDF or _is_pdf(url))
    return ({"type": "url", "url": url} if is_known else None), is_image


def _written_data(part: MediaPart, media_type: str, encoded: str) -> tuple[dict[str, Any] | None, bool]:
    if media_type in _IMAGES or media_type == _PDF:
        return {"type": "base64", "media_type": media_type, "data": encoded}, media_type in _IMAGES
    if part.data is None or not media_type.startswith("text/"):
        return None, False
    try:
        return {"type": "text", "media_type": _PLAIN, "data": part.data.decode()}, False
    except UnicodeDecodeError:
        return None, False


def _is_pdf(url: str) -> bool:
    return url.partition("?")[0].lower().endswith(".pdf")
