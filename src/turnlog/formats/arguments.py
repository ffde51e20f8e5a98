"""Arguments of tool calls: we keep the JSON text that a model wrote, most providers give and take an object."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from turnlog.formats.json_fields import is_object
from turnlog.formats.json_text import DECODER
from turnlog.log.json_values import storable

#: What stands around arguments that are not a JSON object where a provider takes nothing else.
WRAPPED: Final = "arguments"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder[Any]().decode


def arguments_text(value: Any, where: str) -> str:
    """``value`` as JSON text; :class:`UnstorableError` with the path where it is no JSON value."""
    return json_text({} if value is None else storable(value, where))


def json_text(value: Any) -> str:
    """A JSON value as compact text; lone surrogates stay what they are."""
    try:
        return _encode(value).decode()
    except (ValueError, OverflowError):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def arguments_object(text: str) -> dict[str, Any] | None:
    """The object that ``text`` says; an empty one for blank text, None for what is no object or no JSON."""
    if text == "{}" or not text or text.isspace():
        return {}
    try:
        value = _decode(text)
    except (ValueError, RecursionError):
        value = _decoded_slowly(text)
    return value if is_object(value) else None


def _decoded_slowly(text: str) -> Any:
    try:
        # Too large a number reads as infinity, which no JSON says.
        return storable(DECODER.decode(text), "arguments")
    except (ValueError, RecursionError):
        return None
