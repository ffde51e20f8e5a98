"""Images, sounds, videos and files in Gemini's parts."""

from __future__ import annotations

from typing import Any, Final

from turnlog.formats.gemini.keys import in_camel_case
from turnlog.formats.json_fields import object_at, optional_text_at, text_at
from turnlog.formats.media import base64_of, media_from_base64
from turnlog.formats.reading import Reading
from turnlog.log.messages import MediaPart

#: Where uploaded files have their addresses, which mean nothing to anybody else.
_UPLOADED: Final = "https://generativelanguage.googleapis.com/"
_INLINE: Final = frozenset({"inlineData"})
_FILE: Final = frozenset({"fileData"})
_INLINE_KEYS: Final = frozenset({"mimeType", "data", "displayName"})
_FILE_KEYS: Final = frozenset({"mimeType", "fileUri", "displayName"})


def read_inline(fields: dict[str, Any], where: str, reading: Reading) -> None:
    """Bytes."""
    reading.beyond(fields, _INLINE, where)
    where, blob = f"{where}.inlineData", object_at(fields, "inlineData", where)
    blob = in_camel_case(blob, reading)
    reading.beyond(blob, _INLINE_KEYS, where)
    name = optional_text_at(blob, "displayName", where)
    media_type = text_at(blob, "mimeType", where)
    part, is_same = media_from_base64(text_at(blob, "data", where), media_type, name)
    reading.parts.append(part)
    if not is_same or not media_type or ("displayName" in blob and name is None) or reading.calls:
        reading.layout()


def read_file(fields: dict[str, Any], where: str, reading: Reading) -> None:
    """A file by its address."""
    reading.beyond(fields, _FILE, where)
    where, file = f"{where}.fileData", object_at(fields, "fileData", where)
    file = in_camel_case(file, reading)
    reading.beyond(file, _FILE_KEYS, where)
    uri = text_at(file, "fileUri", where)
    media_type, name = optional_text_at(file, "mimeType", where), optional_text_at(file, "displayName", where)
    part = MediaPart(media_type=media_type, url=uri, name=name)
    if uri.startswith(_UPLOADED):
        reading.is_own = True
        part = MediaPart(media_type=media_type, file_id=uri, name=name)
    reading.parts.append(part)
    if write_media(part) != {"fileData": file} or reading.calls:
        reading.layout()


def write_media(part: MediaPart) -> dict[str, Any]:
    """The part that holds or names it."""
    held = base64_of(part)
    written: dict[str, Any] = {}
    if held is not None:
        written["mimeType"] = held[0] or "application/octet-stream"
        written["data"] = held[1]
    else:
        if part.media_type is not None and not part.media_type.endswith("/*"):
            written["mimeType"] = part.media_type
        written["fileUri"] = part.url if part.file_id is None else part.file_id
    if part.name is not None:
        written["displayName"] = part.name
    return {"fileData" if held is None else "inlineData": written}
