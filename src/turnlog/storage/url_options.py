"""The values of a store's options, as the query of its URL has them."""

from __future__ import annotations

from typing import Final

from turnlog.errors import InvalidValueError

_FLAGS: Final = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


def flag(name: str, text: str) -> bool:
    """``yes`` or ``no``; whatever is neither is not guessed at."""
    try:
        return _FLAGS[text.lower()]
    except KeyError:
        raise InvalidValueError(f"{name} is yes or no, not {text!r}") from None


def seconds(name: str, text: str) -> float:
    """A number of seconds."""
    try:
        return float(text)
    except ValueError:
        raise InvalidValueError(f"{name} is a number of seconds, not {text!r}") from None


def whole(name: str, text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise InvalidValueError(f"{name} is a whole number, not {text!r}") from None
