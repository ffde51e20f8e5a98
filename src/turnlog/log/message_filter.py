"""``MessageFilter``: which messages are stored at all (M-1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeGuard

from turnlog.errors import InvalidValueError
from turnlog.log.messages import AssistantMessage, MediaPart, Message, MessageType, ReasoningPart
from turnlog.log.search_text import contains_folded, search_text

MessagePredicate: TypeAlias = Callable[[Message], bool]


class MessageFilter:
    """A predicate on a message about to be stored; ``&``, ``|`` and ``~`` compose it, with any callable on either side.

    What it rejects is never written; the prompt is unaffected, and tool calls and results are stored whatever it says
    (M-2). A filter of your own replaces :meth:`skip_empty_messages`, the default: compose the two to keep it.
    """

    def __init__(self, predicate: MessagePredicate, name: str | None = None) -> None:
        _check_callable(predicate)
        self._predicate = predicate
        self._name = name or getattr(predicate, "__name__", type(predicate).__name__)

    def __call__(self, message: Message) -> bool:
        """Whether the message is stored."""
        return bool(self._predicate(message))

    def __and__(self, other: MessagePredicate) -> MessageFilter:
        second = as_message_filter(other)
        return MessageFilter(lambda message: self(message) and second(message), f"({self._name} & {second._name})")

    def __or__(self, other: MessagePredicate) -> MessageFilter:
        second = as_message_filter(other)
        return MessageFilter(lambda message: self(message) or second(message), f"({self._name} | {second._name})")

    def __rand__(self, other: MessagePredicate) -> MessageFilter:
        return as_message_filter(other) & self

    def __ror__(self, other: MessagePredicate) -> MessageFilter:
        return as_message_filter(other) | self

    def __invert__(self) -> MessageFilter:
        return MessageFilter(lambda message: not self(message), f"~{self._name}")

    def __repr__(self) -> str:
        return f"<MessageFilter {self._name}>"

    @classmethod
    def all(cls) -> MessageFilter:
        """Every message."""
        return cls(lambda _: True, "all")

    @classmethod
    def skip_empty_messages(cls) -> MessageFilter:
        """All but assistant messages without text, calls, media, and anything that their provider must get back."""
        return cls(_says_something, "skip_empty_messages")

    @classmethod
    def by_message_type(cls, *types: MessageType) -> MessageFilter:
        """The messages of these types, at least one of which must be given."""
        if not types or not all(isinstance(each, MessageType) for each in types):
            raise InvalidValueError(f"by_message_type needs one MessageType or more, not {types!r:.60}")
        wanted = frozenset(types)
        return cls(lambda message: message.type in wanted, f"by_message_type({', '.join(types)})")

    @classmethod
    def contains_text(cls, keyword: str) -> MessageFilter:
        """The messages whose ``search_text`` holds ``keyword``, whatever its case (F-6)."""
        if not isinstance(keyword, str) or not keyword.strip():
            raise InvalidValueError(f"contains_text needs a keyword that is not blank, not {keyword!r:.60}")
        folded = keyword.casefold()
        return cls(lambda message: contains_folded(search_text(message), folded), f"contains_text({keyword!r:.60})")


def as_message_filter(value: MessagePredicate) -> MessageFilter:
    """``value`` itself, or the filter that a callable makes."""
    return value if isinstance(value, MessageFilter) else MessageFilter(value)


#: Keys under which providers keep the blocks of a message; what we have no word for stands there.
_BLOCKS: Final = ("content", "parts", "output")


def _says_something(message: Message) -> bool:
    if not isinstance(message, AssistantMessage) or message.tool_calls or message.text.strip():
        return True
    for part in message.parts:
        if isinstance(part, MediaPart) or (isinstance(part, ReasoningPart) and (part.signature or part.data)):
            return True
    return message.native is not None and _has_blocks(message.native.data)


def _has_blocks(data: Any) -> bool:
    """Whether the original holds a block that is more than text."""
    lists: list[Any] = [data.get(key) for key in _BLOCKS] if _is_object(data) else [data]
    blocks = [block for each in lists if _is_array(each) for block in each]
    return any(_is_object(block) and block.get("type", "text") != "text" for block in blocks)


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_array(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _check_callable(value: object) -> None:
    if not callable(value):
        raise InvalidValueError(f"a message filter is made of a callable, not {type(value).__name__}")
