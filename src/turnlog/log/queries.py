"""``EventQuery``: recall over everything said in a session (S-1)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import force_setattr

from turnlog.errors import InvalidValueError
from turnlog.log.event_filter import EventFilter, Match
from turnlog.log.events import EventType, SessionEvent, as_utc
from turnlog.log.messages import MessageType
from turnlog.log.windows import Window, check_count

T = TypeVar("T")

MOST_TERMS: Final = 20
LONGEST_TERM: Final = 200
DEFAULT_PAGE_SIZE: Final = 10


class EventQuery(Struct, frozen=True, kw_only=True):
    """A literal search, oldest first, one page at a time.

    1 to 20 ``terms`` of at most 200 characters, or none when ``since``, ``until`` or a type is set. Terms are
    case-insensitive literals: nothing in them is an operator. Only messages have text to be found, and only they are
    looked at unless ``event_types`` names others; then, without terms and ``message_types``, those are given by time.
    Covered events are found, boundaries never, the events of a summary only with ``include_summaries``. ``after`` is a
    cursor: the position behind which the page begins.
    """

    terms: Sequence[str] = ()
    match: Match = Match.ANY
    since: datetime | None = None
    until: datetime | None = None
    message_types: Collection[MessageType] = frozenset()
    event_types: Collection[EventType] = frozenset()
    include_summaries: bool = False
    page: int = 0
    page_size: int = DEFAULT_PAGE_SIZE
    after: int | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "terms", _checked_terms(self.terms))
        force_setattr(self, "message_types", _frozen(self.message_types, MessageType, "message_types"))
        force_setattr(self, "event_types", _frozen(self.event_types, EventType, "event_types"))
        if EventType.COMPACTION in self.event_types:
            raise InvalidValueError("a query never finds boundaries: read them with EventFilter(event_types=…)")
        for name in ("since", "until"):
            if getattr(self, name) is not None:
                force_setattr(self, name, as_utc(getattr(self, name), name))
        check_count("page", self.page, least=0)
        check_count("page_size", self.page_size, least=1)
        if self.after is not None and self.page:
            raise InvalidValueError("page and after exclude each other: after is the cursor of the next page")
        if not (self.terms or self.since or self.until or self.message_types or self.event_types):
            raise InvalidValueError("a query needs a term, a time, or a type")
        self.as_filter()

    @classmethod
    def keyword(cls, text: str) -> EventQuery:
        """The first page of what contains ``text``."""
        return cls(terms=(text,))

    def as_filter(self) -> EventFilter:
        """The read over the log that answers this query."""
        return EventFilter(
            event_types=self.event_types or {EventType.MESSAGE},
            message_types=self.message_types,
            exclude_synthetic=not self.include_summaries,
            keywords=self.terms,
            match=self.match,
            since=self.since,
            until=self.until,
            after=self.after,
            window=Window.page(self.page, self.page_size),
        )


class SearchPage(Struct, frozen=True):
    """One page of hits, oldest first. ``cursor`` is ``after=`` of the next page, None when this page was not full."""

    events: tuple[SessionEvent, ...]
    cursor: int | None


def search_page(query: EventQuery, events: Sequence[SessionEvent]) -> SearchPage:
    """The page that these hits make."""
    full = len(events) == query.page_size
    return SearchPage(tuple(events), events[-1].position if full else None)


def _checked_terms(terms: object) -> tuple[str, ...]:
    if isinstance(terms, (str, bytes)) or not isinstance(terms, Collection):
        raise InvalidValueError(f"terms must be a list of strings, not {terms!a}")
    if len(terms) > MOST_TERMS:
        raise InvalidValueError(f"a query has at most {MOST_TERMS} terms, not {len(terms)}")
    checked: list[str] = []
    for term in terms:
        if not isinstance(term, str) or not term.strip() or len(term) > LONGEST_TERM:
            raise InvalidValueError(f"a term is 1 to {LONGEST_TERM} characters that are not all blank: {term!a:.60}")
        checked.append(term)
    return tuple(checked)


def _frozen(types: object, kind: type[T], what: str) -> frozenset[T]:
    if isinstance(types, (str, bytes)) or not isinstance(types, Collection):
        raise InvalidValueError(f"{what} must be a set of {kind.__name__}, not {types!a:.60}")
    for each in types:
        if not isinstance(each, kind):
            raise InvalidValueError(f"an element of {what} must be a {kind.__name__}, not {each!a:.60}")
    return frozenset(each for each in types if isinstance(each, kind))
