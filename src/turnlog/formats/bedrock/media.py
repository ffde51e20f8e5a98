"""Images, documents and videos in Bedrock's messages."""

from __future__ import annotations

import re
from typing import Any, Final

from turnlog.formats.json_fields import object_at, text_at
from turnlog.formats.media import base64_of, media_from_base64
from turnlog.formats.reading import Reading
from turnlog.formats.writing import Writing
from turnlog.log.messages import MediaPart

_TYPES: Final[dict[str, dict[str, str]]] = {
    "image": {"png": "image/png", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"},
    "document": {
        "pdf": "application/pdf",
        "csv": "text/csv",
        "doc": "application/msword",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xls": "application/vnd.ms-excel",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "html": "text/html",
        "txt": "text/plain",
        "md": "text/markdown",
    },
    "video": {
        "mkv": "video/x-matroska",
        "mov": "video/quicktime",
        "mp4": "video/mp4",
        "webm": "video/webm",
        "flv": "video/x-flv",
        "mpeg": "video/mpeg",
        "mpg": "video/mpg",
        "wmv": "video/x-ms-wmv",
        "three_gp": "video/3gpp",
    },
}
_FORMATS: Final = {media_type: (kind, name) for kind, names in _TYPES.items() for name, media_type in names.items()}
_KEYS: Final = {
    "image": frozenset({"format", "source"}),
    "video": frozenset({"format", "source"}),
    "document": frozenset({"format", "source", "name"}),
}
_NAME: Final = re.compile(r"(?:[a-zA-Z0-9()\[\]-]|\s(?!\s)){1,200}")
_UNNAMED: Final = re.compile(r"[^a-zA-Z0-9()\[\]-]+")


def read_media(kind: str, block: dict[str, Any], where: str, reading: Reading) -> None:
    """An ``image``, ``document`` or ``video``."""
    reading.beyond(block, _KEYS[kind], where)
    name = text_at(block, "name", where) if kind == "document" else None
    source = object_at(block, "source", where)
    media_type = _media_type(kind, block, source, where)
    if block.get("format") not in _TYPES[kind]:
        reading.layout()
    where = f"{where}.source"
    if len(source) != 1 or reading.calls:
        reading.layout()
    if "bytes" in source:
        part, is_same = media_from_base64(text_at(source, "bytes", where), media_type, name)
        if not is_same:
            reading.layout()
        reading.parts.append(part)
    elif "s3Location" in source:
        location = object_at(source, "s3Location", where)
        reading.beyond(location, frozenset({"uri"}), f"{where}.s3Location")
        uri = text_at(location, "uri", f"{where}.s3Location")
        if not uri.startswith("s3://"):
            reading.layout()
        reading.parts.append(MediaPart(media_type=media_type, url=uri, name=name))
    elif "text" in source:
        reading.layout()
        text = text_at(source, "text", where).encode("utf-8", "replace")
        reading.parts.append(MediaPart(media_type=media_type, data=text, name=name))
    else:
        reading.unknown(where, f"source of a {kind}")
    if name is not None and _NAME.fullmatch(name) is None:
        reading.layout()


def _media_type(kind: str, block: dict[str, Any], source: dict[str, Any], where: str) -> str:
    """The type that the format names; a document need not have one."""
    if kind == "document" and block.get("format") is None:
        return _TYPES[kind]["txt"] if "text" in source else "application/octet-stream"
    format_ = text_at(block, "format", where)
    known = _TYPES[kind].get(format_)
    if known is None and "/" not in format_:
        return f"{'application' if kind == 'document' else kind}/{format_}"
    return known or format_


def write_media(part: MediaPart, writing: Writing) -> dict[str, Any] | None:
    """The block for a part; None for what the API has no place for."""
    held = base64_of(part)
    if held is not None:
        media_type = held[0]
        source: dict[str, Any] = {"bytes": held[1]}
    elif part.url is not None and part.url.startswith("s3://"):
        media_type, source = part.media_type or "", {"s3Location": {"uri": part.url}}
    else:
        return None
    kind, format_ = _FORMATS.get(media_type, (None, None))
    if kind is None and media_type.startswith("text/"):
        kind, format_ = "document", "txt"
    if kind is None:
        return None
    if kind != "document":
        return {kind: {"format": format_, "source": source}}
    return {kind: {"format": format_, "name": _document_name(part.name, writing), "source": source}}


def _document_name(name: str | None, writing: Writing) -> str:
    if name is not None and _NAME.fullmatch(name):
        return name
    cleaned = _UNNAMED.sub(" ", name or "").strip()[:200].strip()
    return cleaned or f"Document {writing.next_number()}"
