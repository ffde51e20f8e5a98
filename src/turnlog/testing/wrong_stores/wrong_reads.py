"""Readings that are wrong in one respect: a criterion, a window, a view."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

from turnlog.log.event_filter import ANY_BRANCH, EventFilter, Match
from turnlog.log.events import EventMetadata, SessionEvent
from turnlog.log.messages import UserMessage
from turnlog.log.search_text import search_text
from turnlog.log.turns import turn_starts
from turnlog.log.view import positions_of, read_boundary, segments
from turnlog.log.windows import Window

Log: TypeAlias = Sequence[SessionEvent]
Events: TypeAlias = list[SessionEvent]
Keep: TypeAlias = Callable[[SessionEvent], bool]
Find: TypeAlias = Callable[[str, str], bool]

LARGEST_INTEGER = 2**63 - 1
MILLISECOND = 1_000


def like(pattern: str, text: object) -> bool:
    """SQL's LIKE: ``%`` stands for any text, ``_`` for any character."""
    wildcards = re.escape(pattern).replace("%", ".*").replace("_", ".")
    return isinstance(text, str) and re.fullmatch(wildcards, text, re.DOTALL) is not None


def read(filter_: EventFilter, log: Log, *, keep: Keep | None = None, starts: Sequence[bool] | None = None) -> Events:
    """The reference reading, with another test of an event or other turn starts."""
    keep = filter_.matches if keep is None else keep
    view = EventFilter(active_view=True).apply(log) if filter_.active_view else list(log)
    told = turn_starts(log) if starts is None else starts
    starting = {event.id for event, is_start in zip(log, told, strict=True) if is_start}
    if filter_.active_view:
        starting |= {event.id for event in view if event.is_shadow_prompt}
    return windowed(filter_.window, view, [index for index, event in enumerate(view) if keep(event)], starting)


def windowed(window: Window, view: Log, matched: list[int], starting: set[str]) -> Events:
    """The window of the events of ``view`` at the places ``matched``."""
    if window.size is not None:
        matched = matched[window.number * window.size :][: window.size]
    elif window.newest is not None and window.newest < len(matched):
        oldest = matched[-window.newest]
        start = next((index for index in range(oldest, -1, -1) if view[index].id in starting), oldest)
        if window.whole_turns and start in matched:
            oldest = start
        matched = [index for index in matched if index >= oldest]
    return [view[index] for index in matched]


def with_text(find: Find) -> Callable[[EventFilter, Log], Events]:
    """Keywords found in another way."""

    def answer(filter_: EventFilter, log: Log) -> Events:
        others = filter_.replace(keyword=None, keywords=())

        def keep(event: SessionEvent) -> bool:
            if not others.matches(event) or (filter_.messages_only and event.message is None):
                return False
            text = search_text(event.message) if event.message else ""
            found = [find(term, text) for term in filter_.keywords]
            wanted = (any(found) if filter_.match is Match.ANY else all(found)) if found else True
            return wanted and (filter_.keyword is None or find(filter_.keyword, text))

        return read(filter_, log, keep=keep)

    return answer


def _ascii_lower(text: str) -> str:
    return "".join(character.lower() if character.isascii() else character for character in text)


like_keywords = with_text(lambda term, text: like(f"%{term.casefold()}%", text.casefold()))
ascii_keywords = with_text(lambda term, text: _ascii_lower(term) in _ascii_lower(text))
first_line_keywords = with_text(lambda term, text: term.casefold() in text.casefold().partition("\n")[0])


def payload_keywords(filter_: EventFilter, log: Log) -> Events:
    """Keywords are looked for in payloads as well."""
    others = filter_.replace(keyword=None, keywords=(), pattern=None)

    def keep(event: SessionEvent) -> bool:
        if event.payload is None or not filter_.reads_text:
            return filter_.matches(event)
        return others.matches(event) and (filter_.keyword or "") in str(event.payload)

    return read(filter_, log, keep=keep)


def caseless_pattern(filter_: EventFilter, log: Log) -> Events:
    """A pattern is searched for in the folded text that keywords are looked for in."""
    if filter_.pattern is None:
        return filter_.apply(log)
    pattern = re.compile(filter_.pattern.pattern, filter_.pattern.flags | re.IGNORECASE)
    return filter_.replace(pattern=pattern).apply(log)


