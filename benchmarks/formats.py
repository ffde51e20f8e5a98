"""Wire formats: reading and writing a conversation, against reading and writing its JSON alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from benchmarks.lab import Compared, Result, Scale, Subject, compared
from benchmarks.traffic import repeated
from turnlog import UserMessage
from turnlog.formats import Request, anthropic, bedrock, gemini, openai_chat, openai_responses, render_request

_MESSAGES: Final = 200
_BOUND: Final = 3.0
_BASE: Final = "÷ json.loads + json.dumps"


def results(scale: Scale) -> Iterator[Result]:
    """Two rows for each provider: messages that ours say all of, and such that each has to be kept as it came."""
    bodies = {name: body(name) for name in _ROUND_TRIPS}
    signed = {name: with_more(name, body(name)) for name in _ROUND_TRIPS}
    for what, requests in (("", bodies), (" that are kept as they came", signed)):
        subjects = [_subject(name, request) for name, request in requests.items()]
        for name, found in zip(requests, compared(subjects, scale.visits), strict=True):
            yield _row(f"{name}: parse and render {_MESSAGES} messages{what} {_BASE}", found)


def body(provider: str) -> dict[str, Any]:
    """A conversation as the provider takes it."""
    messages = (*islice(repeated(11), _MESSAGES - 1), UserMessage("And now?"))
    return render_request(Request(messages=messages, provider="openai-chat"), provider)


def with_more(provider: str, request: dict[str, Any]) -> dict[str, Any]:
    """The same with something in each message that ours have no place for."""
    if provider == "openai-responses":
        return {"input": [item | {"id": f"{_prefix(item)}_{at:040}"} for at, item in enumerate(request["input"])]}
    key = "contents" if provider == "gemini" else "messages"
    for message in request[key]:
        if provider == "openai-chat":
            message["cache_control"] = {"type": "ephemeral"}
        elif provider == "bedrock":
            message["content"].append({"cachePoint": {"type": "default"}})
        elif provider == "anthropic":
            message["content"][-1]["cache_control"] = {"type": "ephemeral"}
        else:
            message["parts"][-1]["thoughtSignature"] = "c2lnbmF0dXJl" * 20
    return request


def _prefix(item: dict[str, Any]) -> str:
    return {"function_call": "fc", "function_call_output": "fco"}.get(item.get("type", ""), "msg")


def _row(name: str, found: Compared) -> Result:
    return Result(name, found.ratio, _BOUND, note=found.note)


def _subject(provider: str, request: dict[str, Any]) -> Subject:
    text = json.dumps(request)
    round_trip = _ROUND_TRIPS[provider]
    return Subject(lambda: round_trip(request), lambda: json.dumps(json.loads(text)))


def _chat(request: dict[str, Any]) -> object:
    return openai_chat.render(openai_chat.parse_messages(request["messages"]))


def _responses(request: dict[str, Any]) -> object:
    return openai_responses.render(openai_responses.parse(request["input"]))


def _anthropic(request: dict[str, Any]) -> object:
    return anthropic.render(anthropic.parse(request["messages"]))


def _gemini(request: dict[str, Any]) -> object:
    return gemini.render(gemini.parse(request["contents"]))


def _bedrock(request: dict[str, Any]) -> object:
    return bedrock.render(bedrock.parse(request["messages"]))


_ROUND_TRIPS: Final[dict[str, Callable[[dict[str, Any]], object]]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "bedrock": _bedrock,
}
