"""What may stand in metadata, payloads and native data: JSON values, kept exactly (R-9)."""

from __future__ import annotations

from math import isfinite
from typing import Any, cast

from turnlog.errors import UnstorableError

#: Containers inside one another, the outermost counted.
DEEPEST = 200
#: CPython refuses to read longer integers from text by default (``sys.set_int_max_str_digits``).
MOST_DIGITS = 4300

_TOO_BIG = 10**MOST_DIGITS
_SMALL_BITS = 14_000  # fewer bits than 10**4300 has: one cheap look before the comparison


class _RefusedError(Exception):
    """Carries the reason outwards; each container on the way adds its step to the path."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.steps: list[str] = []


def storable_dict(value: object, path: str) -> dict[str, Any]:
    """A copy of ``value``, which must be a dict of JSON values; the caller's later changes do not reach it."""
    if type(value) is not dict:
        raise UnstorableError(path, f"must be a dict, not {type(value).__name__}")
    if not value:
        return {}
    copied: dict[str, Any] = storable(cast("object", value), path)
    return copied


def storable(value: object, path: str) -> Any:
    """A copy of a JSON value; raises :class:`UnstorableError` naming the path of anything else.

    Types are exact: a subclass (an ``IntEnum``, a ``defaultdict``) would come back as something else.
    """
    try:
        return _copy(value, 1)
    except _RefusedError as refused:
        raise UnstorableError(path + "".join(reversed(refused.steps)), str(refused)) from None


def _copy(value: Any, depth: int) -> Any:
    kind = type(value)  # pyright: ignore[reportUnknownVariableType]  # of Any; a cast would cost a call for each value
    if kind is str or value is None or kind is bool:
        return value
    if kind is int:
        if value.bit_length() > _SMALL_BITS and not -_TOO_BIG < value < _TOO_BIG:
            raise _RefusedError(f"an integer of more than {MOST_DIGITS} digits")
        return value
    if kind is float:
        # JSON encoders write null for NaN and for infinities.
        if not isfinite(value):
            raise _RefusedError(f"{value} is not a JSON number")
        return value
    if kind is dict or kind is list:
        if depth > DEEPEST:
            raise _RefusedError(f"nested deeper than {DEEPEST}")
        return _copy_dict(value, depth) if kind is dict else _copy_list(value, depth)
    raise _RefusedError(f"{type(value).__name__} is not a JSON value (str, bool, int, finite float, None, list, dict)")


def _copy_dict(value: dict[Any, Any], depth: int) -> dict[str, Any]:
    copied: dict[str, Any] = {}
    key: Any = None
    try:
        for key, item in value.items():
            if type(key) is not str:
                raise _RefusedError(f"the key is {type(key).__name__}, not str")
            # Most values are text, and a call for each of them would be most of the time.
            copied[key] = item if type(item) is str else _copy(item, depth + 1)
    except _RefusedError as refused:
        refused.steps.append(f"[{key!a}]")
        raise
    return copied


def _copy_list(value: list[Any], depth: int) -> list[Any]:
    copied: list[Any] = []
    try:
        for item in value:
            copied.append(_copy(item, depth + 1))  # noqa: PERF401 - the length so far is the step of the path
    except _RefusedError as refused:
        refused.steps.append(f"[{len(copied)}]")
        raise
    return copied
