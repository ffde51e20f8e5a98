"""``EventFilter``: what a read returns (F-1 to F-9)."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum
from typing import Any, Final, TypeAlias, cast

from turnlog.errors import InvalidValueError
from turnlog.log.event_filter_apply import apply_filter
from turnlog.log.events import EventType, SessionEvent, as_utc
from turnlog.log.messages import MessageType
from turnlog.log.names import branch_chain, check_branch
from turnlog.log.search_text import search_text
from turnlog.log.windows import Window, check_count


class Match(StrEnum):
    """Whether one of several keywords is enough."""

    ANY = "any"
    ALL = "all"


class AnyBranch(Enum):
    """The type of :data:`ANY_BRANCH`, which restricts nothing (None means root)."""

    ANY_BRANCH = "any"

    def __repr__(self) -> str:
        return "ANY_BRANCH"


ANY_BRANCH: Final = AnyBranch.ANY_BRANCH

Branch: TypeAlias = str | AnyBranch | None

_NO_TYPES: Final[frozenset[Any]] = frozenset()


@dataclass(frozen=True, init=False, slots=True)
class EventFilter:
    """A frozen, hashable selection: the view, then all criteria that are set, then the window (F-2).

    A criterion that is unset, or an empty set, restricts nothing. ``message_types``, ``keyword``, ``keywords`` and
    ``pattern`` keep message events only. A filter never changes the log.
    """

    active_view: bool
    message_types: frozenset[MessageType]
    event_types: frozenset[EventType]
    exclude_synthetic: bool
    since: datetime | None
    until: datetime | None
    after: int | None
    before: int | None
    keyword: str | None
    keywords: tuple[str, ...]
    match: Match
    pattern: re.Pattern[str] | None
    branch: Branch
    window: Window

    def __init__(  # noqa: PLR0913 - every criterion is a keyword argument of its own
        self,
        *,
        active_view: bool = False,
        message_types: Collection[MessageType] = _NO_TYPES,
        event_types: Collection[EventType] = _NO_TYPES,
        exclude_synthetic: bool = False,
        since: datetime | None = None,
        until: datetime | None = None,
        after: int | None = None,
        before: int | None = None,
        keyword: str | None = None,
        keywords: Sequence[str] = (),
        match: Match = Match.ANY,
        pattern: re.Pattern[str] | None = None,
        branch: Branch = ANY_BRANCH,
        window: Window = Window.ALL,
        last: int | None = None,
        whole_turns: bool | None = None,
        page: int | None = None,
        page_size: int | None = None,
    ) -> None:
        """Validate and normalise; ``last``, ``whole_turns``, ``page``, ``page_size`` are short for ``window`` (F-4)."""
        values: dict[str, Any] = {
            "active_view": _checked(active_view, bool, "active_view"),
            "message_types": _set_of(message_types, MessageType, "message_types"),
            "event_types": _set_of(event_types, EventType, "event_types"),
            "exclude_synthetic": _checked(exclude_synthetic, bool, "exclude_synthetic"),
            "since": None if since is None else as_utc(since, "since"),
            "until": None if until is None else as_utc(until, "until"),
            "after": None if after is None else check_count("after", after, least=0),
            "before": None if before is None else check_count("before", before, least=0),
            "keyword": _term(keyword),
            "keywords": _terms(keywords),
            "match": _checked(match, Match, "match"),
            "pattern": _pattern(pattern),
            "branch": branch if isinstance(branch, AnyBranch) else check_branch(branch),
            "window": _window(window, last, whole_turns, page, page_size),
        }
        if values["since"] is not None and values["until"] is not None and values["since"] > values["until"]:
            raise InvalidValueError(f"since {values['since']} is later than until {values['until']}")
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def all(cls) -> EventFilter:
        """Every event of the log, boundaries and covered events included."""
        return _ALL

    @classmethod
    def active(cls) -> EventFilter:
        """The message events of the active view."""
        return _ACTIVE

    @classmethod
    def last(cls, n: int, whole_turns: bool = True) -> EventFilter:  # noqa: FBT001, FBT002 - as in Window.last
        """The newest n events, extended back to a turn start (F-5)."""
        return cls(window=Window.last(n, whole_turns))

    @classmethod
    def real_only(cls) -> EventFilter:
        """Message events that no compaction wrote."""
        return cls(event_types={EventType.MESSAGE}, exclude_synthetic=True)

    @classmethod
    def keyword_search(cls, text: str, page: int = 0, page_size: int = 10) -> EventFilter:
        """One page of the message events that contain ``text``, oldest first."""
        return cls(keyword=text, window=Window.page(page, page_size))

    @classmethod
    def keywords_search(cls, terms: Sequence[str], match: Match = Match.ANY) -> EventFilter:
        """The message events that contain any, or all, of ``terms``."""
        return cls(keywords=terms, match=match)

    @classmethod
    def pattern_search(cls, pattern: re.Pattern[str]) -> EventFilter:
        """The message events in which ``pattern.search`` finds something. Never pass a pattern that a model wrote."""
        return cls(pattern=pattern)

    @classmethod
    def for_branch(cls, branch: str | None) -> EventFilter:
        """What an agent on ``branch`` sees: root, its ancestors and its own events; None is root alone (F-7)."""
        return cls(branch=branch)

    def replace(self, **changes: Any) -> EventFilter:
        """A changed copy, validated again; the window shorthands work here too."""
        if changes.keys() & {"last", "whole_turns", "page", "page_size"} and "window" not in changes:
            changes["window"] = Window.ALL
        return EventFilter(**{f.name: getattr(self, f.name) for f in dataclasses.fields(self)} | changes)

    def merge(self, other: EventFilter) -> EventFilter:
        """``other`` over this filter: what it sets replaces, what it leaves unset stays, the flags are OR-ed (F-8)."""
        changes: dict[str, Any] = {}
        for name, unset in _UNSET.items():
            value = getattr(other, name)
            if value != unset:
                changes[name] = value
        if other.keywords:
            changes |= {"keywords": other.keywords, "match": other.match}
        return self.replace(
            active_view=self.active_view or other.active_view,
            exclude_synthetic=self.exclude_synthetic or other.exclude_synthetic,
            **changes,
        )

    @property
    def messages_only(self) -> bool:
        """Whether a criterion is set that only message events can meet."""
        return bool(self.message_types or self.keyword or self.keywords or self.pattern)

    @property
    def reads_text(self) -> bool:
        """Whether a criterion is set that needs the text of each candidate."""
        return bool(self.keyword or self.keywords or self.pattern)

    def matches(self, event: SessionEvent) -> bool:
        """Whether ``event`` meets all criteria; view and window aside. ``after`` and ``before`` need its position."""
        return self.matches_place(event) and self.matches_kind(event) and self.matches_text(event)

    def matches_place(self, event: SessionEvent) -> bool:
        """The criteria on time and position."""
        if self.since is not None and event.timestamp < self.since:
            return False
        if self.until is not None and event.timestamp > self.until:
            return False
        position = event.position or 0
        if self.after is not None and position <= self.after:
            return False
        return self.before is None or position < self.before

    def matches_kind(self, event: SessionEvent) -> bool:
        """The criteria on types, the synthetic flag, and the branch."""
        if self.event_types and event.type not in self.event_types:
            return False
        if self.messages_only and event.message is None:
            return False
        if self.message_types and event.content.type not in self.message_types:
            return False
        if self.exclude_synthetic and event.is_synthetic:
            return False
        if self.branch is ANY_BRANCH or event.branch is None:
            return True
        return isinstance(self.branch, str) and event.branch in branch_chain(self.branch)

    def matches_text(self, event: SessionEvent) -> bool:
        """The criteria on text: case-folded literals, and the pattern (F-6)."""
        if not self.reads_text:
            return True
        if event.message is None:
            return False
        text = search_text(event.message)
        if self.pattern is not None and self.pattern.search(text) is None:
            return False
        if self.keyword is None and not self.keywords:
            return True
        folded = text.casefold()
        if self.keyword is not None and self.keyword.casefold() not in folded:
            return False
        if not self.keywords:
            return True
        found = (term.casefold() in folded for term in self.keywords)
        return any(found) if self.match is Match.ANY else all(found)

    def apply(self, events: Iterable[SessionEvent]) -> list[SessionEvent]:
        """The reference implementation over a whole log held as a list (F-9).

        Positions are the events' own, or 1, 2, 3… where all of them are None.
        """
        return apply_filter(self, list(events))


#: What an unset criterion looks like; ``keywords`` and ``match`` go together and are merged apart.
_UNSET: Final[dict[str, Any]] = {
    "message_types": frozenset(),
    "event_types": frozenset(),
    "since": None,
    "until": None,
    "after": None,
    "before": None,
    "keyword": None,
    "pattern": None,
    "branch": ANY_BRANCH,
    "window": Window.ALL,
}


def _checked(value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind):
        raise InvalidValueError(f"{what} must be a {kind.__name__}, not {value!a}")
    return value


def _set_of(values: object, kind: type, what: str) -> frozenset[Any]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Collection):
        raise InvalidValueError(f"{what} must be a set of {kind.__name__}, not {values!a}")
    for value in values:
        _checked(value, kind, f"an element of {what}")
    return frozenset(values)


def _term(term: object) -> str | None:
    if term is None:
        return None
    text: str = _checked(term, str, "a keyword")
    return text if text.strip() else None


def _terms(terms: object) -> tuple[str, ...]:
    if isinstance(terms, (str, bytes)) or not isinstance(terms, Collection):
        raise InvalidValueError(f"keywords must be a list of strings, not {terms!a}")
    return tuple(term for term in map(_term, terms) if term is not None)


def _pattern(pattern: object) -> re.Pattern[str] | None:
    if pattern is None:
        return None
    if isinstance(pattern, re.Pattern):
        compiled = cast("re.Pattern[str]", pattern)
        if isinstance(compiled.pattern, str):
            return compiled
    raise InvalidValueError(f"pattern must be a compiled re.Pattern over str, not {pattern!a}")


def _window(
    window: object,
    last: int | None,
    whole_turns: bool | None,  # noqa: FBT001 - private, one call
    page: int | None,
    page_size: int | None,
) -> Window:
    if not isinstance(window, Window):
        raise InvalidValueError(f"window must be a Window, not {window!a}")
    shorthands = (last, whole_turns, page, page_size)
    if shorthands == (None, None, None, None):
        return window
    if window != Window.ALL:
        raise InvalidValueError("give a window or its shorthands (last, whole_turns, page, page_size), not both")
    if last is not None:
        if page is not None or page_size is not None:
            raise InvalidValueError("last and page_size exclude each other: a window is a last or a page")
        return Window.last(last, True if whole_turns is None else whole_turns)
    if whole_turns is not None:
        raise InvalidValueError("whole_turns goes with last")
    if page_size is None:
        raise InvalidValueError("page needs page_size")
    return Window.page(0 if page is None else page, page_size)


_ALL = EventFilter()
_ACTIVE = EventFilter(active_view=True, event_types={EventType.MESSAGE})
