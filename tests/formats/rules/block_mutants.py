"""Recorded requests made of blocks (Anthropic, Gemini, Bedrock), changed so that the verdict is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests.formats.rules.mutant import Mutant

Fields = dict[str, Any]


class Site(NamedTuple):
    """Where a block stands."""

    message: int
    block: int


class Api(NamedTuple):
    """How a provider writes a request. Ids of blocks that are none are None; Gemini's may have no id at all."""

    messages: str
    blocks: str
    model_role: str
    call_id: Callable[[Fields], str | None]
    result_id: Callable[[Fields], str | None]
    with_id: Callable[[Fields, str], Fields]
    text: Callable[[str], Fields]
    rules: dict[str, set[str]]


class Request:
    """A request as lists of blocks; changes give new ones."""

    def __init__(self, api: Api, request: Fields) -> None:
        self.api = api
        self._request = request
        self.roles = [message["role"] for message in request[api.messages]]
        self.blocks = [self._blocks_of(message[api.blocks]) for message in request[api.messages]]

    def _blocks_of(self, content: Any) -> list[Fields]:
        return [self.api.text(content)] if isinstance(content, str) else list(content)

    def rebuilt(self, messages: list[tuple[str, list[Fields]]]) -> Fields:
        """The request with other messages. One that would be empty says something instead."""
        rebuilt = [
            {"role": role, self.api.blocks: blocks or [self.api.text("Nothing is left of it.")]}
            for role, blocks in messages
        ]
        return self._request | {self.api.messages: rebuilt}

    def pairs(self) -> list[tuple[str, list[Fields]]]:
        """The messages as role and blocks."""
        return list(zip(self.roles, self.blocks, strict=True))

    def edited(self, message: int, edit: Callable[[list[Fields]], list[Fields]]) -> Fields:
        """The request with the blocks of one message changed."""
        pairs = self.pairs()
        pairs[message] = (pairs[message][0], edit(pairs[message][1]))
        return self.rebuilt(pairs)

    def sites(self, role: str, id_of: Callable[[Fields], str | None]) -> list[Site]:
        """The blocks of messages of a role that have an id."""
        return [
            Site(number, index)
            for number, blocks in enumerate(self.blocks)
            for index, block in enumerate(blocks)
            if self.roles[number] == role and id_of(block) is not None
        ]

    def calls(self) -> list[Site]:
        return self.sites(self.api.model_role, self.api.call_id)

    def results(self) -> list[Site]:
        return self.sites("user", self.api.result_id)

    def at(self, site: Site) -> Fields:
        return self.blocks[site.message][site.block]

    def place(self, site: Site) -> str:
        return f"{self.api.messages}[{site.message}].{self.api.blocks}[{site.block}]"


def breaking(api: Api, original: Fields) -> Iterator[Mutant]:
    """Requests that the provider refuses, with the rules one of which must be named."""
    request = Request(api, original)
    rules = api.rules
    for site in request.results():
        yield Mutant("drop a result", request.edited(site.message, _without(site.block)), rules["unanswered"])
        yield Mutant("double a result", request.edited(site.message, _doubled(site.block)), rules["second result"])
        if api.rules["renamed"]:
            renamed = api.with_id(request.at(site), "renamed_1")
            yield Mutant("rename a result", request.edited(site.message, _put(site.block, renamed)), rules["renamed"])
    for site in request.calls():
        yield Mutant("drop a call", request.edited(site.message, _without(site.block)), rules["unexpected"])
        yield Mutant("double a call", request.edited(site.message, _doubled(site.block)), rules["second call"])
        yield Mutant("cut behind the call", request.rebuilt(request.pairs()[: site.message + 1]), rules["unanswered"])
        after = request.pairs()[site.message + 1 :]
        if after and any(api.result_id(block) is not None for block in after[0][1]):
            yield Mutant("cut before the result", request.rebuilt(after), rules["unexpected"])
    asking, answering = {site.message for site in request.calls()}, {site.message for site in request.results()}
    for number in sorted(asking):
        if number + 1 in answering:
            pairs = request.pairs()
            pairs[number], pairs[number + 1] = pairs[number + 1], pairs[number]
            yield Mutant("swap call and result", request.rebuilt(pairs), rules["unexpected"] | rules["unanswered"])


