"""Whole requests: read from one provider's form, written in the same or in another's (P-1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import force_setattr

from turnlog.errors import InvalidValueError
from turnlog.formats.crossing import paired
from turnlog.formats.json_fields import as_object
from turnlog.formats.loss import Loss, Notes
from turnlog.formats.providers import PROVIDERS, ProviderForm, tools_of_calls
from turnlog.formats.tools import ToolSpec
from turnlog.formats.writing import copied
from turnlog.log.json_values import storable, storable_dict
from turnlog.log.messages import MESSAGE_CLASSES, Message, SystemMessage


class Request(Struct, frozen=True, kw_only=True):
    """A request to a model, in no provider's form.

    ``provider`` is where it came from; ``rest`` holds every other key of that request untouched, and the tools as they
    stood there where they say more than ``tools`` does.
    """

    messages: tuple[Message, ...]
    provider: str
    tools: tuple[ToolSpec, ...] = ()
    rest: dict[str, Any] = {}

    def __post_init__(self) -> None:
        form_of(self.provider)
        force_setattr(self, "messages", _all_of(self.messages, MESSAGE_CLASSES, "messages"))
        force_setattr(self, "tools", _all_of(self.tools, (ToolSpec,), "tools"))
        force_setattr(self, "rest", storable_dict(self.rest, "rest"))

    def __repr__(self) -> str:
        counted = f"{len(self.messages)} messages, {len(self.tools)} tools"
        return f"Request({self.provider!r}, {counted}, beside {', '.join(self.rest)[:60] or 'nothing'})"

    def replace(self, **changes: Any) -> Self:
        """A changed copy, validated again."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return type(self)(**fields | changes)


def form_of(provider: str) -> ProviderForm:
    """The form of a provider's requests; raises :class:`InvalidValueError` for a name that is not known."""
    form = PROVIDERS.get(provider) if isinstance(provider, str) else None
    if form is None:
        raise InvalidValueError(f"no format is called {provider!a}: choose one of {', '.join(PROVIDERS)}")
    return form


def parse_request(data: Any, provider: str) -> Request:
    """The request that ``data``, the body as the provider's HTTP API takes it, says.

    ``provider`` is ``openai-chat``, ``openai-responses``, ``anthropic``, ``gemini`` or ``bedrock``. Raises
    :class:`InvalidValueError` that begins with the place of what is wrong.
    """
    form = form_of(provider)
    fields = as_object(data, "the request")
    messages, known = form.parse(fields)
    tools = form.tools.parse(fields.get(form.tools.key))
    if tools and form.tools.render(tools) == fields[form.tools.key]:
        known.add(form.tools.key)
    # Each under its own name, so that an error says where in the request it is.
    rest = {key: storable(value, str(key)) for key, value in fields.items() if key not in known}
    return Request(messages=tuple(messages), provider=provider, tools=tools, rest=rest)


def render_request(request: Request, provider: str | None = None) -> dict[str, Any]:
    """The body of the request for ``provider``; the same one that it came from by default.

    For the same provider nothing is lost, and nothing added, as long as the messages and tools are as they came. For
    another one :func:`losses` says what is left out; ``rest`` is, as options have other names and meanings there.
    """
    return _rendered(request, request.provider if provider is None else provider, None)


def losses(request: Request, provider: str | None = None) -> list[Loss]:
    """What :func:`render_request` leaves out for that provider, in the order of the request."""
    target = request.provider if provider is None else provider
    found: list[Loss] = []
    _rendered(request, target, found)
    return found


def _rendered(request: Request, provider: str, found: list[Loss] | None) -> dict[str, Any]:
    form = form_of(provider)
    if provider == request.provider:
        notes = None if found is None else Notes()
        written: dict[str, Any] = copied(request.rest) | form.render(list(request.messages), notes)
        _add_own_tools(request, form, written)
        if not _has_turns(request):
            _leave_empty(request, form, written)
        if notes is not None and found is not None:
            found += _sorted(notes, request, form)
        return written
    pairs = paired(request.messages)
    notes = None if found is None else Notes(pairs.indices)
    written = form.render(pairs.messages, notes)
    tools = request.tools or (tools_of_calls(pairs.messages) if form.needs_tools else ())
    if tools:
        written[form.tools.key] = copied(form.tools.render(tools))
    if notes is not None and found is not None:
        notes.losses += pairs.losses
        found += _sorted(notes, request, form)
        found += form_of(request.provider).lost_rest(request.rest, form)
    return written


def _has_turns(request: Request) -> bool:
    return any(not isinstance(message, SystemMessage) for message in request.messages)


def _leave_empty(request: Request, form: ProviderForm, written: dict[str, Any]) -> None:
    """Where nobody says anything, the key of the messages is as it was: absent, or an empty list."""
    if form.main in request.rest:
        written[form.main] = copied(request.rest[form.main])
    elif written[form.main] in ([], form.nothing) and any(request.rest.get(key) is not None for key in form.goes_on):
        del written[form.main]


def _add_own_tools(request: Request, form: ProviderForm, written: dict[str, Any]) -> None:
    key = form.tools.key
    beside = request.rest.get(key)
    tools = request.tools
    if not tools and beside is None and form.needs_tools:
        tools = tools_of_calls(request.messages)
    if form.tools.parse(beside) == tools:
        return  # there is nothing to add to what stands there
    if tools or beside:
        written[key] = copied(form.tools.render(tools, beside))


def _sorted(notes: Notes, request: Request, form: ProviderForm) -> list[Loss]:
    """All that was noted, and what the originals say that could not be sent."""
    for index, message in enumerate(request.messages):
        native = message.native
        if native is not None and native.data is not None and index not in notes.kept:
            notes.losses += form.lost_native(index, native)
    return sorted(notes.losses, key=lambda loss: _order(loss.place))


def _order(place: str) -> int:
    return int(place[len("messages[") : place.index("]")])


def _all_of(values: object, kinds: tuple[type, ...], what: str) -> tuple[Any, ...]:
    if not isinstance(values, Sequence) or isinstance(values, (str, bytes)):
        raise InvalidValueError(f"{what} must be a sequence, not {type(values).__name__}")
    for index, value in enumerate(values):
        if not isinstance(value, kinds):
            names = " or ".join(kind.__name__ for kind in kinds)
            raise InvalidValueError(f"{what}[{index}] must be {names}, not {type(value).__name__}")
    return tuple(values)
