"""JSON as it comes from outside: strictly read, every fault an error that says what is wrong.

NaN and infinities are refused, lone surrogates are kept, of a key that stands twice the last value counts (as in every
reader of JSON that people use).
"""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

import msgspec

from turnlog.errors import InvalidValueError

_fast = msgspec.json.Decoder[Any]()


class InvalidJsonError(InvalidValueError):
    """Text that is not JSON. ``line`` and ``column`` count from 1 within the text; 0 where they are not known."""

    def __init__(self, reason: str, line: int = 0, column: int = 0) -> None:
        super().__init__(f"invalid JSON{f' at column {column}' if column else ''}: {reason}")
        self.reason = reason
        self.line = line
        self.column = column


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


#: The standard library's reader: slower than msgspec's, but it keeps lone surrogates and reads a value within a text.
DECODER: Final = json.JSONDecoder(parse_constant=_refuse)


def decode(data: bytes) -> Any:
    """The one JSON value in ``data``, which is UTF-8; raises :class:`InvalidJsonError`."""
    try:
        return _fast.decode(data)
    except (ValueError, RecursionError):
        # Either it is invalid, and the standard library says better why, or it holds what only that one reads.
        return _decode_slowly(data)


def decode_as(text: str, kind: Any) -> Any:
    """The value of type ``kind`` that a model wrote as JSON, lone surrogates included; raises ``ValueError``."""
    try:
        return msgspec.json.decode(text.encode(), type=kind)
    except msgspec.ValidationError:
        raise
    except (ValueError, RecursionError):  # as in decode()
        return msgspec.convert(_decode_text_slowly(text), kind, str_keys=True)


def _decode_slowly(data: bytes) -> Any:
    try:
        return _decode_text_slowly(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidJsonError(f"not UTF-8 at byte {error.start + 1}") from error


def _decode_text_slowly(text: str) -> Any:
    try:
        return DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise explained(error) from error


def explained(error: ValueError | RecursionError) -> InvalidJsonError:
    """What :data:`DECODER` raised, in our own words."""
    if isinstance(error, json.JSONDecodeError):
        return InvalidJsonError(error.msg[:1].lower() + error.msg[1:], error.lineno, error.colno)
    if isinstance(error, RecursionError):
        return InvalidJsonError("nested too deep")
    reason = str(error)
    return InvalidJsonError("an integer of too many digits" if "digits" in reason else reason)