def preserving(api: Api, original: Fields) -> Iterator[Mutant]:
    """Requests that mean what the original means, or that are no less right."""
    request = Request(api, original)
    pairs = request.pairs()
    for number, (role, blocks) in enumerate(pairs):
        if len(blocks) > 1:
            halves = [(role, blocks[:1]), (role, blocks[1:])]
            yield Mutant("split a message", request.rebuilt(pairs[:number] + halves + pairs[number + 1 :]))
        if number and pairs[number - 1][0] == role:
            one = [(role, pairs[number - 1][1] + blocks)]
            yield Mutant("join two messages", request.rebuilt(pairs[: number - 1] + one + pairs[number + 1 :]))
        if role == "user":
            yield Mutant(
                "add text", request.edited(number, lambda blocks: [*blocks, api.text("And in short, please.")])
            )
    for id_ in dict.fromkeys(id_ for site in request.calls() if (id_ := api.call_id(request.at(site)))):
        renamed = [(role, [_renamed(api, block, id_) for block in blocks]) for role, blocks in pairs]
        yield Mutant("rename an id throughout", request.rebuilt(renamed))


def _renamed(api: Api, block: Fields, id_: str) -> Fields:
    is_named = id_ in {api.call_id(block), api.result_id(block)}
    return api.with_id(block, "call_renamed-1") if is_named else block


def _without(index: int) -> Callable[[list[Fields]], list[Fields]]:
    return lambda blocks: blocks[:index] + blocks[index + 1 :]


def _doubled(index: int) -> Callable[[list[Fields]], list[Fields]]:
    return lambda blocks: blocks[: index + 1] + blocks[index:]


def _put(index: int, block: Fields) -> Callable[[list[Fields]], list[Fields]]:
    return lambda blocks: [*blocks[:index], block, *blocks[index + 1 :]]


def _text_of_anthropic(text: str) -> Fields:
    return {"type": "text", "text": text}


ANTHROPIC = Api(
    messages="messages",
    blocks="content",
    model_role="assistant",
    call_id=lambda block: block["id"] if block["type"] == "tool_use" else None,
    result_id=lambda block: block["tool_use_id"] if block["type"] == "tool_result" else None,
    with_id=lambda block, id_: block | {"id" if block["type"] == "tool_use" else "tool_use_id": id_},
    text=_text_of_anthropic,
    rules={
        "unanswered": {"anthropic.tool-use-unanswered"},
        "unexpected": {"anthropic.tool-result-unexpected"},
        "second result": {"anthropic.tool-result-duplicate"},
        "second call": {"anthropic.tool-use-duplicate"},
        "renamed": {"anthropic.tool-use-unanswered"},
    },
)


def _held(block: Fields, key: str) -> Fields | None:
    held: Fields | None = block.get(key)
    return held if held is not None and held.get("type") is None else None


def _bedrock_id(block: Fields, key: str) -> str | None:
    held = _held(block, key)
    return None if held is None else held["toolUseId"]


BEDROCK = Api(
    messages="messages",
    blocks="content",
    model_role="assistant",
    call_id=lambda block: _bedrock_id(block, "toolUse"),
    result_id=lambda block: _bedrock_id(block, "toolResult"),
    with_id=lambda block, id_: {key: held | {"toolUseId": id_} for key, held in block.items()},
    text=lambda text: {"text": text},
    rules={
        "unanswered": {"bedrock.tool-use-unanswered"},
        "unexpected": {"bedrock.tool-result-unexpected"},
        "second result": {"bedrock.tool-result-duplicate"},
        "second call": {"bedrock.tool-use-duplicate"},
        "renamed": {"bedrock.tool-use-unanswered"},
    },
)


def _gemini_id(block: Fields, keys: tuple[str, str]) -> str | None:
    held: Fields | None = next((block[key] for key in keys if key in block), None)
    return None if held is None else held.get("id", "")


_CALL = ("functionCall", "function_call")
_RESPONSE = ("functionResponse", "function_response")

GEMINI = Api(
    messages="contents",
    blocks="parts",
    model_role="model",
    call_id=lambda block: _gemini_id(block, _CALL),
    result_id=lambda block: _gemini_id(block, _RESPONSE),
    with_id=lambda block, id_: {
        key: held | {"id": id_} if key in (*_CALL, *_RESPONSE) else held for key, held in block.items()
    },
    text=lambda text: {"text": text},
    rules={
        "unanswered": {"gemini.response-count"},
        "unexpected": {"gemini.response-count", "gemini.response-turn"},
        "second result": {"gemini.response-count"},
        "second call": {"gemini.response-count"},
        "renamed": set(),
    },
)
