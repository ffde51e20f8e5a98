"""Bytes in JSON: base64 and data URLs, read only where they can be written back as they were."""

from __future__ import annotations

import base64
import binascii
import re

_DATA_URL = re.compile(r"data:([^,]*);base64,", re.ASCII)


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
