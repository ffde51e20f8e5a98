"""Putting a prompt together from what is stored and what a request carries (H-3), as pure functions."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from turnlog.log.messages import AssistantMessage, Content, MediaPart, Message, SystemMessage, ToolMessage, UserMessage


class RequestParts(Struct, frozen=True):
    """A request's messages: what instructs, what lies behind, and the run of user messages or results at its end."""

    systems: tuple[SystemMessage, ...]
    before: tuple[Message, ...]
    trailing: tuple[Message, ...]

    @property
    def is_behind_tools(self) -> bool:
        """Whether it ends with results: a reply may then say that there is nothing to add."""
        return bool(self.trailing) and isinstance(self.trailing[-1], ToolMessage)


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

    Reasoning, metadata, what a provider sent besides, and how a call's JSON is laid out take no part: not every host
    hands them back as they were.
    """
    return first == second or _said(first) == _said(second)


def carried_of(stored_before: int, stored_run: int, common: int, before: int) -> int | None:
    """How many of the stored messages before this run the request carries already; None: it brings its own history.

    ``stored_before`` and ``stored_run`` count the messages stored before this run and in it, ``common`` the overlap of
    all these with the ``before`` messages of the request that lie ahead of its trailing run.
    """
    reach = min(common - stored_run, stored_before)
    if reach <= 0:
        return 0
    return None if before > common else reach


def stored_before(stored: Sequence[Message], before: Sequence[Message], wanted: Sequence[Message]) -> int | None:
    """How much the run held before ``wanted``, if that is what it has stored last; None if it is new.

    ``wanted`` is what is to be stored of a request's end, ``before`` what the request holds ahead of that. A run that
    is gone on with ends in what is stored already, and so does a model call that is made again, where the replies to
    the first are stored behind it. It is new, however alike, where the request carries the whole run, or the reply asks
    for these results.
    """
    is_carried = overlap(stored, before) == len(stored)
    replies = () if is_carried else _replies_at_end(stored)
    if not wanted:
        return len(stored) - len(replies)
    if (first := _ends_with(stored, wanted)) is not None:
        return first
    if not replies or any(_answers(wanted, reply) for reply in replies):
        return None
    return _ends_with(stored[: -len(replies)], wanted)


def not_carried(run: Sequence[Message], before: Sequence[Message]) -> Sequence[Message]:
    """What of the run a request leaves out that ends ahead of its trailing messages like the run, or holds nothing.

    A loop with its own history off sends its last results alone. A request that holds other messages tells the turn
    in its own way.
    """
    left = len(run) - len(before)
    return run[:left] if left > 0 and overlap(run, before) == len(before) else ()


def _replies_at_end(stored: Sequence[Message]) -> Sequence[AssistantMessage]:
    replies: list[AssistantMessage] = []
    for message in reversed(stored):
        if not isinstance(message, AssistantMessage):
            break
        replies.append(message)
    return replies


def _ends_with(stored: Sequence[Message], wanted: Sequence[Message]) -> int | None:
    first = len(stored) - len(wanted)
    if first < 0 or not all(is_same(mine, theirs) for mine, theirs in zip(stored[first:], wanted, strict=True)):
        return None
    return first


def _answers(messages: Sequence[Message], reply: AssistantMessage) -> bool:
    asked = {call.id for call in reply.tool_calls}
    return any(result.id in asked for each in messages if isinstance(each, ToolMessage) for result in each.results)


def _said(message: Message) -> tuple[object, ...]:
    if isinstance(message, ToolMessage):
        return (message.type, tuple((result.id, result.text, _media_of(result.content)) for result in message.results))
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    asked = tuple((call.id, call.name, _laid_out(call.arguments)) for call in calls)
    return (message.type, message.text, _media(message), asked)


def _laid_out(arguments: str) -> str:
    """The arguments in one way of writing JSON; as they are where they are none."""
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments), order="sorted").decode()
    except (ValueError, RecursionError, OverflowError):
        return arguments


def _media(message: Message) -> tuple[MediaPart, ...]:
    return tuple(part for part in message.parts if isinstance(part, MediaPart))


def _media_of(content: Content) -> tuple[MediaPart, ...]:
    if content is None or isinstance(content, str):
        return ()
    return tuple(part for part in content if isinstance(part, MediaPart))
