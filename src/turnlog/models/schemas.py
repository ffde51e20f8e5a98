"""JSON schemas of wanted answers, as providers take them for structured output."""

from __future__ import annotations

from typing import Any, Final

from turnlog.formats.arguments import json_text
from turnlog.formats.json_fields import is_array, is_object
from turnlog.log.messages import SystemMessage

#: The name that a schema goes by where a provider wants one.
SCHEMA_NAME: Final = "answer"

_DEFINITIONS: Final = "#/$defs/"
#: Holds a schema under each key that the writer of the schema chose.
_BY_NAME: Final = frozenset({"properties", "$defs"})


def object_schema(schema: dict[str, Any]) -> dict[str, Any] | None:
    """The schema with an object at its root, as providers ask; None where the answer is to be something else."""
    root = schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith(_DEFINITIONS):
        found = schema.get("$defs", {}).get(reference.removeprefix(_DEFINITIONS))
        if not is_object(found):
            return None
        root = found | {"$defs": schema["$defs"]}
    return root if root.get("type") == "object" else None


def strict_schema(schema: dict[str, Any]) -> dict[str, Any] | None:
    """The schema by the rules of OpenAI's strict mode: no further properties, and each one given.

    What meets it meets ``schema`` too, as only what was left open is closed. None where an object has keys that are
    not known before.
    """
    try:
        found: dict[str, Any] = _strict(schema)
    except _OpenObjectError:
        return None
    return found


class _OpenObjectError(Exception):
    """An object whose keys are not known before."""


def _strict(value: Any) -> Any:
    if is_array(value):
        return [_strict(item) for item in value]
    if not is_object(value):
        return value
    closed = {key: _strict_under(key, item) for key, item in value.items() if key != "default"}
    if value.get("type") == "object" or "properties" in value:
        if value.get("additionalProperties", False) is not False:
            raise _OpenObjectError
        closed["properties"] = closed.get("properties", {})
        closed["additionalProperties"] = False
        closed["required"] = list(closed["properties"])
    return closed


def _strict_under(key: str, value: Any) -> Any:
    if key in _BY_NAME and is_object(value):
        return {name: _strict(item) for name, item in value.items()}
    return value if key in {"enum", "const", "examples"} else _strict(value)


def schema_in_words(schema: dict[str, Any]) -> SystemMessage:
    """An instruction that asks for the answer, for models and schemas without structured output."""
    return SystemMessage(
        f"Answer with JSON alone, without any other text. It meets this JSON schema:\n{json_text(schema)}"
    )
