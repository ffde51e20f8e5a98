"""Bytes in JSON: base64 and data URLs, read only where they can be written back as they were."""

from __future__ import annotations

import base64
import binascii
import mimetypes
import re
from typing import Final

from turnlog.log.messages import MediaPart

_DATA_URL = re.compile(r"data:([^,]*);base64,", re.ASCII)
_URL_SAFE: Final = str.maketrans("-_", "+/")


def decode_base64(text: str) -> bytes | None:
    """The bytes, or None where ``text`` is not base64."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def encode_base64(data: bytes) -> str:
    """Base64 with padding, on one line."""
    return base64.b64encode(data).decode("ascii")


def split_data_url(url: str) -> tuple[str | None, bytes] | None:
    """Media type and bytes of a base64 data URL; None for any other URL."""
    head = _DATA_URL.match(url)
    data = None if head is None else decode_base64(url[head.end() :])
    return None if head is None or data is None else (head[1] or None, data)


def data_url(media_type: str | None, data: bytes) -> str:
    """The data URL that :func:`split_data_url` reads."""
    return f"data:{media_type or ''};base64,{encode_base64(data)}"


def media_from_base64(text: str, media_type: str, name: str | None = None) -> tuple[MediaPart, bool]:
    """The part, and whether its bytes would be written as the same text.

    What is not base64 stays as it is, in a data URL.
    """
    data = decode_base64(text)
    if data is None:
        data = decode_base64(text.translate(_URL_SAFE))
    if data is None:
        url = f"data:{media_type};base64,{text}"
        return MediaPart(media_type=media_type, url=url, name=name), split_text(url) == (media_type, text)
    return MediaPart(media_type=media_type, data=data, name=name), encode_base64(data) == text


def split_text(url: str) -> tuple[str, str] | None:
    """Media type and base64 of a data URL, whether it can be decoded or not; None for any other URL."""
    head = _DATA_URL.match(url)
    return None if head is None else (head[1], url[head.end() :])


def base64_of(part: MediaPart) -> tuple[str, str] | None:
    """Media type (``""`` if unknown) and base64 of what a part holds itself; None where it only names it."""
    if part.data is not None:
        return part.media_type or "", encode_base64(part.data)
    held = None if part.url is None else split_text(part.url)
    if held is None:
        return None
    given = part.media_type or ""
    return (held[0] if not given or given.endswith("/*") else given), held[1]


def file_name(part: MediaPart, media_type: str) -> str:
    """The part's name, or one with the ending of its type, where a provider wants a name."""
    return part.name or f"file{mimetypes.guess_extension(media_type) or ''}"


def web_url(part: MediaPart) -> str | None:
    """The address under which anybody finds what the part names."""
    url = part.url
    return url if url is not None and url.startswith(("https://", "http://")) else None
