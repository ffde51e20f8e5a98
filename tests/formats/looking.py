"""What a rendered request holds, found without the code that rendered it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple


class Call(NamedTuple):
    id: str
    name: str
    arguments: str


class Result(NamedTuple):
    id: str
    text: str


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object inside, outer ones first."""
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from objects(inner)


def strings(value: Any) -> Iterator[str]:
    """Every string inside."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def arguments(value: Any) -> str:
    """Arguments in one spelling, whether they came as text or as an object."""
    if isinstance(value, str):
        try:
            value = json.loads(value or "{}")
        except ValueError:
            return json.dumps({"arguments": value})
        if not isinstance(value, dict):
            return json.dumps({"arguments": value})
    return json.dumps(value, sort_keys=True)


def calls(request: dict[str, Any], provider: str) -> list[Call]:
    """The calls in the order of the request; those of a provider's own tools are none."""
    found: list[Call] = []
    for fields in objects(request):
        match provider:
            case "openai-chat" if fields.get("tool_calls"):
                for call in fields["tool_calls"]:
                    called = call["function"]
                    found.append(Call(call["id"], called["name"], arguments(called["arguments"])))
            case "openai-responses" if fields.get("type") == "function_call":
                found.append(Call(fields["call_id"], fields["name"], arguments(fields["arguments"])))
            case "anthropic" if fields.get("type") == "tool_use":
                found.append(Call(fields["id"], fields["name"], arguments(fields["input"])))
            case "gemini" if called := fields.get("functionCall", fields.get("function_call")):
                found.append(Call(str(called.get("id")), called["name"], arguments(called["args"])))
            case "bedrock" if "toolUse" in fields:
                called = fields["toolUse"]
                found.append(Call(called["toolUseId"], called["name"], arguments(called["input"])))
            case _:
                pass
    return found


def results(request: dict[str, Any], provider: str) -> list[Result]:
    """The results in the order of the request."""
    found: list[Result] = []
    for fields in objects(request):
        match provider:
            case "openai-chat" if fields.get("role") == "tool":
                found.append(Result(fields["tool_call_id"], _texts(fields["content"])))
            case "openai-responses" if fields.get("type") == "function_call_output":
                found.append(Result(fields["call_id"], _texts(fields["output"])))
            case "anthropic" if fields.get("type") == "tool_result":
                found.append(Result(fields["tool_use_id"], _texts(fields["content"])))
            case "gemini" if response := fields.get("functionResponse", fields.get("function_response")):
                found.append(Result(str(response.get("id")), _texts(list(response["response"].values()))))
            case "bedrock" if "toolResult" in fields:
                result = fields["toolResult"]
                found.append(Result(result["toolUseId"], _texts(result["content"])))
            case _:
                pass
    return found


def _texts(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(map(_text, content))


def _text(part: Any) -> str:
    if isinstance(part, dict):
        return str(part.get("text", ""))
    return part if isinstance(part, str) else json.dumps(part)