def in_milliseconds(filter_: EventFilter, log: Log) -> Events:
    """Times are compared as whole milliseconds."""

    def cut(moment: datetime | None) -> datetime | None:
        return moment and moment.replace(microsecond=moment.microsecond // MILLISECOND * MILLISECOND)

    coarse = filter_.replace(since=cut(filter_.since), until=cut(filter_.until))
    return read(filter_, log, keep=lambda event: coarse.matches(event.replace(timestamp=cut(event.timestamp))))


def between(filter_: EventFilter, log: Log) -> Events:
    """``after`` and ``before`` are taken as inclusive."""
    after = filter_.after - 1 if filter_.after else filter_.after
    before = filter_.before if filter_.before is None else filter_.before + 1
    return filter_.replace(after=after, before=before).apply(log)


def branch_prefix(filter_: EventFilter, log: Log) -> Events:
    """A branch sees every branch whose name its own begins with."""
    branch = filter_.branch
    if not isinstance(branch, str):
        return filter_.apply(log)
    others = filter_.replace(branch=ANY_BRANCH)
    return read(filter_, log, keep=lambda event: others.matches(event) and branch.startswith(event.branch or ""))


def any_root(filter_: EventFilter, log: Log) -> Events:
    """``branch=None`` is taken as no criterion."""
    return filter_.replace(branch=ANY_BRANCH if filter_.branch is None else filter_.branch).apply(log)


def type_prefix(filter_: EventFilter, log: Log) -> Events:
    """An event type is found by the beginning of its name."""
    others, names = filter_.replace(event_types=()), tuple(kind.name for kind in filter_.event_types)
    return read(filter_, log, keep=lambda e: others.matches(e) and (not names or e.type.name.startswith(names)))


def own_types_too(filter_: EventFilter, log: Log) -> Events:
    """``message_types`` drops messages of other roles alone."""
    others, kinds = filter_.replace(message_types=()), filter_.message_types

    def keep(event: SessionEvent) -> bool:
        return others.matches(event) and (not kinds or event.message is None or event.message.type in kinds)

    return read(filter_, log, keep=keep)


def exact_window(filter_: EventFilter, log: Log) -> Events:
    """The newest n events, wherever in a turn they begin."""
    newest = filter_.window.newest
    return (filter_ if newest is None else filter_.replace(last=newest, whole_turns=False)).apply(log)


def always_whole(filter_: EventFilter, log: Log) -> Events:
    """``whole_turns`` is not looked at."""
    newest = filter_.window.newest
    return (filter_ if newest is None else filter_.replace(last=newest)).apply(log)


def forced_start(filter_: EventFilter, log: Log) -> Events:
    """A window reaches back to the newest turn start that matches, in whatever turn, or to the oldest match."""
    newest, matched = filter_.window.newest, filter_.replace(window=Window.ALL).apply(log)
    if newest is None or not filter_.window.whole_turns or newest >= len(matched):
        return filter_.apply(log)
    starting = {event.id for event, is_start in zip(log, turn_starts(log), strict=True) if is_start}
    starting |= {event.id for event in matched if event.is_shadow_prompt and filter_.active_view}
    oldest = len(matched) - newest
    return matched[next((index for index in range(oldest, -1, -1) if matched[index].id in starting), 0) :]


def every_user_message(filter_: EventFilter, log: Log) -> Events:
    """Every user message starts a turn: sub-agents', and each of a run's."""
    starts = [isinstance(event.message, UserMessage) and not event.is_synthetic for event in log]
    return read(filter_, log, starts=starts)


def shadow_starts(filter_: EventFilter, log: Log) -> Events:
    """A shadow prompt starts a turn of the log."""
    starts = [start or event.is_shadow_prompt for event, start in zip(log, turn_starts(log), strict=True)]
    return read(filter_, log, starts=starts)


def halved_summaries(filter_: EventFilter, log: Log) -> Events:
    """A shadow prompt starts no turn of the view."""
    view = EventFilter(active_view=True).apply(log) if filter_.active_view else list(log)
    starting = {event.id for event, is_start in zip(log, turn_starts(log), strict=True) if is_start}
    return windowed(filter_.window, view, [n for n, event in enumerate(view) if filter_.matches(event)], starting)


def starts_of_the_view(filter_: EventFilter, log: Log) -> Events:
    """Turn starts are told from the view, as if nothing had been said before it."""
    if not filter_.active_view:
        return filter_.apply(log)
    view = EventFilter(active_view=True).apply(log)
    starts = [start or event.is_shadow_prompt for event, start in zip(view, turn_starts(view), strict=True)]
    return read(filter_.replace(active_view=False), view, starts=starts)


def newest_pages(filter_: EventFilter, log: Log) -> Events:
    """Page 0 is the newest."""
    size, number = filter_.window.size, filter_.window.number
    if size is None:
        return filter_.apply(log)
    matched = filter_.replace(window=Window.ALL).apply(log)[::-1]
    return matched[number * size :][:size][::-1]


def small_integers(filter_: EventFilter, log: Log) -> Events:
    """A window goes to the engine as it is, whose integers have 64 bits."""
    window = filter_.window
    if max(window.newest or 0, window.number * (window.size or 0), window.size or 0) > LARGEST_INTEGER:
        raise OverflowError("Python int too large to convert to SQLite INTEGER")
    return filter_.apply(log)


def first_boundary(filter_: EventFilter, log: Log) -> Events:
    """The view is that of the oldest boundary, grown by everything since."""
    first = next((event for event in log if event.is_boundary), None)
    if first is None or not filter_.active_view:
        return filter_.apply(log)
    named = segments(read_boundary(first.payload, first.position or 0), len(log))
    view = [log[position - 1] for position in positions_of(named) if not log[position - 1].is_boundary]
    return read(filter_.replace(active_view=False), view)


def with_boundary(filter_: EventFilter, log: Log) -> Events:
    """The view holds the boundary that names it, between what it names and what came later."""
    view = EventFilter(active_view=True).apply(log)
    newest = next((event for event in reversed(log) if event.is_boundary), None)
    if newest is None or not filter_.active_view:
        return filter_.apply(log)
    end = (newest.payload or {})["end"]
    named = [event for event in view if (event.position or 0) <= end]
    return read(filter_.replace(active_view=False), [*named, newest, *view[len(named) :]])


def view_in_log_order(filter_: EventFilter, log: Log) -> Events:
    """The view's events come by position."""
    if not filter_.active_view:
        return filter_.apply(log)
    view = sorted(EventFilter(active_view=True).apply(log), key=lambda event: event.position or 0)
    return read(filter_.replace(active_view=False), view)


def messages_of_the_view(filter_: EventFilter, log: Log) -> Events:
    """Behind a boundary the view holds messages alone."""
    is_bounded = filter_.active_view and any(event.is_boundary for event in log)
    return [event for event in filter_.apply(log) if event.is_message or not is_bounded]


def empty_without_boundary(filter_: EventFilter, log: Log) -> Events:
    """There is no view before the first boundary."""
    if filter_.active_view and not any(event.is_boundary for event in log):
        return []
    return filter_.apply(log)


def few_ranges(filter_: EventFilter, log: Log) -> Events:
    """A view is read by a condition for each of its ranges."""
    newest = next((event for event in reversed(log) if event.is_boundary), None)
    if filter_.active_view and newest is not None and len((newest.payload or {})["view"]) > 500:
        raise RecursionError("Expression tree is too large (maximum depth 1000)")
    return filter_.apply(log)


def criteria_first(filter_: EventFilter, log: Log) -> Events:
    """Criteria are applied to the log, and only then the view is looked for in what is left."""
    if not filter_.active_view or filter_.window != Window.ALL:
        return filter_.apply(log)
    kept = [event for event in log if filter_.matches(event)]
    return EventFilter(active_view=True).apply(kept) if kept else []


def without_covered(filter_: EventFilter, log: Log) -> Events:
    """What a boundary covers cannot be read any more, nor be found."""
    seen = {event.id for event in EventFilter(active_view=True).apply(log)}
    return [event for event in filter_.apply(log) if event.id in seen or event.is_boundary]


def root_summaries(filter_: EventFilter, log: Log) -> Events:
    """Summaries are looked for on the root branch alone."""
    return [event for event in filter_.apply(log) if not (filter_.active_view and event.is_synthetic and event.branch)]


def without_runs(filter_: EventFilter, log: Log) -> Events:
    """Run ids are not looked at: each user message of a run starts a turn."""
    plain = [
        event.replace(metadata={k: v for k, v in event.metadata.items() if k != EventMetadata.RUN_ID}) for event in log
    ]
    return read(filter_, log, starts=turn_starts(plain))


#: For changes that are one expression.
TICK = timedelta(microseconds=1)
