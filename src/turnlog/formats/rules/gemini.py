"""The rules of the Gemini API, in either spelling of its keys: ``functionCall`` or ``function_call``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from turnlog.errors import InvalidValueError
from turnlog.formats.json_fields import as_object, is_array, is_object, json_name, text_at
from turnlog.formats.rules.models import gemini_generation
from turnlog.formats.rules.problem import ProblemLevel
from turnlog.formats.rules.reading import Block, Message, Turn, joined, model_of, objects, required, text_or_null
from turnlog.formats.rules.rule import Finding, Rule

_CALL: Final = ("functionCall", "function_call")
_RESPONSE: Final = ("functionResponse", "function_response")
_SIGNATURE: Final = ("thoughtSignature", "thought_signature")
_SIGNED_GENERATION: Final = 3


class Gemini(Struct, frozen=True):
    """A request. A block's kind is ``call``, ``response``, ``text`` or ``""``."""

    model: str | None
    messages: tuple[Message, ...]
    turns: tuple[Turn, ...]


def read(request: dict[str, Any]) -> Gemini:
    """The request; raises :class:`InvalidValueError` for what no rule can be asked about."""
    contents = required(request, "contents")
    messages: tuple[Message, ...]
    if isinstance(contents, str):
        # Google's own library takes a string, or one content, for a list of it.
        messages = (Message("contents", "user", (Block("contents", "contents", "text", {"text": contents}),)),)
    elif is_object(contents):
        messages = (_message("contents", contents),)
    elif is_array(contents):
        messages = tuple(_message(place, fields) for place, fields in objects(contents, "contents"))
    else:
        raise InvalidValueError(f"contents must be an array, an object or a string, not {json_name(contents)}")
    return Gemini(model_of(request, "model"), messages, joined(messages))


def _message(place: str, fields: dict[str, Any]) -> Message:
    role = text_or_null(fields, "role", place)
    parts = fields.get("parts")
    placed = [] if parts is None else objects(parts, f"{place}.parts")
    return Message(place, "user" if role is None else role, tuple(_part(at, place, part) for at, part in placed))


def _part(place: str, message: str, fields: dict[str, Any]) -> Block:
    kind = "text" if text_or_null(fields, "text", place) is not None else ""
    for name, keys in (("call", _CALL), ("response", _RESPONSE)):
        key = next((key for key in keys if fields.get(key) is not None), None)
        if key is not None:
            kind = name
            called = as_object(fields[key], f"{place}.{key}")
            text_at(called, "name", f"{place}.{key}")
            text_or_null(called, "id", f"{place}.{key}")
    for key in _SIGNATURE:
        text_or_null(fields, key, place)
    return Block(place, message, kind, fields)


def _of_kind(turn: Turn | None, role: str, kind: str) -> list[Block]:
    if turn is None or turn.role != role:
        return []
    return [block for block in turn.blocks if block.kind == kind]


def _steps(request: Gemini) -> Iterator[tuple[Turn | None, Turn | None]]:
    return zip((None, *request.turns), (*request.turns, None), strict=True)


def _empty(request: Gemini) -> Iterator[Finding]:
    if not request.messages:
        yield Finding("contents")


def _no_parts(request: Gemini) -> Iterator[Finding]:
    yield from (Finding(message.place) for message in request.messages if not message.blocks)


def _wrong_role(request: Gemini) -> Iterator[Finding]:
    for message in request.messages:
        if message.role not in {"user", "model"}:
            yield Finding(f"{message.place}.role", {"role": message.role[:40]})


def _early_call(request: Gemini) -> Iterator[Finding]:
    for before, turn in _steps(request):
        calls = _of_kind(turn, "model", "call")
        if calls and (before is None or before.role != "user"):
            yield Finding(calls[0].place)


def _unexpected(request: Gemini) -> Iterator[Finding]:
    for before, turn in _steps(request):
        responses = _of_kind(turn, "user", "response")
        if responses and not _of_kind(before, "model", "call"):
            yield Finding(responses[0].place)


def _wrong_count(request: Gemini) -> Iterator[Finding]:
    for turn, after in _steps(request):
        calls, responses = _of_kind(turn, "model", "call"), _of_kind(after, "user", "response")
        if calls and len(calls) != len(responses):
            yield Finding(calls[0].place, {"calls": len(calls), "responses": len(responses)})


def _misplaced(request: Gemini) -> Iterator[Finding]:
    for message in request.messages:
        wrong = {"user": "call", "model": "response"}.get(message.role)
        yield from (Finding(block.place) for block in message.blocks if block.kind == wrong)


def _unknown(request: Gemini) -> Iterator[Finding]:
    for before, turn in _steps(request):
        asked = {(_fields(call, _CALL)["name"], _fields(call, _CALL).get("id")) for call in _calls(before)}
        names, ids = {name for name, _ in asked}, {id_ for _, id_ in asked}
        for response in _of_kind(turn, "user", "response"):
            fields = _fields(response, _RESPONSE)
            is_other = fields.get("id") is not None and None not in ids and fields["id"] not in ids
            if asked and (fields["name"] not in names or is_other):
                yield Finding(response.place, {"name": fields["name"][:80]})


