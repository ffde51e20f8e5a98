"""What a filter must give, written from the clauses alone: slow, and by other means than those of the code.

It works on positions and sets, looks backwards where the code carries a state forwards, and reads a boundary's payload
as the JSON that it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from turnlog.log.event_filter import EventFilter, Match
from turnlog.log.events import EventType, SessionEvent
from turnlog.log.messages import AssistantMessage, Content, Message, TextPart, ToolMessage


def expected(filter_: EventFilter, log: Sequence[SessionEvent]) -> list[int]:
    """The positions that the filter selects, in the order read (F-2): the view, the criteria, the window."""
    order = view_order(log) if filter_.active_view else list(range(1, len(log) + 1))
    starts = view_starts(log) if filter_.active_view else log_starts(log)
    matches = [position for position in order if meets(filter_, log[position - 1], position)]
    window = filter_.window
    if window.size is not None:
        return [each for place, each in enumerate(matches) if place // window.size == window.number]
    if window.newest is None or window.newest >= len(matches):
        return matches
    oldest = matches[len(matches) - window.newest]
    if window.whole_turns:
        earlier = [each for each in order[: order.index(oldest) + 1] if each in starts]
        if earlier and earlier[-1] in matches:
            oldest = earlier[-1]
    return matches[matches.index(oldest) :]


def log_starts(log: Sequence[SessionEvent]) -> set[int]:
    """V-5: the real user messages on the base branch that do not continue the opening before them."""
    real = [(place, each) for place, each in enumerate(log, 1) if each.type == EventType.MESSAGE and not made_up(each)]
    users = [(place, each) for place, each in real if role(each) == "user"]
    if not users:
        return set()
    base = users[0][1].branch
    on_base = [(place, each) for place, each in real if each.branch == base]
    starts: set[int] = set()
    for index, (place, each) in enumerate(on_base):
        if role(each) != "user":
            continue
        before = on_base[index - 1][1] if index else None
        continues = before is not None and role(before) == "user" and run(each) is not None and run(before) == run(each)
        if not continues:
            starts.add(place)
    return starts


def view_starts(log: Sequence[SessionEvent]) -> set[int]:
    """V-5: over the view a shadow prompt starts a turn too."""
    return log_starts(log) | {place for place, each in enumerate(log, 1) if made_up(each) and role(each) == "user"}


def view_order(log: Sequence[SessionEvent]) -> list[int]:
    """A-2: what the newest boundary names, in its order, then all behind its batch; without a boundary the log."""
    boundaries = [each for each in log if each.type == EventType.COMPACTION]
    if not boundaries:
        return list(range(1, len(log) + 1))
    payload = boundaries[-1].payload or {}
    named = [position for low, high in payload["view"] for position in range(low, high + 1)]
    return named + [position for position in range(1, len(log) + 1) if position > payload["end"]]


def meets(filter_: EventFilter, event: SessionEvent, position: int) -> bool:
    """F-1: every criterion that is set holds."""
    held = [
        not filter_.event_types or event.type in filter_.event_types,
        not filter_.message_types or (event.message is not None and event.message.type in filter_.message_types),
        not (filter_.exclude_synthetic and made_up(event)),
        filter_.since is None or filter_.since <= event.timestamp,
        filter_.until is None or event.timestamp <= filter_.until,
        filter_.after is None or filter_.after < position,
        filter_.before is None or position < filter_.before,
        sees(filter_, event.branch),
    ]
    return all(held) and says(filter_, event.message)


def sees(filter_: EventFilter, branch: str | None) -> bool:
    """F-7"""
    own = filter_.branch
    if branch is None or not (own is None or isinstance(own, str)):
        return True
    return own is not None and f"{own}.".startswith(f"{branch}.")


def says(filter_: EventFilter, message: Message | None) -> bool:
    """F-6"""
    terms = [filter_.keyword] if filter_.keyword else []
    if not (terms or filter_.keywords or filter_.pattern):
        return True
    if message is None:
        return False
    text = words(message)
    if filter_.pattern and not filter_.pattern.search(text):
        return False
    found = {term for term in (*terms, *filter_.keywords) if term.casefold() in text.casefold()}
    if not found.issuperset(terms):
        return False
    several = set(filter_.keywords)
    return not several or (found >= several if filter_.match is Match.ALL else bool(found & several))


def words(message: Message) -> str:
    """F-6: the text, then each call's name and arguments, then each result's text, joined by newlines."""
    pieces: list[str] = []
    if isinstance(message, ToolMessage):
        pieces = [joined(result.content) for result in message.results]
    else:
        pieces = [joined(message.content)]
    if isinstance(message, AssistantMessage):
        pieces += [piece for call in message.tool_calls for piece in (call.name, call.arguments)]
    return "\n".join(piece for piece in pieces if piece)


def joined(content: Content) -> str:
    """The text parts of a content."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part.text for part in content if isinstance(part, TextPart))


def made_up(event: SessionEvent) -> bool:
    """V-6: whether a compaction wrote it; the boundary itself is not synthetic."""
    return event.type == EventType.MESSAGE and event.metadata.get("turnlog.synthetic") is True


def role(event: SessionEvent) -> str:
    """The message's type, "" where there is no message."""
    return event.message.type.value if event.message is not None else ""


def run(event: SessionEvent) -> object:
    """The run id in the metadata."""
    return event.metadata.get("turnlog.run_id")
