"""Keys of Gemini's JSON, which reads and writes camel case, and reads snake case too."""

from __future__ import annotations

import re
from typing import Any, Final

from turnlog.errors import InvalidValueError, UnstorableError
from turnlog.formats.json_fields import is_object
from turnlog.formats.reading import Reading
from turnlog.formats.reply import present

#: What most parts have: one look at them all is cheaper than one at each.
_COMMON: Final = frozenset({"text", "thought", "thoughtSignature", "functionCall", "functionResponse", "inlineData"})
_UNDERSCORE: Final = re.compile(r"_([a-z])")


def in_camel_case(fields: dict[str, Any], reading: Reading) -> dict[str, Any]:
    """The same fields; of a key that stands in both cases the camel one counts, and null is the same as no key."""
    if None in fields.values():
        reading.layout()
        fields = present(fields)
    if fields.keys() <= _COMMON or not any(map(_is_snake, fields)):
        return fields
    reading.layout()
    camel = {_camel(key) if _is_snake(key) else key: value for key, value in fields.items()}
    return camel | {key: value for key, value in fields.items() if not _is_snake(key)}


def respelled(error: InvalidValueError, part: dict[str, Any]) -> InvalidValueError:
    """The error with the keys in its path as the part spells them."""
    spellings = {
        _camel(key): key for fields in (part, *filter(is_object, part.values())) for key in fields if _is_snake(key)
    }
    said = error.path if isinstance(error, UnstorableError) else str(error)
    for camel, snake in spellings.items():
        said = said.replace(f".{camel}", f".{snake}")
    return UnstorableError(said, error.reason) if isinstance(error, UnstorableError) else InvalidValueError(said)


def _is_snake(key: object) -> bool:
    return isinstance(key, str) and "_" in key


def _camel(key: str) -> str:
    return _UNDERSCORE.sub(lambda found: found[1].upper(), key)
