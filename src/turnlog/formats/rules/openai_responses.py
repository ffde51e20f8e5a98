"""The rules of OpenAI's Responses API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from turnlog.errors import InvalidValueError
from turnlog.formats.json_fields import json_name, text_at
from turnlog.formats.rules.models import openai_or_unsure
from turnlog.formats.rules.problem import ProblemLevel
from turnlog.formats.rules.reading import Block, model_of, objects, text_or_null
from turnlog.formats.rules.rule import Finding

#: Calls that the caller answers, the items that answer them, and the provider's words for a call.
_ANSWERS: Final = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
_WORDS: Final = {"function_call": "function call", "custom_tool_call": "custom tool call"}
_OUTPUTS: Final = frozenset(_ANSWERS.values())

_PREFIXES: Final = {"function_call": "fc", "message": "msg", "reasoning": "rs"}
_ID: Final = re.compile(r"[A-Za-z0-9_-]*", re.ASCII)
_LONGEST_ID: Final = 64
#: What a stored thought is never followed by: what the model did not make.
_FROM_OUTSIDE: Final = re.compile(r".*_output|item_reference|mcp_approval_response|additional_tools")


class Item(Struct, frozen=True):
    """An item of the input. ``kind`` is its type, ``message`` where it only has a role."""

    place: str
    kind: str
    role: str | None
    id: str | None
    call_id: str | None
    parts: tuple[Block, ...]
    is_encrypted: bool


class Responses(Struct, frozen=True):
    """A request. ``goes_on``: an earlier response, a conversation or stored items hold what is not here."""

    model: str | None
    items: tuple[Item, ...]
    has_input: bool
    goes_on: bool
    is_stored: bool


def read(request: dict[str, Any]) -> Responses:
    """The request; raises :class:`InvalidValueError` for what no rule can be asked about."""
    given = request.get("input")
    items: tuple[Item, ...] = ()
    if given is not None and not isinstance(given, str):
        items = tuple(_item(place, fields) for place, fields in objects(given, "input"))
    conversation = request.get("conversation")
    earlier = [text_or_null(request, "previous_response_id", "request"), conversation]
    if conversation is not None and not isinstance(conversation, (str, dict)):
        what = json_name(conversation)
        raise InvalidValueError(f"request.conversation must be a string, an object or null, not {what}")
    is_continued = any(name is not None for name in earlier)
    return Responses(
        model=model_of(request, "model"),
        items=items,
        has_input=given not in (None, []) or is_continued or request.get("prompt") is not None,
        goes_on=is_continued or any(item.kind == "item_reference" for item in items),
        is_stored=request.get("store") is not False,
    )


def _item(place: str, fields: dict[str, Any]) -> Item:
    role = text_or_null(fields, "role", place)
    id_ = text_or_null(fields, "id", place)
    kind = text_or_null(fields, "type", place) or ("message" if role is not None else "")
    if not kind:
        if id_ is None:
            raise InvalidValueError(f"{place} has neither 'type' nor 'role'")
        kind = "item_reference"
    if kind == "message":
        text_at(fields, "role", place)
    call_id = text_or_null(fields, "call_id", place)
    if kind in _ANSWERS or kind in _OUTPUTS:
        text_at(fields, "call_id", place)
    parts = _parts(fields.get("content"), place) if kind == "message" else ()
    is_encrypted = text_or_null(fields, "encrypted_content", place) is not None
    return Item(place, kind, role, id_, call_id, parts, is_encrypted)


def _parts(content: object, message: str) -> tuple[Block, ...]:
    if content is None or isinstance(content, str):
        return ()
    placed = objects(content, f"{message}.content")
    return tuple(Block(place, message, text_at(fields, "type", place), fields) for place, fields in placed)


def no_input(request: Responses) -> Iterator[Finding]:
    """Nothing to answer."""
    if not request.has_input:
        yield Finding("input")


def unanswered(request: Responses) -> Iterator[Finding]:
    """Calls without an output."""
    answered = {(item.kind, item.call_id) for item in request.items if item.kind in _OUTPUTS}
    for item in () if request.goes_on else request.items:
        if item.kind in _ANSWERS and (_ANSWERS[item.kind], item.call_id) not in answered:
            yield Finding(item.place, {"id": item.call_id or "", "word": _WORDS[item.kind]})


def unexpected(request: Responses) -> Iterator[Finding]:
    """Outputs without a call, of whatever kind."""
    asked = {item.call_id for item in request.items if item.kind not in _OUTPUTS}
    for item in () if request.goes_on else request.items:
        if item.kind in _OUTPUTS and item.call_id not in asked:
            word = item.kind.removesuffix("_output").replace("_", " ")
            yield Finding(item.place, {"id": item.call_id or "", "word": word})


def early_output(request: Responses) -> Iterator[Finding]:
    """Outputs before their call."""
    asked = {item.call_id for item in request.items if item.kind not in _OUTPUTS}
    seen = set[str | None]()
    for item in request.items:
        if item.kind not in _OUTPUTS:
            seen.add(item.call_id)
        elif item.call_id in asked and item.call_id not in seen:
            yield Finding(item.place, {"id": item.call_id or ""})


def second_output(request: Responses) -> Iterator[Finding]:
    """Calls that are answered twice."""
    yield from _repeated(item for item in request.items if item.kind in _OUTPUTS)


def second_call(request: Responses) -> Iterator[Finding]:
    """Calls with one id."""
    yield from _repeated(item for item in request.items if item.kind in _ANSWERS)


def _repeated(items: Iterator[Item]) -> Iterator[Finding]:
    seen = set[tuple[str, str | None]]()
    for item in items:
        if (item.kind, item.call_id) in seen:
            yield Finding(f"{item.place}.call_id", {"id": item.call_id or ""})
        seen.add((item.kind, item.call_id))


def second_item(request: Responses) -> Iterator[Finding]:
    """Items that stand twice."""
    seen = set[str]()
    for item in request.items:
        if item.id is not None and item.id in seen:
            yield Finding(f"{item.place}.id", {"id": item.id})
        seen.add(item.id or "")


def wrong_prefix(request: Responses) -> Iterator[Finding]:
    """Ids of something else."""
    level = openai_or_unsure(request.model)
    for item in request.items:
        prefix = _PREFIXES.get(item.kind)
        if item.id is not None and prefix is not None and not item.id.startswith(prefix):
            yield Finding(f"{item.place}.id", {"id": item.id, "prefix": prefix}, level)


def _ids(request: Responses) -> Iterator[tuple[str, str]]:
    for item in request.items:
        for key, value in (("id", item.id), ("call_id", item.call_id)):
            if value is not None:
                yield f"{item.place}.{key}", value


def long_id(request: Responses) -> Iterator[Finding]:
    """Ids that are too long."""
    level = openai_or_unsure(request.model)
    for place, id_ in _ids(request):
        if len(id_) > _LONGEST_ID:
            yield Finding(place, {"length": len(id_)}, level)


def wrong_id(request: Responses) -> Iterator[Finding]:
    """Ids of other characters."""
    level = openai_or_unsure(request.model)
    for place, id_ in _ids(request):
        if not _ID.fullmatch(id_):
            yield Finding(place, {"id": id_}, level)


def unfollowed(request: Responses) -> Iterator[Finding]:
    """Stored thoughts without what they led to. A run of them leads to one item."""
    after: Item | None = None
    for item in reversed(request.items):
        if item.kind != "reasoning":
            after = item
        elif item.id is not None and item.id.startswith("rs_") and not _is_made_by_model(after):
            yield Finding(item.place, {"id": item.id})


def _is_made_by_model(item: Item | None) -> bool:
    if item is None or _FROM_OUTSIDE.fullmatch(item.kind):
        return False
    # A message that was written anew has no id, and is none that the model made.
    return item.kind != "message" or (item.role == "assistant" and item.id is not None)


def message_between_calls(request: Responses) -> Iterator[Finding]:
    """Messages while calls wait for their outputs, where that is known to be refused."""
    if request.model is None or openai_or_unsure(request.model) is ProblemLevel.ERROR:
        return
    level = ProblemLevel.ERROR if "deepseek" in request.model.lower() else None
    # Answered later on: a call that is answered nowhere is another rule's.
    answered_at = {item.call_id: index for index, item in enumerate(request.items) if item.kind in _OUTPUTS}
    waiting: dict[str | None, None] = {}
    for index, item in enumerate(request.items):
        if item.kind in _ANSWERS and answered_at.get(item.call_id, -1) > index:
            waiting[item.call_id] = None
        elif item.kind in _OUTPUTS:
            waiting.pop(item.call_id, None)
        elif item.kind == "message" and waiting:
            yield Finding(item.place, {"id": next(iter(waiting)) or ""}, level)


def wrong_part(request: Responses) -> Iterator[Finding]:
    """Parts of the other side."""
    for item in request.items:
        for part in item.parts:
            if item.role == "assistant" and part.kind.startswith("input_"):
                yield Finding(part.place, {"kind": part.kind[:40], "supported": "'output_text' and 'refusal'"})
            elif item.role != "assistant" and part.kind in {"output_text", "refusal"}:
                supported = "'input_text', 'input_image', and 'input_file'"
                yield Finding(part.place, {"kind": part.kind, "supported": supported})


def not_stored(request: Responses) -> Iterator[Finding]:
    """Stored thoughts without their content, in a request that stores nothing."""
    for item in () if request.is_stored else request.items:
        is_stored_thought = item.kind == "reasoning" and (item.id or "").startswith("rs_") and not item.is_encrypted
        if item.kind == "item_reference" or is_stored_thought:
            yield Finding(item.place, {"id": item.id or ""})
