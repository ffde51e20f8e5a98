"""Typed access to JSON that came from outside: what is not as it should be is an error that names the place."""

from __future__ import annotations

from typing import Any, TypeGuard

from turnlog.errors import InvalidValueError


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether ``value`` is a JSON object."""
    return type(value) is dict


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Whether ``value`` is a JSON array."""
    return type(value) is list


def as_object(value: object, where: str) -> dict[str, Any]:
    """``value``, which must be an object."""
    if is_object(value):
        return value
    raise InvalidValueError(f"{where} must be an object, not {json_name(value)}")


def as_array(value: object, where: str) -> list[Any]:
    """``value``, which must be an array."""
    if is_array(value):
        return value
    raise InvalidValueError(f"{where} must be an array, not {json_name(value)}")


def object_at(fields: dict[str, Any], key: str, where: str) -> dict[str, Any]:
    """The object under ``key``, which must be there."""
    return as_object(_at(fields, key, where), f"{where}.{key}")


def optional_object_at(fields: dict[str, Any], key: str, where: str) -> dict[str, Any] | None:
    """The object under ``key``; None where there is none, or null."""
    value = fields.get(key)
    return None if value is None else as_object(value, f"{where}.{key}")


def text_at(fields: dict[str, Any], key: str, where: str) -> str:
    """The string under ``key``, which must be there."""
    value = fields.get(key)
    if type(value) is str:
        return value
    raise InvalidValueError(f"{where}.{key} must be a string, not {json_name(_at(fields, key, where))}")


def optional_text_at(fields: dict[str, Any], key: str, where: str) -> str | None:
    """The string under ``key``; None where there is none, or null."""
    value = fields.get(key)
    if value is None or type(value) is str:
        return value
    raise InvalidValueError(f"{where}.{key} must be a string or null, not {json_name(value)}")


def integer_at(fields: dict[str, Any], key: str, where: str) -> int:
    """The integer under ``key``, which must be there."""
    value = _at(fields, key, where)
    if type(value) is int:
        return value
    raise InvalidValueError(f"{where}.{key} must be an integer, not {json_name(value)}")


def array_at(fields: dict[str, Any], key: str, where: str) -> list[Any]:
    """The array under ``key``, which must be there."""
    return as_array(_at(fields, key, where), f"{where}.{key}")


def optional_array_at(fields: dict[str, Any], key: str, where: str) -> list[Any]:
    """The array under ``key``; an empty one where there is none, or null."""
    value = fields.get(key)
    if value is None:
        return []
    if is_array(value):
        return value
    raise InvalidValueError(f"{where}.{key} must be an array or null, not {json_name(value)}")


def json_name(value: object) -> str:
    """What a person who looks at the JSON would call it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    names: dict[type, str] = {str: "a string", dict: "an object", list: "an array"}
    return names.get(type(value), type(value).__name__)


def _at(fields: dict[str, Any], key: str, where: str) -> Any:
    if key not in fields:
        raise InvalidValueError(f"{where} has no {key!r}")
    return fields[key]
