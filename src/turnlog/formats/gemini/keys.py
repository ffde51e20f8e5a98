"""Keys of Gemini's JSON, which reads and writes camel case, and reads snake case too."""

from __future__ import annotations

import re
from typing import Any, Final

from turnlog.formats.reading import Reading

_UNDERSCORE: Final = re.compile(r"_([a-z])")


def in_camel_case(fields: dict[str, Any], reading: Reading) -> dict[str, Any]:
    """The same fields; of a key that stands in both cases the camel one counts."""
    if not any("_" in key for key in fields):
        return fields
    reading.layout()
    camel = {_UNDERSCORE.sub(lambda found: found[1].upper(), key): value for key, value in fields.items()}
    return camel | {key: value for key, value in fields.items() if "_" not in key}
