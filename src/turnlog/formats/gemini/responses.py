"""Results of functions in Gemini's parts: an object, whose keys are the caller's affair."""

from __future__ import annotations

from typing import Any, Final

from turnlog.errors import InvalidValueError
from turnlog.formats.arguments import json_text
from turnlog.formats.gemini.keys import in_camel_case, respelled
from turnlog.formats.gemini.media import read_file, read_inline
from turnlog.formats.json_fields import as_object, object_at, optional_array_at
from turnlog.formats.reading import Reading
from turnlog.log.json_values import storable
from turnlog.log.messages import ToolResult, ToolStatus

#: Google's own names for what a function gave, and for how it failed.
OUTPUT: Final = "output"
ERROR: Final = "error"
#: Other names in use for the same.
_OUTPUTS: Final = frozenset({OUTPUT, "result", "return_value", "content"})
_KEYS: Final = frozenset({"id", "name", "response", "parts"})


def read_response(fields: dict[str, Any], call_id: str, name: str, where: str, reading: Reading) -> ToolResult:
    """The result that a ``functionResponse`` says: text, and media beside it."""
    reading.beyond(fields, _KEYS, where)
    text, status, is_same = _said(object_at(fields, "response", where), f"{where}.response")
    if not is_same:
        reading.layout()
    if not fields.get("parts"):
        return ToolResult(call_id, text, name=name, status=status)
    reading.layout()
    inner = Reading()
    for index, data in enumerate(optional_array_at(fields, "parts", where)):
        place = f"{where}.parts[{index}]"
        part = as_object(data, place)
        try:
            _media(part, place, inner)
        except InvalidValueError as error:
            raise respelled(error, part) from None
    reading.odd += inner.odd
    reading.is_own |= inner.is_own
    if text is not None:
        inner.parts.insert(0, text)
    return ToolResult(call_id, inner.content(), name=name, status=status)


def _media(part: dict[str, Any], where: str, inner: Reading) -> None:
    fields = in_camel_case(part, inner)
    if "inlineData" in fields:
        read_inline(fields, where, inner)
    elif "fileData" in fields:
        read_file(fields, where, inner)
    else:
        inner.unknown(where, next(iter(fields), "part"))


def _said(response: dict[str, Any], where: str) -> tuple[str | None, ToolStatus, bool]:
    """Text and status, and whether they would be written as the same object."""
    if not response:
        return None, ToolStatus.OK, False
    if len(response) == 1:
        key, value = next(iter(response.items()))
        if key == ERROR and isinstance(value, str):
            return value, ToolStatus.ERROR, True
        if key in _OUTPUTS:
            is_text = isinstance(value, str)
            text = value if is_text else json_text(storable(value, f"{where}[{key!a}]"))
            return text, ToolStatus.OK, is_text and key == OUTPUT
    return json_text(storable(response, where)), ToolStatus.OK, False
