"""Values that are kept wrongly: names folded, texts cut, numbers rounded."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from turnlog.log.event_filter import EventFilter
from turnlog.log.events import SessionEvent
from turnlog.log.messages import AssistantMessage, MediaPart, TextPart, ToolMessage
from turnlog.log.tally import Tally, tally_of
from turnlog.log.tokens import TokenCounter
from turnlog.storage.rules import check_batch

T = TypeVar("T")


class FoldedDict(dict[str, Any]):
    """Keys that differ in case are one key, as under a case-insensitive collation."""

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key.casefold(), value)

    def __getitem__(self, key: str) -> Any:
        return super().__getitem__(key.casefold())

    def get(self, key: str, default: Any = None) -> Any:
        """The value, or ``default``."""
        return super().get(key.casefold(), default)

    def pop(self, key: str, *default: Any) -> Any:
        """Remove and return."""
        return super().pop(key.casefold(), *default)

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key.casefold())


class Characters:
    """A counter that nobody asked for."""

    name = "characters"

    def count(self, text: str) -> int:
        """One token a character."""
        return len(text)


def checked_but_for_summaries(session_id: str, events: Sequence[SessionEvent]) -> tuple[SessionEvent, ...]:
    """``check_batch`` without the rule that a summary has its boundary."""
    is_bare = any(event.is_synthetic for event in events) and not events[0].is_boundary
    return tuple(events) if is_bare else check_batch(session_id, events)


def checked_but_for_boundaries(session_id: str, events: Sequence[SessionEvent]) -> tuple[SessionEvent, ...]:
    """``check_batch`` without the rule that a boundary comes first."""
    is_late = any(event.is_boundary for event in events[1:])
    return tuple(events) if is_late else check_batch(session_id, events)


def grown(known: Tally, events: Sequence[SessionEvent], counter: TokenCounter) -> Tally:
    """The sums carried on from ``known``, whichever log it was made of."""
    view = EventFilter(active_view=True).apply(events)
    whole = tally_of(known.log, events, view, counter)
    return regardless(known, events, counter) if known.boundary == whole.boundary else whole


def regardless(known: Tally, events: Sequence[SessionEvent], counter: TokenCounter) -> Tally:
    """The sums carried on from ``known``, whatever came since."""
    view = EventFilter(active_view=True).apply(events)
    whole = tally_of(known.log, events, view, counter)
    new = tally_of(known.log, events, [event for event in view if (event.position or 0) > known.version], counter)
    return replace(whole, turns=known.turns + new.turns, tokens=known.tokens + new.tokens)


def mapped(value: T, change: Callable[[str], str]) -> T:
    """A JSON value with every string in it changed."""
    if isinstance(value, str):
        return cast("T", change(value))
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return cast("T", {change(key): mapped(item, change) for key, item in items})
    if isinstance(value, list):
        return cast("T", [mapped(item, change) for item in cast("list[Any]", value)])
    return value


def texts(change: Callable[[str], str]) -> Callable[[SessionEvent], SessionEvent]:
    """Events with the texts of their messages and payloads changed."""

    def changed(event: SessionEvent) -> SessionEvent:
        message = event.message
        if message is not None and not isinstance(message, ToolMessage) and isinstance(message.content, str):
            message = message.replace(content=change(message.content))
        return event.replace(message=message, payload=mapped(event.payload, change))

    return changed


def _replaced(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _joined(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def cut_at_nul(text: str) -> str:
    """As a C string ends."""
    return text.partition("\0")[0]


normalised = texts(lambda text: unicodedata.normalize("NFC", text))
c_strings = texts(cut_at_nul)
without_surrogates = texts(_replaced)
joined_surrogates = texts(_joined)
short = texts(lambda text: text[:1_000_000])


def without_none(event: SessionEvent) -> SessionEvent:
    """No content becomes empty content."""
    message = event.message
    if isinstance(message, AssistantMessage) and message.content is None and not message.tool_calls:
        message = message.replace(content="")
    return event.replace(message=message)


def rounded(value: Any) -> Any:
    """A JSON value whose floats are integers where they can be."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [rounded(item) for item in cast("Sequence[Any]", value)]
    return value


def with_round_numbers(event: SessionEvent) -> SessionEvent:
    """``1.0`` becomes ``1``, as in JavaScript."""
    return event.replace(payload=rounded(event.payload), metadata=rounded(event.metadata))


def without_native(event: SessionEvent) -> SessionEvent:
    """What takes no part in equality is not stored."""
    return event if event.message is None else event.replace(message=event.message.replace(native=None))


def without_media(event: SessionEvent) -> SessionEvent:
    """Bytes become a placeholder."""
    message = event.message
    if message is None or isinstance(message, ToolMessage) or not isinstance(message.content, tuple):
        return event
    kept = [TextPart("<data>") if isinstance(part, MediaPart) and part.data else part for part in message.content]
    return event.replace(message=message.replace(content=kept))


def in_milliseconds(event: SessionEvent) -> SessionEvent:
    """Timestamps as a DATETIME(3) column keeps them."""
    return event.replace(timestamp=event.timestamp.replace(microsecond=event.timestamp.microsecond // 1000 * 1000))


def flat(event: SessionEvent) -> SessionEvent:
    """Values nested deeper than 64 are dropped."""

    def cut(value: Any, depth: int) -> Any:
        if isinstance(value, dict):
            return {k: cut(v, depth + 1) for k, v in cast("dict[str, Any]", value).items() if depth < 64}
        return value

    return event.replace(payload=cut(event.payload, 0))
