"""From a prompt to the keyword arguments of an SDK's method, and from a provider's answer to a reply. Pure."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from turnlog.errors import InvalidReplyError, InvalidValueError
from turnlog.formats.arguments import arguments_object
from turnlog.formats.reply import ParsedReply
from turnlog.formats.request import Request, render_request
from turnlog.formats.text import is_blank
from turnlog.log.messages import Message, SystemMessage
from turnlog.models.protocol import Prompt, Reply
from turnlog.models.schemas import object_schema, schema_in_words

#: How providers say that a reply ended before the model had: at a bound, or by a filter.
_CUT_SHORT: Final = ("length", "content_filter", "max_output_tokens", "incomplete")
#: Options of the SDKs, which are no part of a request's body, and need not be JSON.
_SDK_OPTIONS: Final = frozenset({"extra_headers", "extra_query", "extra_body", "timeout"})


class ProviderSettings(Struct, frozen=True, kw_only=True):
    """What an adapter adds to each prompt.

    ``options`` are defaults by the provider's own names. ``native_output``: whether the API is asked for structured
    output, or the model in words.
    """

    provider: str
    model: str
    options: dict[str, Any]
    native_output: bool

    def options_for(self, prompt: Prompt) -> dict[str, Any]:
        """The options of a call: the prompt's replace the defaults one by one."""
        return self.options | prompt.options


def settings(provider: str, model: str, options: Mapping[str, Any] | None, *, native_output: bool) -> ProviderSettings:
    """Checked settings."""
    if not isinstance(model, str) or not model.strip():
        raise InvalidValueError(f"a model is named by its provider's name for it, not {model!r:.60}")
    return ProviderSettings(provider=provider, model=model, options=dict(options or {}), native_output=native_output)


def request_body(
    settings: ProviderSettings,
    prompt: Prompt,
    options: dict[str, Any],
    output_options: Callable[[dict[str, Any]], dict[str, Any]],
) -> dict[str, Any]:
    """The whole request, options of the SDK beside it. What the options say goes before what is made here.

    ``output_options`` gives the options that ask for an object by its schema.
    """
    messages: tuple[Message, ...] = prompt.messages
    schema = prompt.output_schema
    if schema is not None:
        root = object_schema(schema) if settings.native_output else None
        if root is None:
            messages = _instructed(messages, schema_in_words(schema))
        else:
            options = _merged(output_options(root), options)
    of_sdk = {key: value for key, value in options.items() if key in _SDK_OPTIONS}
    rest = {"model": settings.model} | {key: value for key, value in options.items() if key not in _SDK_OPTIONS}
    request = Request(messages=messages, provider=settings.provider, tools=prompt.tools, rest=rest)
    return render_request(request) | of_sdk


def arguments_of(method: Callable[..., Any], body: dict[str, Any]) -> dict[str, Any]:
    """The body as keyword arguments of an SDK's method; what it has no parameter for goes into ``extra_body``."""
    known = inspect.signature(method).parameters
    arguments = {key: value for key, value in body.items() if key in known}
    beyond = {key: value for key, value in body.items() if key not in known}
    if beyond:
        arguments["extra_body"] = beyond | dict(arguments.get("extra_body") or {})
    return arguments


def reply_of(parse: Callable[[Any], ParsedReply], data: Any) -> Reply:
    """The reply that a whole answer says; :class:`InvalidReplyError` where it is none."""
    try:
        parsed = parse(data)
    except InvalidValueError as error:
        raise InvalidReplyError(f"the provider's answer cannot be read: {error}") from error
    calls = parsed.message.tool_calls
    if parsed.finish_reason in _CUT_SHORT and calls and not _is_whole(calls[-1].arguments):
        raise cut_call(parsed.finish_reason)
    return Reply(
        message=parsed.message,
        usage=parsed.usage,
        model=parsed.model,
        finish_reason=parsed.finish_reason or "stop",
    )


def _is_whole(arguments: str) -> bool:
    """Whether nothing of the JSON is missing. Blank arguments are none elsewhere; here they have not come yet."""
    return not is_blank(arguments) and arguments_object(arguments) is not None


def _instructed(messages: tuple[Message, ...], instruction: SystemMessage) -> tuple[Message, ...]:
    """The instruction behind those that the messages begin with: many models take none further on."""
    first = next((at for at, message in enumerate(messages) if not isinstance(message, SystemMessage)), len(messages))
    return (*messages[:first], instruction, *messages[first:])


def _merged(made: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The options with what is made here; within an object that both have, key by key."""
    both = {key: made[key] | options[key] for key in made.keys() & options if isinstance(options[key], dict)}
    return made | options | both


def cut_off(why: str) -> InvalidReplyError:
    """The error for a stream that ended before the reply had."""
    return InvalidReplyError(f"the provider's stream ended before the reply had: {why}")


def cut_call(finish_reason: str) -> InvalidReplyError:
    """The error for a reply whose last call may lack a part of its arguments."""
    return InvalidReplyError(
        f"the reply was cut off in the middle of a tool call (it finished with {finish_reason!r:.60}):"
        " where that is a bound, give it more max_tokens"
    )
