"""Tools: Python functions with type hints that a model may call (H-9)."""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeGuard, cast, get_type_hints

import msgspec
from msgspec import Struct

from turnlog.errors import InvalidValueError, ToolDefinitionError
from turnlog.formats.json_text import decode_as
from turnlog.log.messages import Content, MediaPart, Part, ReasoningPart, TextPart, ToolCall, ToolResult, ToolStatus
from turnlog.models.protocol import ToolSpec

#: What every provider takes as the name of a function.
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")

ToolFunction: TypeAlias = Callable[..., Any]


class ToolError(Exception):
    """Raised by a tool to tell the model something: the text is sent to it as the call's result, an error."""


class ToolContext(Struct, frozen=True, kw_only=True):
    """What a tool may know of its call: a parameter annotated with this class receives it, unseen by the model."""

    call: ToolCall
    #: The same for the same call of the same run, however often the run is retried (H-8). Other calls have another.
    idempotency_key: str
    #: The call's context, as advisors see it: the session id stands under its key (H-5).
    context: Mapping[str, Any]
    #: Holds the turn on the session; another process joins it by ``call(..., turn=token)`` (H-12).
    turn: str | None = None


class Tool(Struct, frozen=True, kw_only=True):
    """A function as a tool; made by :func:`tool` or :func:`schema_tool`.

    ``arguments`` is the type that a call's JSON is read as. With None it is not read: the function is given the
    :class:`ToolContext` alone, whose call holds the text.
    """

    spec: ToolSpec
    function: ToolFunction
    arguments: type[Any] | None
    #: The parameter that receives the :class:`ToolContext`, if one does.
    context_name: str | None = None
    #: Whether the turn ends with its result, which then goes to the caller and not to the model; asked of the result
    #: where it is a function.
    return_direct: bool | Callable[[ToolResult], bool] = False

    def ends_turn(self, result: ToolResult) -> bool:
        """Whether the turn ends with this result, if the others of its batch say so too."""
        return self.return_direct(result) if callable(self.return_direct) else self.return_direct

    @property
    def is_async(self) -> bool:
        """Whether it must be awaited."""
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(
            getattr(self.function, "__call__", None)  # noqa: B004 - an object that is called is asked for its method
        )


def tool(
    function: ToolFunction | Tool,
    *,
    name: str | None = None,
    description: str | None = None,
    return_direct: bool | Callable[[ToolResult], bool] = False,
) -> Tool:
    """A tool of ``function``: its name, docstring and type hints are what the model is told.

    Every parameter needs a type hint that JSON can be read as; ``Annotated[int, msgspec.Meta(description="…")]`` says
    more about it. A turn ends, without asking the model again, when every tool of a reply returns directly. Raises
    :class:`ToolDefinitionError`.
    """
    if isinstance(function, Tool):
        return function
    _check_callable(function)
    defined = _defined(function)
    known_as = name or str(getattr(defined, "__name__", type(defined).__name__))
    _check_name(known_as)
    fields, context_name = _parameters(function, defined, known_as)
    arguments = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
    told = description if description is not None else inspect.getdoc(defined) or ""
    return Tool(
        spec=ToolSpec(known_as, told, _schema(arguments, known_as)),
        function=function,
        arguments=arguments,
        context_name=context_name,
        return_direct=return_direct,
    )


def schema_tool(
    function: ToolFunction,
    *,
    name: str,
    parameters: dict[str, Any],
    description: str = "",
    return_direct: bool | Callable[[ToolResult], bool] = False,
) -> Tool:
    """A tool whose JSON schema is known from elsewhere, such as a tool server's.

    ``function`` gets the members of the object that the model gave as keyword arguments; it checks them itself.
    """
    _check_callable(function)
    _check_name(name)
    spec = ToolSpec(name, description, parameters)
    return Tool(spec=spec, function=function, arguments=dict, return_direct=return_direct)


def tools_by_name(functions: Sequence[ToolFunction | Tool]) -> dict[str, Tool]:
    """The tools by name; raises where two have the same."""
    found: dict[str, Tool] = {}
    for each in functions:
        made = tool(each)
        if made.spec.name in found:
            raise ToolDefinitionError(made.spec.name, "two tools have this name")
        found[made.spec.name] = made
    return found


def arguments_for(tool: Tool, call: ToolCall, context: ToolContext) -> dict[str, Any]:
    """The keyword arguments that ``call`` asks for; :class:`InvalidValueError` says what is wrong with them.

    Blank arguments are none: that is how some models call a function without parameters.
    """
    if tool.arguments is None:
        return {} if tool.context_name is None else {tool.context_name: context}
    try:
        read = decode_as(call.arguments.strip() or "{}", tool.arguments)
    except ValueError as error:
        raise InvalidValueError(f"arguments of {call.name!r:.60}: {error}") from error
    if isinstance(read, dict):
        return cast("dict[str, Any]", read)
    given = {name: getattr(read, name) for name in read.__struct_fields__}
    given = {name: value for name, value in given.items() if value is not msgspec.UNSET}
    return given if tool.context_name is None else given | {tool.context_name: context}


