"""Definitions of tools: name, description and JSON schema, as each provider has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec import Struct

from turnlog.formats.json_fields import array_at, as_array, as_object, is_array, is_object, optional_text_at, text_at
from turnlog.log.json_values import storable


class ToolSpec(Struct, frozen=True):
    """A tool as a model is told of it; ``parameters`` is a JSON schema."""

    name: str
    description: str
    parameters: dict[str, Any]


class ToolForm(Struct, frozen=True):
    """Where a provider's tools stand in a request, and how one is read and written.

    ``read`` gives the tools that an entry defines, None for a tool of the provider's own.
    """

    key: str
    read: Callable[[dict[str, Any], str], list[ToolSpec] | None]
    write: Callable[[ToolSpec], dict[str, Any]]
    #: The key of the list where it stands in an object of its own.
    inner: str | None = None
    #: Around all written tools, where the provider groups them.
    group: str | None = None

    def entries(self, value: Any) -> list[tuple[dict[str, Any], str]]:
        """Each entry of a request's tools, with its place."""
        if value is None:
            return []
        place, found = self.key, value
        if self.inner is not None:
            fields = as_object(value, self.key)
            place = f"{self.key}.{self.inner}"
            found = fields.get(self.inner)
            if found is None:
                return []
        entries = as_array(found, place)
        return [(as_object(entry, f"{place}[{at}]"), f"{place}[{at}]") for at, entry in enumerate(entries)]

    def parse(self, value: Any) -> tuple[ToolSpec, ...]:
        """The tools that are defined under the key."""
        return tuple(tool for entry, place in self.entries(value) for tool in self.read(entry, place) or ())

    def render(self, tools: Iterable[ToolSpec], beside: Any = None) -> Any:
        """What stands under the key for these tools; ``beside`` it what the provider's own request had there."""
        written = [self.write(tool) for tool in tools]
        if self.group is not None and written:
            written = [{self.group: written}]
        written += (entry for entry, place in self.entries(beside) if self.read(entry, place) is None)
        return self.around(written, beside)

    def around(self, entries: list[dict[str, Any]], beside: Any = None) -> Any:
        """The entries as they stand in a request."""
        if self.inner is None:
            return entries
        return (dict(beside) if is_object(beside) else {}) | {self.inner: entries}


def _spec(fields: dict[str, Any], schema: str, where: str) -> ToolSpec:
    parameters: dict[str, Any] = {}
    if fields.get(schema) is not None:
        parameters = storable(as_object(fields[schema], f"{where}.{schema}"), f"{where}.{schema}")
    description = optional_text_at(fields, "description", where)
    return ToolSpec(text_at(fields, "name", where), description or "", parameters)


def _described(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description} if tool.description else {"name": tool.name}


def _schema(tool: ToolSpec) -> dict[str, Any]:
    return tool.parameters or {"type": "object", "properties": {}}


def _read_chat(entry: dict[str, Any], where: str) -> list[ToolSpec] | None:
    if entry.get("type") != "function" or "function" not in entry:
        return None
    place = f"{where}.function"
    return [_spec(as_object(entry["function"], place), "parameters", place)]


def _write_chat(tool: ToolSpec) -> dict[str, Any]:
    parameters = {"parameters": tool.parameters} if tool.parameters else {}
    return {"type": "function", "function": _described(tool) | parameters}


def _read_responses(entry: dict[str, Any], where: str) -> list[ToolSpec] | None:
    return [_spec(entry, "parameters", where)] if entry.get("type") == "function" else None


def _write_responses(tool: ToolSpec) -> dict[str, Any]:
    return {"type": "function"} | _described(tool) | {"parameters": _schema(tool)}


def _read_anthropic(entry: dict[str, Any], where: str) -> list[ToolSpec] | None:
    return [_spec(entry, "input_schema", where)] if entry.get("type") in (None, "custom") else None


def _write_anthropic(tool: ToolSpec) -> dict[str, Any]:
    return _described(tool) | {"input_schema": _schema(tool)}


_DECLARATIONS: Final = "functionDeclarations"


def _read_gemini(entry: dict[str, Any], where: str) -> list[ToolSpec] | None:
    for key in (_DECLARATIONS, "function_declarations"):
        if key in entry:
            found = array_at(entry, key, where)
            return [_declared(tool, f"{where}.{key}[{index}]") for index, tool in enumerate(found)]
    return None


def _declared(data: Any, where: str) -> ToolSpec:
    fields = as_object(data, where)
    for key in ("parametersJsonSchema", "parameters_json_schema"):
        if key in fields:
            return _spec(fields, key, where)
    spec = _spec(fields, "parameters", where)
    return ToolSpec(spec.name, spec.description, _in_lower_case(spec.parameters))


def _in_lower_case(schema: Any) -> Any:
    """Google's own schemas have their types in capitals."""
    if is_object(schema):
        return {
            key: value.lower() if key == "type" and isinstance(value, str) else _in_lower_case(value)
            for key, value in schema.items()
        }
    return [_in_lower_case(item) for item in schema] if is_array(schema) else schema


def _write_gemini(tool: ToolSpec) -> dict[str, Any]:
    return _described(tool) | {"parametersJsonSchema": _schema(tool)}


def _read_bedrock(entry: dict[str, Any], where: str) -> list[ToolSpec] | None:
    if "toolSpec" not in entry:
        return None
    place = f"{where}.toolSpec"
    fields = as_object(entry["toolSpec"], place)
    schema = as_object(fields.get("inputSchema"), f"{place}.inputSchema")
    parameters: dict[str, Any] = {}
    if schema.get("json") is not None:
        schema_place = f"{place}.inputSchema.json"
        parameters = storable(as_object(schema["json"], schema_place), schema_place)
    return [ToolSpec(text_at(fields, "name", place), optional_text_at(fields, "description", place) or "", parameters)]


def _write_bedrock(tool: ToolSpec) -> dict[str, Any]:
    return {"toolSpec": _described(tool) | {"inputSchema": {"json": _schema(tool)}}}


OPENAI_CHAT: Final = ToolForm("tools", _read_chat, _write_chat)
OPENAI_RESPONSES: Final = ToolForm("tools", _read_responses, _write_responses)
ANTHROPIC: Final = ToolForm("tools", _read_anthropic, _write_anthropic)
GEMINI: Final = ToolForm("tools", _read_gemini, _write_gemini, group=_DECLARATIONS)
BEDROCK: Final = ToolForm("toolConfig", _read_bedrock, _write_bedrock, inner="tools")
