"""Hypothesis strategies for the values in a log: texts, names, JSON, messages, single events.

Text is drawn from a small vocabulary, times from a few seconds, branches from one small tree, so that filters and logs
drawn apart have much in common.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any, Final

from turnlog.log.events import EventMetadata, EventType, SessionEvent
from turnlog.log.messages import (
    AssistantMessage,
    Content,
    MediaPart,
    Message,
    Native,
    Part,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolStatus,
    UserMessage,
)
from turnlog.testing.clocks import START
from turnlog.testing.deferred import SearchStrategy, st
from turnlog.testing.factories import PROGRESS, SESSION_ID

#: Words that case, wildcards, quotes and escapes trip over: B111, B115, B149, B150, B153.
WORDS: Final = (
    "alpha",
    "Beta",
    "Straße",
    "STRASSE",
    "İstanbul",
    "Σίσυφος",
    "100%",
    "a_b",
    "a*b",
    "don't",
    '"quoted"',
    "back\\slash",
    "@nasa",
    "中文",
    "👩‍👩‍👧",
    "e\u0301",
    "\u00e9",
    "\0",
    "\x10",
    "\ud83d",
    "\ude00",
    "x",
)
#: A small tree, and its traps: ``a`` is no ancestor of ``ab.c``; case, wildcards.
BRANCHES: Final = ("a", "a.b", "a.b.c", "ab", "ab.c", "A", "_", "%")
OWN_TYPES: Final = (PROGRESS, EventType.of("TEST.NOTE"))
RUN_IDS: Final = ("run-1", "run-2")
PATTERNS: Final = (re.compile("alpha|x"), re.compile("^.{0,6}$"), re.compile("(?i)strasse"), re.compile(r"\d+%"))
SECONDS: Final = 6


def texts() -> SearchStrategy[str]:
    """A few words of the vocabulary in a row, or none."""
    return st.lists(st.sampled_from((*WORDS, " ", "\n")), max_size=4).map("".join)


def any_texts() -> SearchStrategy[str]:
    """Any string at all, lone surrogates included (R-9)."""
    return st.text(st.characters(exclude_categories=()), max_size=20) | texts()


def names() -> SearchStrategy[str]:
    """Anything that may be an id, a principal, or another indexed value (R-8)."""
    traps = st.sampled_from(
        ("a", "A", "a ", " a", "a_b", "a%", "%", "_", "*", "ß", "ss", "e\u0301", "\u00e9", "x" * 255)
    )
    return traps | st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=255)


def json_values(*, max_leaves: int = 8) -> SearchStrategy[Any]:
    """A JSON value as R-9 admits it: big integers, ``1`` beside ``1.0`` and ``True``, any text as key."""
    leaves = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.sampled_from((0, 1, 1.0, True, -0.0, 2**64, -(10**30)))
        | st.floats(allow_nan=False, allow_infinity=False)
        | any_texts()
    )
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_texts(), inner, max_size=3),
        max_leaves=max_leaves,
    )


def json_objects(*, max_leaves: int = 8) -> SearchStrategy[dict[str, Any]]:
    """What may be metadata or a payload."""
    return st.dictionaries(any_texts(), json_values(max_leaves=max_leaves), max_size=3)


def parts() -> SearchStrategy[Part]:
    """Text, refusals, media and reasoning."""
    optional = st.none() | any_texts()
    media = st.one_of(
        st.builds(MediaPart, media_type=optional, data=st.binary(max_size=20), name=optional),
        st.builds(MediaPart, media_type=optional, url=any_texts()),
        st.builds(MediaPart, file_id=any_texts()),
    )
    return st.one_of(
        st.builds(TextPart, any_texts(), st.booleans()),
        media,
        st.builds(ReasoningPart, text=optional, signature=optional, data=optional),
    )


def contents() -> SearchStrategy[Content]:
    """The content of a message or result: None, ``""``, text, or parts."""
    return st.none() | any_texts() | st.lists(parts(), max_size=3).map(tuple)


def messages() -> SearchStrategy[Message]:
    """Any message: every role, part, status, and metadata and native data beside it."""
    rest: dict[str, Any] = {
        "metadata": json_objects(),
        "native": st.none() | st.builds(Native, any_texts(), json_values()),
    }
    call = st.builds(ToolCall, any_texts(), any_texts(), any_texts())
    result = st.builds(ToolResult, any_texts(), contents(), st.sampled_from(ToolStatus), st.none() | any_texts())
    return st.one_of(
        st.builds(SystemMessage, contents(), **rest),
        st.builds(UserMessage, contents(), **rest),
        st.builds(AssistantMessage, contents(), tool_calls=st.lists(call, max_size=3).map(tuple), **rest),
        st.builds(ToolMessage, st.lists(result, max_size=3).map(tuple), **rest),
    )


def event_metadata() -> SearchStrategy[dict[str, Any]]:
    """What may be metadata of an event: anything, but a run id is a name (R-8)."""
    return st.builds(_with_run_id, json_objects(), st.none() | names())


def _with_run_id(metadata: dict[str, Any], run_id: str | None) -> dict[str, Any]:
    # Hypothesis draws texts that it finds in the source too, the key of the run id among them.
    rest = {key: value for key, value in metadata.items() if key != EventMetadata.RUN_ID}
    return rest if run_id is None else rest | {EventMetadata.RUN_ID: run_id}


def events(session_id: str = SESSION_ID) -> SearchStrategy[SessionEvent]:
    """Any single event but a boundary or a summary, with content that is hard to keep; the ids differ."""
    shared: dict[str, Any] = {
        "session_id": st.just(session_id),
        "id": names(),
        "timestamp": times(),
        "metadata": event_metadata(),
        "branch": branches(),
    }
    return st.builds(SessionEvent, message=messages(), **shared) | st.builds(
        SessionEvent, type=own_types(), payload=json_objects(), **shared
    )


def times() -> SearchStrategy[datetime]:
    """One of a few moments, a microsecond apart or seconds, so that many are equal."""
    return st.builds(_moment, st.integers(0, SECONDS), st.sampled_from((0, 0, 1)))


def _moment(seconds: int, microseconds: int) -> datetime:
    return START + timedelta(seconds=seconds, microseconds=microseconds)


def branches() -> SearchStrategy[str | None]:
    """A branch of the tree; root more often than any other."""
    return st.none() | st.sampled_from((None, *BRANCHES))


def own_types() -> SearchStrategy[EventType]:
    """An event type of the application's own."""
    return st.sampled_from(OWN_TYPES)