def _calls(turn: Turn | None) -> list[Block]:
    return _of_kind(turn, "model", "call")


def _fields(block: Block, keys: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = next(block.fields[key] for key in keys if block.fields.get(key) is not None)
    return found


def _unsigned(request: Gemini) -> Iterator[Finding]:
    generation = gemini_generation(request.model)
    if generation is not None and generation < _SIGNED_GENERATION:
        return
    level = ProblemLevel.BY_MODEL if generation is None else ProblemLevel.ERROR
    for turn in _current_loop(request.turns):
        call = turn.blocks[[block.kind for block in turn.blocks].index("call")]
        if not any(call.fields.get(key) for key in _SIGNATURE):
            yield Finding(call.place, {"name": _fields(call, _CALL)["name"][:80]}, level)


def _current_loop(turns: tuple[Turn, ...]) -> list[Turn]:
    """The model turns with calls since the user last said something: what is looked at by the provider."""
    loop: list[Turn] = []
    for turn in reversed(turns):
        if turn.role == "user" and any(block.kind != "response" for block in turn.blocks):
            break
        if _calls(turn):
            loop.insert(0, turn)
    return loop


def _first_not_user(request: Gemini) -> Iterator[Finding]:
    if request.messages and request.messages[0].role == "model":
        yield Finding(request.messages[0].place)


def _last_not_user(request: Gemini) -> Iterator[Finding]:
    if request.messages and request.messages[-1].role == "model":
        yield Finding(request.messages[-1].place)


RULES: Final[tuple[Rule[Gemini], ...]] = (
    Rule(
        id="gemini.contents-empty",
        demand="There is at least one content.",
        message="there are no contents: send at least one of the user's",
        says="* GenerateContentRequest.contents: contents is not specified",
        find=_empty,
    ),
    Rule(
        id="gemini.parts-empty",
        demand="Every content has a part.",
        message="the content has no parts: leave it out",
        says="Unable to submit request because it must include at least one parts field, which describes the prompt "
        "input.",
        find=_no_parts,
    ),
    Rule(
        id="gemini.role",
        demand="A role is user or model; results are the user's.",
        message="no content has the role {role!a}: it is user or model",
        says="Please use a valid role: user, model.",
        find=_wrong_role,
    ),
    Rule(
        id="gemini.call-turn",
        demand="A model turn with calls follows a user turn.",
        message="a call stands in a turn that follows no user turn: bring the user's back, or leave the calls out",
        says="Please ensure that function call turn comes immediately after a user turn or after a function response "
        "turn.",
        find=_early_call,
    ),
    Rule(
        id="gemini.response-turn",
        demand="A user turn with responses follows a model turn with calls.",
        message="the turn before has no calls: leave the responses out, or bring their calls back",
        says="Please ensure that function response turn comes immediately after a function call turn.",
        find=_unexpected,
    ),
    Rule(
        id="gemini.response-count",
        demand="A turn with calls is followed by one with as many responses.",
        message="the turn has {calls} calls, and the next one {responses} responses: answer each call once",
        says="Please ensure that the number of function response parts is equal to the number of function call parts "
        "of the function call turn.",
        find=_wrong_count,
    ),
    Rule(
        id="gemini.part-of-role",
        level=ProblemLevel.WARNING,
        demand="Calls are the model's, responses the user's.",
        message="a call stands in a content of the user's, or a response in one of the model's: move it",
        find=_misplaced,
    ),
    Rule(
        id="gemini.response-unknown",
        level=ProblemLevel.WARNING,
        demand="A response has the name, and the id where there is one, of a call of the turn before.",
        message="the turn before has no such call as this response of {name!a} names: give it the call's name and id",
        find=_unknown,
    ),
    Rule(
        id="gemini.thought-signature",
        level=ProblemLevel.BY_MODEL,
        demand="Since the user last spoke, the first call of each model turn keeps its signature (an error for Gemini "
        "3 and later; earlier models do not ask; the model is read from `model`).",
        message="the call of {name!a} has lost its thoughtSignature: send the part as it came",
        says="Function call is missing a thought_signature in functionCall parts.",
        find=_unsigned,
    ),
    Rule(
        id="gemini.first-not-user",
        level=ProblemLevel.WARNING,
        demand="The first content is the user's.",
        message="the first content is the model's: begin with the user's",
        find=_first_not_user,
    ),
    Rule(
        id="gemini.last-not-user",
        level=ProblemLevel.BY_MODEL,
        demand="The last content is the user's.",
        message="the request ends with a content of the model's: end it with the user's",
        says="Requests ending with a model turn are not supported.",
        find=_last_not_user,
    ),
)
