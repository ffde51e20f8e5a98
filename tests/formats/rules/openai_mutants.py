"""Recorded requests to OpenAI's two APIs, changed so that the verdict is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.formats.rules.mutant import Mutant

Fields = dict[str, Any]

_CALLS = ("function_call", "custom_tool_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")


def breaking_chat(request: Fields) -> Iterator[Mutant]:
    """Chats that the provider refuses, with the rules one of which must be named."""
    messages: list[Fields] = request["messages"]
    for index, message in enumerate(messages):
        before, after = messages[:index], messages[index + 1 :]
        if message["role"] == "tool":
            unanswered = {"openai-chat.tool-call-unanswered"}
            yield Mutant("drop a result", request | {"messages": before + after}, unanswered)
            doubled = [*before, message, message, *after]
            place = f"messages[{index + 1}].tool_call_id"
            second = {"openai-chat.tool-result-duplicate"}
            yield Mutant("double a result", request | {"messages": doubled}, second, place)
            renamed = [*before, message | {"tool_call_id": "renamed"}, *after]
            place = f"messages[{index}].tool_call_id"
            yield Mutant("rename a result", request | {"messages": renamed}, {"openai-chat.tool-result-unknown"}, place)
        for number, call in enumerate(message.get("tool_calls") or ()):
            yield from _broken_calls(request, index, number, call)


def _broken_calls(request: Fields, index: int, number: int, call: Fields) -> Iterator[Mutant]:
    messages: list[Fields] = request["messages"]
    message, before, after = messages[index], messages[:index], messages[index + 1 :]
    calls: list[Fields] = message["tool_calls"]
    others = calls[:number] + calls[number + 1 :]
    left = {key: value for key, value in message.items() if key != "tool_calls"} | {"content": "Let me see."}
    fewer = message | {"tool_calls": others} if others else left
    unexpected = {"openai-chat.tool-result-unknown" if others else "openai-chat.tool-result-unexpected"}
    yield Mutant("drop a call", request | {"messages": [*before, fewer, *after]}, unexpected)
    doubled = message | {"tool_calls": [*calls, call]}
    place = f"messages[{index}].tool_calls[{len(calls)}].id"
    second = {"openai-chat.tool-call-duplicate"}
    yield Mutant("double a call", request | {"messages": [*before, doubled, *after]}, second, place)
    place = f"messages[{index}].tool_calls[{number}]"
    unanswered = {"openai-chat.tool-call-unanswered"}
    yield Mutant("cut behind the call", request | {"messages": [*before, message]}, unanswered, place)
    if after and after[0]["role"] == "tool":
        results = {"openai-chat.tool-result-unexpected"}
        yield Mutant("cut before the result", request | {"messages": after}, results, "messages[0]")
        # With another's call before it, the result would be behind a call all the same, of another id.
        swapped = [*before, after[0], message, *after[1:]]
        wrong = {"openai-chat.tool-result-unexpected", "openai-chat.tool-result-unknown"}
        yield Mutant("swap call and result", request | {"messages": swapped}, wrong)
        asked = {"role": "user", "content": "Are you there?"}
        between = [*before, message, asked, *after]
        yield Mutant("put a message between", request | {"messages": between}, unanswered, place)


def preserving_chat(request: Fields) -> Iterator[Mutant]:
    """Chats that mean what the original means, or that are no less right."""
    messages: list[Fields] = request["messages"]
    for index, message in enumerate(messages):
        before, after = messages[:index], messages[index + 1 :]
        content = message.get("content")
        if message["role"] == "user" and isinstance(content, list) and len(content) > 1:
            halves = [message | {"content": content[:1]}, message | {"content": content[1:]}]
            yield Mutant("split a message", request | {"messages": before + halves + after})
        if message["role"] == "assistant" and content and message.get("tool_calls"):
            alone = {"role": "assistant", "content": content}
            calls = {"role": "assistant", "content": None, "tool_calls": message["tool_calls"]}
            yield Mutant("split a reply", request | {"messages": [*before, alone, calls, *after]})
        if message["role"] != "tool" and (not after or after[0]["role"] != "tool"):
            said = {"role": "user", "content": "And in short, please."}
            yield Mutant("add text", request | {"messages": [*before, message, said, *after]})
        for call in message.get("tool_calls") or ():
            yield Mutant("rename an id throughout", request | {"messages": _renamed_chat(messages, call["id"])})


def _renamed_chat(messages: list[Fields], id_: str) -> list[Fields]:
    renamed: list[Fields] = []
    for message in messages:
        changes: Fields = {}
        if message.get("tool_call_id") == id_:
            changes["tool_call_id"] = "call_renamed"
        if message.get("tool_calls"):
            changes["tool_calls"] = [
                call | {"id": "call_renamed"} if call["id"] == id_ else call for call in message["tool_calls"]
            ]
        renamed.append(message | changes)
    return renamed


def breaking_responses(request: Fields) -> Iterator[Mutant]:
    """Inputs that the provider refuses, with the rules one of which must be named."""
    items = _items(request)
    goes_on = request.get("previous_response_id") is not None or request.get("conversation") is not None
    for index, item in enumerate(items):
        before, after = items[:index], items[index + 1 :]
        kind = item.get("type")
        if kind in _OUTPUTS and not goes_on:
            unanswered = {"openai-responses.call-unanswered", "openai-responses.output-unexpected"}
            if _call_of(items, item) in _CALLS:
                unanswered = {"openai-responses.call-unanswered"}
                yield Mutant("drop an output", request | {"input": before + after}, unanswered)
            renamed = [*before, item | {"call_id": "renamed"}, *after]
            unexpected = {"openai-responses.output-unexpected"}
            yield Mutant("rename an output", request | {"input": renamed}, unexpected, f"input[{index}]")
        if kind in _OUTPUTS:
            second = {"openai-responses.output-duplicate"}
            yield Mutant("double an output", request | {"input": [*before, item, item, *after]}, second)
        if kind in _CALLS:
            yield from _broken_items(request, index, goes_on=goes_on)
        if kind == "reasoning" and str(item.get("id")).startswith("rs_"):
            unfollowed = {"openai-responses.reasoning-unfollowed"}
            yield Mutant("move a thought to the end", request | {"input": [*before, *after, item]}, unfollowed)
            if before and before[-1].get("role") == "user":
                moved = [*before[:-1], item, before[-1], *after]
                yield Mutant("move a thought before the question", request | {"input": moved}, unfollowed)
        if item.get("id") and kind not in _CALLS:
            again = {"openai-responses.item-duplicate"}
            yield Mutant("double an item", request | {"input": [*before, item, item, *after]}, again)


def _broken_items(request: Fields, index: int, *, goes_on: bool) -> Iterator[Mutant]:
    items = _items(request)
    item, before, after = items[index], items[:index], items[index + 1 :]
    second = {"openai-responses.call-duplicate"}
    yield Mutant("double a call", request | {"input": [*before, item, item, *after]}, second)
    at = next((at for at, other in enumerate(items) if _answers(other, item)), None)
    if at is not None:
        moved = [*items[:index], items[at], *items[index:at], *items[at + 1 :]]
        early = {"openai-responses.output-before-call"}
        yield Mutant("swap call and output", request | {"input": moved}, early, f"input[{index}]")
    if goes_on:
        return
    yield Mutant("cut behind the call", request | {"input": [*before, item]}, {"openai-responses.call-unanswered"})
    if at is not None:
        unexpected = {"openai-responses.output-unexpected"}
        yield Mutant("drop a call", request | {"input": before + after}, unexpected, f"input[{at - 1}]")


def preserving_responses(request: Fields) -> Iterator[Mutant]:
    """Inputs that mean what the original means, or that are no less right."""
    items = _items(request)
    said = {"role": "user", "content": "And in short, please."}
    yield Mutant("add text", request | {"input": [*items, said]})
    for index, item in enumerate(items):
        content = item.get("content")
        if item.get("role") == "user" and isinstance(content, list) and len(content) > 1:
            halves = [item | {"content": content[:1]}, item | {"content": content[1:]}]
            yield Mutant("split a message", request | {"input": items[:index] + halves + items[index + 1 :]})
        if item.get("type") in _CALLS:
            renamed = [
                other | {"call_id": "call_renamed"} if other.get("call_id") == item["call_id"] else other
                for other in items
            ]
            yield Mutant("rename an id throughout", request | {"input": renamed})


def _items(request: Fields) -> list[Fields]:
    given = request["input"]
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def _answers(output: Fields, call: Fields) -> bool:
    return output.get("type") == f"{call['type']}_output" and output["call_id"] == call["call_id"]


def _call_of(items: list[Fields], output: Fields) -> str | None:
    return next((item.get("type") for item in items if item.get("type") in _CALLS and _answers(output, item)), None)