def result_of(call: ToolCall, returned: object) -> ToolResult:
    """The result that a tool's return value makes: text and parts as they are, a ``ToolResult`` too, the rest as JSON.

    A ``ToolResult`` is given the call's id. Raises :class:`InvalidValueError` for what JSON cannot say.
    """
    if isinstance(returned, ToolResult):
        return ToolResult(call.id, returned.content, returned.status, returned.name)
    return ToolResult(call.id, _content_of(call, returned), name=call.name)


def checked_result(result: object, call: ToolCall) -> ToolResult:
    """What an advisor gave for ``call``, with the call's id: every call of a batch has exactly one result (H-4)."""
    if not isinstance(result, ToolResult):
        raise InvalidValueError(f"around_tool_call returns a ToolResult, not {type(result).__name__}")
    return result if result.id == call.id else ToolResult(call.id, result.content, result.status, result.name)


def error_result(call: ToolCall, error: BaseException, *, details: bool) -> ToolResult:
    """What the model is told of an error: its type and, where the tool chose the words or ``details`` asks, its text.

    Anything else an exception says may hold what the model, and through it the user, is not to see.
    """
    safe = isinstance(error, (ToolError, InvalidValueError))
    text = f"{type(error).__name__}: {error}" if safe or details else f"{type(error).__name__}: the tool failed."
    return ToolResult(call.id, text, ToolStatus.ERROR, call.name)


def unknown_tool(call: ToolCall, known: Sequence[str]) -> ToolResult:
    """What the model is told when there is no such tool."""
    names = ", ".join(known) or "none"
    return ToolResult(
        call.id, f"There is no tool {call.name!r:.80}. The tools are: {names}.", ToolStatus.ERROR, call.name
    )


def _check_callable(value: object) -> None:
    if not callable(value):
        raise ToolDefinitionError(f"{value!r:.60}", "it is no function")


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ToolDefinitionError(name, "a name is 1 to 64 of A-Z, a-z, 0-9, '_' and '-': give it one by name=")


def _defined(function: ToolFunction) -> ToolFunction:
    """The function with the name, docstring and hints, whose arguments others may have set in part."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _parameters(function: ToolFunction, defined: ToolFunction, name: str) -> tuple[list[Any], str | None]:
    try:
        signature = inspect.signature(function)
        hints = get_type_hints(defined if inspect.isroutine(defined) else type(defined).__call__, include_extras=True)
    except (NameError, TypeError, ValueError) as error:
        raise ToolDefinitionError(name, f"its signature cannot be read: {error}") from error
    fields: list[Any] = []
    context_name: str | None = None
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ToolDefinitionError(name, f"parameter {parameter} cannot be given by name")
        hint = hints.get(parameter.name)
        if hint is None:
            raise ToolDefinitionError(name, f"parameter {parameter.name!r} has no type hint")
        if hint is ToolContext:
            context_name = parameter.name
        elif parameter.default is parameter.empty:
            fields.append((parameter.name, hint))
        else:  # left to the function, whose default may be anything
            fields.append((parameter.name, hint | msgspec.UnsetType, msgspec.UNSET))
    return fields, context_name


def _schema(arguments: type[Any], name: str) -> dict[str, Any]:
    try:
        schema = msgspec.json.schema(arguments)
    except (TypeError, NotImplementedError, RuntimeError) as error:
        raise ToolDefinitionError(name, f"a type hint has no JSON schema: {error}") from error
    definitions: dict[str, Any] = schema.pop("$defs")
    top: dict[str, Any] = definitions.pop(schema["$ref"].rpartition("/")[2])
    top.pop("title", None)
    return top | {"$defs": definitions} if definitions else top


def _content_of(call: ToolCall, returned: object) -> Content:
    if returned is None or isinstance(returned, str):
        return returned or ""
    if isinstance(returned, (TextPart, MediaPart, ReasoningPart)):
        return (returned,)
    if _is_parts(returned):
        return tuple(returned)
    try:
        return _json(returned)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValueError(f"{call.name!r:.60} returned what JSON cannot say: {error}") from error


def _is_parts(value: object) -> TypeGuard[Sequence[Part]]:
    if not isinstance(value, (list, tuple)) or not value:
        return False
    return all(isinstance(part, (TextPart, MediaPart, ReasoningPart)) for part in cast("Sequence[object]", value))


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, OverflowError):  # surrogates, as in names of files, and integers beyond 64 bits
        return json.dumps(msgspec.to_builtins(value), ensure_ascii=False, separators=(",", ":"))
