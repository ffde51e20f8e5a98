"""Hypothesis strategies for everything a log can hold, and for everything that can be asked of it.

What they make is valid: a store must accept it. They need the package ``hypothesis``, imported when one of them is
first used. Texts, times and branches come from small vocabularies, so that a filter and a log have much in common.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from turnlog.log.event_filter import ANY_BRANCH, EventFilter, Match
from turnlog.log.events import EventType, SessionEvent
from turnlog.log.messages import MessageType
from turnlog.log.queries import EventQuery
from turnlog.log.windows import Window
from turnlog.testing.deferred import SearchStrategy, st
from turnlog.testing.factories import SESSION_ID
from turnlog.testing.generated_logs import draw_batches
from turnlog.testing.strategies_values import (
    BRANCHES,
    OWN_TYPES,
    PATTERNS,
    RUN_IDS,
    WORDS,
    any_texts,
    branches,
    contents,
    events,
    json_objects,
    json_values,
    messages,
    names,
    own_types,
    parts,
    texts,
    times,
)

__all__ = [
    "BRANCHES",
    "OWN_TYPES",
    "PATTERNS",
    "RUN_IDS",
    "WORDS",
    "any_texts",
    "batches",
    "branches",
    "contents",
    "events",
    "filters",
    "json_objects",
    "json_values",
    "keywords",
    "logs",
    "messages",
    "names",
    "own_types",
    "parts",
    "queries",
    "stored",
    "texts",
    "times",
    "windows",
]

TOO_MANY: Final = 10**18


def batches(session_id: str = SESSION_ID, *, max_batches: int = 20) -> SearchStrategy[list[list[SessionEvent]]]:
    """A whole log as the batches that are appended one after another to an empty session, without positions.

    It holds turns on a base branch that is root or another, user messages of one run in a row, sub-agents on branches,
    parallel calls answered together, apart, late or never, events of own types, a preamble, boundaries of every kind at
    any place (with a summary or without, pinned events, holes, ranges out of order), and times that stand still or run
    back.
    """
    return st.composite(draw_batches)(session_id, max_batches)


def logs(session_id: str = SESSION_ID, *, max_batches: int = 20) -> SearchStrategy[list[SessionEvent]]:
    """The log that :func:`batches` give, with positions: what a store holds, and what ``EventFilter.apply`` takes."""
    return batches(session_id, max_batches=max_batches).map(stored)


def stored(log: Sequence[Sequence[SessionEvent]]) -> list[SessionEvent]:
    """The events of these batches with the positions that a store gives them."""
    flat = (event for batch in log for event in batch)
    return [event.replace(position=position) for position, event in enumerate(flat, 1)]


def windows() -> SearchStrategy[Window]:
    """Everything, the newest n with and without whole turns, and pages; figures near the size of a log, and huge."""
    few = st.integers(1, 12) | st.just(TOO_MANY)
    return st.one_of(
        st.just(Window.ALL),
        st.builds(Window.last, few, st.booleans()),
        st.builds(Window.page, st.integers(0, 4) | st.just(TOO_MANY), few),
    )


def keywords() -> SearchStrategy[str]:
    """A keyword in some case, or a piece of one, or something blank, which restricts nothing."""
    return st.builds(_changed, st.sampled_from((*WORDS, "look", "key", " ")), st.sampled_from(_CHANGES))


def filters() -> SearchStrategy[EventFilter]:
    """A filter with any set of criteria, each of them as likely to be set as not."""
    return st.builds(_filter, st.fixed_dictionaries({}, optional=_criteria()))


def queries() -> SearchStrategy[EventQuery]:
    """A literal search with terms, or with times or types alone (S-1)."""
    terms = st.lists(keywords().filter(str.strip), max_size=3).map(tuple)
    optional: dict[str, SearchStrategy[Any]] = {
        "match": st.sampled_from(Match),
        "since": times(),
        "until": times(),
        "message_types": st.frozensets(st.sampled_from(MessageType)),
        "event_types": st.frozensets(st.sampled_from((EventType.MESSAGE, *OWN_TYPES))),
        "include_summaries": st.booleans(),
        "after": st.integers(0, 30),
        "page": st.integers(0, 3) | st.just(TOO_MANY),
        "page_size": st.integers(1, 5),
    }
    return st.builds(_query, st.fixed_dictionaries({"terms": terms}, optional=optional))


def _tail(word: str) -> str:
    return word[1:] or word


_CHANGES: Final[tuple[Callable[[str], str], ...]] = (str.upper, str.lower, str.casefold, str.title, _tail)


def _changed(word: str, change: Callable[[str], str]) -> str:
    return change(word)


def _criteria() -> dict[str, SearchStrategy[Any]]:
    return {
        "active_view": st.booleans(),
        "message_types": st.frozensets(st.sampled_from(MessageType)),
        "event_types": st.frozensets(st.sampled_from((EventType.MESSAGE, EventType.COMPACTION, *OWN_TYPES))),
        "exclude_synthetic": st.booleans(),
        "since": times(),
        "until": times(),
        "after": st.integers(0, 30),
        "before": st.integers(0, 30),
        "keyword": keywords(),
        "keywords": st.lists(keywords(), max_size=3),
        "match": st.sampled_from(Match),
        "pattern": st.sampled_from(PATTERNS),
        "branch": st.sampled_from((ANY_BRANCH, None, *BRANCHES)),
        "window": windows(),
    }


def _filter(criteria: dict[str, Any]) -> EventFilter:
    return EventFilter(**_in_order(criteria))


def _query(fields: dict[str, Any]) -> EventQuery:
    if "after" in fields:
        fields = {name: value for name, value in fields.items() if name != "page"}
    if not (
        fields["terms"]
        or fields.keys() & {"since", "until"}
        or fields.get("message_types")
        or fields.get("event_types")
    ):
        fields = fields | {"terms": ("x",)}
    return EventQuery(**_in_order(fields))


def _in_order(fields: dict[str, Any]) -> dict[str, Any]:
    """``since`` and ``until`` changed round where they are drawn the wrong way."""
    since, until = fields.get("since"), fields.get("until")
    if since is not None and until is not None and since > until:
        return fields | {"since": until, "until": since}
    return fields
