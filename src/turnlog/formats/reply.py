"""A provider's whole answer, read."""

from __future__ import annotations

from enum import Enum
from typing import Any

from msgspec import Struct

from turnlog.errors import InvalidValueError
from turnlog.formats.json_fields import is_array, is_object, json_name
from turnlog.formats.media import encode_base64
from turnlog.log.messages import AssistantMessage


class Usage(Struct, frozen=True):
    """Tokens that a provider reported, of one call or summed over several."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)


class ParsedReply(Struct, frozen=True, kw_only=True):
    """The message, and what stood around it.

    ``finish_reason`` is in the provider's own words. ``usage`` counts all input tokens, those read from a cache too.
    """

    message: AssistantMessage
    usage: Usage | None = None
    model: str | None = None
    finish_reason: str | None = None


def usage_of(
    fields: dict[str, Any] | None, inputs: tuple[str, ...], outputs: tuple[str, ...], where: str
) -> Usage | None:
    """The sums of these counts; None where nothing was reported."""
    if not fields:
        return None
    return Usage(_sum(fields, inputs, where), _sum(fields, outputs, where))


def _sum(fields: dict[str, Any], keys: tuple[str, ...], where: str) -> int:
    total = 0
    for key in keys:
        count = fields.get(key)
        if count is None:
            continue
        if type(count) is not int:
            raise InvalidValueError(f"{where}.{key} must be an integer or null, not {json_name(count)}")
        total += count
    return total


def present(fields: dict[str, Any]) -> dict[str, Any]:
    """The same without keys whose value is null, which SDKs put in for what a provider did not send."""
    return {key: value for key, value in fields.items() if value is not None}


def all_present(values: list[Any]) -> list[Any]:
    """A list whose objects are without such keys; what is inside of those is left alone."""
    return [present(value) if is_object(value) else value for value in values]


def as_json(value: Any, where: str) -> Any:
    """The same with bytes, which SDKs dump, as base64, and members of enumerations as their values."""
    try:
        return _as_json(value)
    except RecursionError:
        raise InvalidValueError(f"{where} is nested too deep") from None


def _as_json(value: Any) -> Any:
    if is_object(value):
        return {key: _as_json(item) for key, item in value.items()}
    if is_array(value):
        return [_as_json(item) for item in value]
    if isinstance(value, bytes):
        return encode_base64(value)
    return value.value if isinstance(value, Enum) else value
