"""Putting a prompt together from what is stored and what a request carries (H-3), as pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from turnlog.log.messages import AssistantMessage, Content, MediaPart, Message, SystemMessage, ToolMessage, UserMessage


class RequestParts(Struct, frozen=True):
    """A request's messages: what instructs, what lies behind, and the run of user messages or results at its end."""

    systems: tuple[SystemMessage, ...]
    before: tuple[Message, ...]
    trailing: tuple[Message, ...]


def parts_of(messages: Sequence[Message]) -> RequestParts:
    """Split a request; ``trailing`` is what is stored before the model is called, and may be empty."""
    systems = tuple(message for message in messages if isinstance(message, SystemMessage))
    others = tuple(message for message in messages if not isinstance(message, SystemMessage))
    start = len(others)
    if others and isinstance(others[-1], (UserMessage, ToolMessage)):
        kind = type(others[-1])
        while start and isinstance(others[start - 1], kind):
            start -= 1
    return RequestParts(systems, others[:start], others[start:])


def system_messages(stored: SystemMessage | None, requested: Sequence[SystemMessage]) -> tuple[SystemMessage, ...]:
    """The latest stored one, then the request's; exact duplicates once, and no blank one."""
    candidates = requested if stored is None else (stored, *requested)
    said = (message for message in candidates if message.text.strip() or _media(message))
    return tuple(dict.fromkeys(said))


def overlap(stored: Sequence[Message], before: Sequence[Message]) -> int:
    """How many messages at the end of ``stored`` are the same as at the end of ``before``, by content alone."""
    length = 0
    for mine, theirs in zip(reversed(stored), reversed(before), strict=False):
        if not is_same(mine, theirs):
            break
        length += 1
    return length


def is_same(first: Message, second: Message) -> bool:
    """Whether two messages say the same: role, joined text, media, calls and results.

    Reasoning, metadata and what a provider sent besides take no part: not every host hands them back.
    """
    return _said(first) == _said(second)


def carried_of(stored_before: int, stored_run: int, common: int, before: int) -> int | None:
    """How many of the stored messages before this run the request carries already; None: it brings its own history.

    ``stored_before`` and ``stored_run`` count the messages stored before this run and in it, ``common`` the overlap of
    all these with the ``before`` messages of the request that lie ahead of its trailing run.
    """
    reach = min(common - stored_run, stored_before)
    if reach <= 0:
        return 0
    return None if before > common else reach


def _said(message: Message) -> tuple[object, ...]:
    if isinstance(message, ToolMessage):
        return (message.type, tuple((result.id, result.text, _media_of(result.content)) for result in message.results))
    calls = tuple(message.tool_calls) if isinstance(message, AssistantMessage) else ()
    return (message.type, message.text, _media(message), calls)


def _media(message: Message) -> tuple[MediaPart, ...]:
    return tuple(part for part in message.parts if isinstance(part, MediaPart))


def _media_of(content: Content) -> tuple[MediaPart, ...]:
    if content is None or isinstance(content, str):
        return ()
    return tuple(part for part in content if isinstance(part, MediaPart))
