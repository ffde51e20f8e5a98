"""What a single event must meet to pass an ``EventFilter`` (F-1, F-6, F-7)."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from turnlog.log.event_filter import EventFilter, Match
from turnlog.log.events import EventType, SessionEvent
from turnlog.log.messages import MessageType, TextPart, UserMessage
from turnlog.testing.factories import PROGRESS, assistant, boundary, calls, event, own, results, summary, system, user

SHADOW, TOLD = summary(7)[1:]


def positioned(made: SessionEvent, position: int) -> SessionEvent:
    return made.replace(position=position)


def test_since_and_until_are_inclusive() -> None:
    made = user(5)
    moment, tick = made.timestamp, timedelta(microseconds=1)
    assert EventFilter(since=moment, until=moment).matches(made)
    assert not EventFilter(since=moment + tick).matches(made)
    assert not EventFilter(until=moment - tick).matches(made)


def test_after_and_before_are_exclusive() -> None:
    made = positioned(user(5), 5)
    assert EventFilter(after=4, before=6).matches(made)
    assert not EventFilter(after=5).matches(made)
    assert not EventFilter(before=5).matches(made)
    assert EventFilter(after=0).matches(positioned(made, 1))


def shown(value: object) -> str:
    """The same in every process: the order of a set is not, as None and classes hash by where they lie."""
    if isinstance(value, dict):
        return ", ".join(f"{name}: {shown(each)}" for name, each in value.items())
    return str(sorted(map(str, value))) if isinstance(value, set) else str(value)


@pytest.mark.parametrize(
    ("criterion", "expected"),
    [
        ({"event_types": {EventType.MESSAGE}}, [True, True, True, True, True, True, True, False, False]),
        ({"event_types": {PROGRESS}}, [False] * 7 + [True, False]),
        ({"event_types": {EventType.COMPACTION, PROGRESS}}, [False] * 7 + [True, True]),
        ({"message_types": {MessageType.USER}}, [False, True, False, False, False, True, False, False, False]),
        ({"message_types": {MessageType.SYSTEM, MessageType.TOOL}}, [True, False, False, True] + [False] * 5),
        ({"message_types": set(MessageType)}, [True] * 7 + [False, False]),
        ({"exclude_synthetic": True}, [True] * 5 + [False, False, True, True]),
        ({"keyword": "question"}, [False, True] + [False] * 7),
        ({"keywords": ["question", "found"]}, [False, True, False, True] + [False] * 5),
        ({"pattern": re.compile("")}, [True] * 7 + [False, False]),
        ({"message_types": {MessageType.USER}, "event_types": {PROGRESS}}, [False] * 9),
        ({"message_types": {MessageType.USER}, "exclude_synthetic": True}, [False, True] + [False] * 7),
    ],
    ids=shown,
)
def test_all_criteria_must_hold_and_some_keep_messages_only(criterion: dict[str, Any], expected: list[bool]) -> None:
    """F-1"""
    log = [
        system(1),
        user(2),
        calls(3, "c"),
        results(4, "c"),
        assistant(5),
        SHADOW,
        TOLD,
        own(8, {"note": "question"}),
        boundary(9, ()),
    ]
    made = EventFilter(**criterion)
    assert [made.matches(each) for each in log] == expected


KEYWORDS: tuple[tuple[str, str, bool], ...] = (
    ("Hello World", "hello world", True),
    ("Hello World", "LO WO", True),
    ("Hello World", "hello  world", False),
    ("Straße", "STRASSE", True),
    ("STRASSE", "straße", True),
    ("Straße", "s", True),
    ("Σίσυφος", "ΣΊΣΥΦΟΣ", True),
    ("\u0149", "\u02bcn", True),
    ("\ufb01sh", "FISH", True),
    ("İ", "i̇", True),
    ("\u00e9", "e\u0301", False),  # no normalisation
    ("100%", "%", True),
    ("100", "%", False),
    ("a_b", "_", True),
    ("ab", "_", False),
    ("ab", "a*", False),
    ("a*b", "A*", True),
    ("don't", "'", True),
    ('say "x"', '"X"', True),
    ("back\\slash", "\\S", True),
    ("a.c", ".", True),
    ("abc", ".", False),
    ("这是中文", "中文", True),
    ("👩‍👩‍👧", "👩", True),
    ("a\0b", "\0", True),
    ("\ud800", "\ud800", True),
    ("\ud83d\ude00", "\ude00", True),
    ("\U0001f600", "\ude00", False),
    (" a ", " a ", True),
    ("a", " a ", False),
)


@pytest.mark.parametrize(("text", "keyword", "found"), KEYWORDS, ids=ascii)
def test_a_keyword_is_a_literal_without_case(text: str, keyword: str, found: bool) -> None:  # noqa: FBT001
    """F-6; B111 (``%`` is itself), B115 (Chinese is found), B153 (punctuation is literal)."""
    for made in (
        EventFilter(keyword=keyword),
        EventFilter(keywords=[keyword]),
        EventFilter(keywords=[keyword], match=Match.ALL),
    ):
        assert made.matches(user(1, text)) is found


def test_any_and_all_of_several_keywords() -> None:
    log = [user(1, "alpha beta"), user(2, "BETA"), user(3, "gamma")]
    either = EventFilter(keywords=["Alpha", "beta"])
    both = EventFilter(keywords=["Alpha", "beta"], match=Match.ALL)
    assert [either.matches(each) for each in log] == [True, True, False]
    assert [both.matches(each) for each in log] == [True, False, False]
    assert EventFilter(keyword="beta", keywords=["alpha", "gamma"]).matches(log[0])
    assert not EventFilter(keyword="beta", keywords=["alpha", "gamma"]).matches(log[1])


def test_a_pattern_searches_with_its_own_flags() -> None:
    assert EventFilter(pattern=re.compile("b.d")).matches(user(1, "abcde"))
    assert not EventFilter(pattern=re.compile("B.D")).matches(user(1, "abcde"))
    assert EventFilter(pattern=re.compile("B.D", re.IGNORECASE)).matches(user(1, "abcde"))
    assert not EventFilter(pattern=re.compile("^b")).matches(user(1, "abc"))
    assert EventFilter(pattern=re.compile(r"\d"), keyword="ab").matches(user(1, "ab1"))
    assert not EventFilter(pattern=re.compile(r"\d"), keyword="ab").matches(user(1, "ab"))


def test_keywords_look_into_calls_and_results() -> None:
    """F-6: wider than the text alone, on purpose."""
    assert EventFilter(keyword="LOOK_UP").matches(calls(1, "c"))
    assert EventFilter(keyword='"key": "c"').matches(calls(1, "c"))
    assert EventFilter(keyword="found").matches(results(1, "c"))
    assert not EventFilter(keyword="found").matches(calls(1, "c"))
    assert not EventFilter(keyword="c9").matches(results(1, "c9"))


def test_keywords_look_at_the_joined_text_parts() -> None:
    parts = event(1, UserMessage((TextPart("al"), TextPart("pha"))))
    assert EventFilter(keyword="alpha").matches(parts)


VISIBLE: tuple[tuple[str | None, set[str | None]], ...] = (
    (None, {None}),
    ("a", {None, "a"}),
    ("a.b", {None, "a", "a.b"}),
    ("a.b.c", {None, "a", "a.b", "a.b.c"}),
    ("ab", {None, "ab"}),
    ("ab.c", {None, "ab", "ab.c"}),
    ("A", {None, "A"}),
    ("%", {None, "%"}),
    ("_", {None, "_"}),
    ("x", {None}),
)


@pytest.mark.parametrize(("branch", "visible"), VISIBLE, ids=shown)
def test_a_branch_sees_root_its_ancestors_and_itself(branch: str | None, visible: set[str | None]) -> None:
    """F-7"""
    every = (None, "a", "a.b", "a.b.c", "a.bc", "a.c", "ab", "ab.c", "A", "%", "_")
    made = EventFilter.for_branch(branch)
    assert {other for other in every if made.matches(user(1, branch=other))} == visible
    assert all(EventFilter().matches(user(1, branch=other)) for other in every)
