"""FILTER: each criterion by itself, and all of them together (F-1, F-2, F-6, F-7)."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from turnlog.log.event_filter import ANY_BRANCH, EventFilter, Match
from turnlog.log.events import EventType
from turnlog.log.messages import AssistantMessage, MessageType, TextPart, ToolCall, ToolMessage, ToolResult
from turnlog.storage.protocol import AsyncSessionRepository
from turnlog.testing.clocks import START
from turnlog.testing.contract._async.setting import begun
from turnlog.testing.contract.exactness import LOOK_ALIKES, ids
from turnlog.testing.factories import PROGRESS, assistant, calls, event, own, results, summary, system, turn, user

#: One event of every kind: 1 system, 2-5 a turn with calls, 6-8 a summary with its boundary, 9 and 10 of own types.
EVERY_KIND = (
    [system(1)],
    turn(2),
    summary(6, [(2, 5)], pinned=[(1, 1)]),
    [own(9, {"text": "question"}), own(10, type=EventType.of("OTHER"))],
)


def at(seconds: float) -> datetime:
    """So many seconds after START."""
    return START + timedelta(seconds=seconds)


class Criteria:
    """What a filter keeps."""

    async def test_filter_1_all_keeps_everything(self, repository: AsyncSessionRepository) -> None:
        """The filter without criteria gives every event: boundaries, covered events, own types (F-3, A-4)."""
        await begun(repository, *EVERY_KIND)
        assert await self._read(repository) == "e1 e2 e3 e4 e5 e6 e7 e8 e9 e10"

    async def test_filter_2_message_types(self, repository: AsyncSessionRepository) -> None:
        """``message_types`` keeps messages of these roles and nothing else (F-1)."""
        await begun(repository, *EVERY_KIND)
        kinds = (MessageType.SYSTEM, MessageType.USER, MessageType.ASSISTANT, MessageType.TOOL)
        found = [await self._read(repository, message_types={kind}) for kind in kinds]
        assert found == ["e1", "e2 e7", "e3 e5 e8", "e4"]
        assert await self._read(repository, message_types=kinds[:2]) == "e1 e2 e7"

    async def test_filter_3_event_types(self, repository: AsyncSessionRepository) -> None:
        """``event_types`` keeps events of these types, built in or own (F-1, V-4)."""
        await begun(repository, *EVERY_KIND)
        assert await self._read(repository, event_types={EventType.MESSAGE}) == "e1 e2 e3 e4 e5 e7 e8"
        assert await self._read(repository, event_types={EventType.COMPACTION, PROGRESS}) == "e6 e9"
        assert await self._read(repository, event_types={EventType.of("OTHE")}) == ""

    async def test_filter_4_exclude_synthetic(self, repository: AsyncSessionRepository) -> None:
        """``exclude_synthetic`` drops what compactions wrote as summaries, and keeps their boundaries (V-6)."""
        await begun(repository, *EVERY_KIND)
        assert await self._read(repository, exclude_synthetic=True) == "e1 e2 e3 e4 e5 e6 e9 e10"
        found = await repository.events("s", EventFilter.real_only())
        assert ids(found) == "e1 e2 e3 e4 e5"

    async def test_filter_5_since_and_until(self, repository: AsyncSessionRepository) -> None:
        """Both ends are inclusive, to the microsecond, in whatever zone they are given (F-1, CASE B104, B106)."""
        exact = at(1.000001).astimezone(timezone(timedelta(hours=-5)))
        await begun(repository, [user(n, timestamp=at(s)) for n, s in enumerate((2, 1, 1.000001, 1.000002, 0), 1)])
        assert await self._read(repository, since=exact) == "e1 e3 e4"
        assert await self._read(repository, until=exact) == "e2 e3 e5"
        assert await self._read(repository, since=exact, until=exact) == "e3"

    async def test_filter_6_after_and_before(self, repository: AsyncSessionRepository) -> None:
        """``after`` and ``before`` are positions, and exclusive (F-1, CASE B108)."""
        await begun(repository, *EVERY_KIND)
        assert await self._read(repository, after=7) == "e8 e9 e10"
        assert await self._read(repository, before=3) == "e1 e2"
        assert await self._read(repository, after=4, before=6) == "e5"
        assert await self._read(repository, after=10**18) == await self._read(repository, before=0) == ""

    async def test_filter_7_keyword_is_literal(self, repository: AsyncSessionRepository) -> None:
        """Wildcards, quotes, operators and escapes in a keyword mean themselves (F-6, CASE B111, B153)."""
        texts = ["100% sure", "a_b", "a*b", "don't", 'say "hi"', "back\\slash", "a-b OR c:d", "[x]", "100x sure", "axb"]
        await begun(repository, [user(n, text) for n, text in enumerate(texts, 1)])
        hits = {"%": 1, "0% ": 1, "a_b": 2, "_": 2, "a*": 3, "n't": 4, '"hi"': 5, "\\": 6, "a-b or": 7, "[x]": 8}
        assert {word: await self._read(repository, keyword=word) for word in hits} == {
            word: f"e{n}" for word, n in hits.items()
        }
        assert await self._read(repository, keyword="% s%") == await self._read(repository, keyword="'; --") == ""

    async def test_filter_8_keyword_folds_case(self, repository: AsyncSessionRepository) -> None:
        """Case is folded as Unicode says, on both sides and beyond ASCII; nothing is normalised (F-6, CASE B115)."""
        texts = ["Straße", "STRASSE", "İstanbul", "ΣΊΣΥΦΟΣ", "这是中文", "caf\u00e9", "cafe\u0301", "ﬁle", "Kelvin"]
        await begun(repository, [user(n, text) for n, text in enumerate(texts, 1)])
        hits = {
            "strasse": "e1 e2",
            "STRAßE": "e1 e2",
            "i\u0307stan": "e3",
            "istan": "",
            "σίσυφος": "e4",
            "中文": "e5",
            "CAF\u00c9": "e6",
            "cafe\u0301": "e7",
            "FILE": "e8",
            "\u212aELVIN": "e9",
        }
        assert {word: await self._read(repository, keyword=word) for word in hits} == hits

    async def test_filter_9_keyword_looks_into_calls_and_results(self, repository: AsyncSessionRepository) -> None:
        """Text, names and arguments of calls, and results are searched, in that order, a line for each (F-6)."""
        asked = (ToolCall("c1", "get_Weather", '{"city": "Bonn"}'), ToolCall("c2", "stop", "{}"))
        answered = (ToolResult("c1", "22 degrees"), ToolResult("c2", (TextPart("do"), TextPart("ne"))))
        await begun(
            repository,
            [user(1, (TextPart("one "), TextPart("two"))), event(2, AssistantMessage("let me", tool_calls=asked))],
            [event(3, ToolMessage(answered)), assistant(4, None), user(5, "let me get_weather")],
        )
        hits = {
            "one two": "e1",
            "GET_WEATHER": "e2 e5",
            '"city": "bonn"': "e2",
            "let me\nget_weather\n{": "e2",
            "degrees\ndone": "e3",
            "c1": "",
        }
        assert {word: await self._read(repository, keyword=word) for word in hits} == hits

    async def test_filter_10_keywords_any_or_all(self, repository: AsyncSessionRepository) -> None:
        """``keywords`` wants any of them, or all with ``match``; blank ones want nothing (F-1)."""
        await begun(repository, [user(1, "red GREEN"), user(2, "green blue"), user(3, "blue"), user(4, "black")])
        words = ["green", " ", "BLUE"]
        assert await self._read(repository, keywords=words) == "e1 e2 e3"
        assert await self._read(repository, keywords=words, match=Match.ALL) == "e2"
        assert await self._read(repository, keywords=words, keyword="red") == "e1"
        assert await self._read(repository, keywords=["", " "]) == "e1 e2 e3 e4"

    async def test_filter_11_pattern(self, repository: AsyncSessionRepository) -> None:
        """``pattern`` is searched for as it is, in the same text as a keyword (F-1, F-6)."""
        await begun(repository, [user(1, "order 17"), calls(2, "key9"), results(3, "key9"), user(4, "Order 8")])
        assert await self._read(repository, pattern=re.compile(r"order \d")) == "e1"
        assert await self._read(repository, pattern=re.compile("^order", re.IGNORECASE)) == "e1 e4"
        assert await self._read(repository, pattern=re.compile(r"key\d\"")) == "e2"

    async def test_filter_12_text_criteria_keep_messages_only(self, repository: AsyncSessionRepository) -> None:
        """Own-type events and boundaries never match a keyword or pattern, whatever they hold (F-1)."""
        await begun(repository, *EVERY_KIND)
        assert await self._read(repository, keyword="question") == "e2"
        assert await self._read(repository, keywords=["summary", "question"]) == "e2"
        assert await self._read(repository, pattern=re.compile("")) == "e1 e2 e3 e4 e5 e7 e8"

    async def test_filter_13_branch_sees_itself_and_its_ancestors(self, repository: AsyncSessionRepository) -> None:
        """A branch sees root, its ancestors and itself; siblings and descendants are hidden (F-7)."""
        branches = [None, "a", "a.b", "a.b.c", "a.c", "ab", "ab.c", "a.B"]
        await begun(repository, [user(n, branch=branch) for n, branch in enumerate(branches, 1)])
        seen = {"a.b": "e1 e2 e3", "a": "e1 e2", "ab.c": "e1 e6 e7", "a.b.c.d": "e1 e2 e3 e4", "z": "e1"}
        assert {branch: await self._read(repository, branch=branch) for branch in seen} == seen

    async def test_filter_14_branch_none_is_root_alone(self, repository: AsyncSessionRepository) -> None:
        """``branch=None`` sees root events only; without the criterion every branch is seen (F-3, F-7)."""
        await begun(repository, [user(1), user(2, branch="a"), own(3), own(4, branch="a.b")])
        assert await self._read(repository, branch=None) == "e1 e3"
        assert await self._read(repository, branch=ANY_BRANCH) == "e1 e2 e3 e4"

    async def test_filter_15_branch_compares_by_code_point(self, repository: AsyncSessionRepository) -> None:
        """Branches that look alike are different branches (R-8)."""
        names = [name for name in LOOK_ALIKES if "." not in name]
        await begun(repository, [user(n, branch=name) for n, name in enumerate(names, 1)])
        for n, name in enumerate(names, 1):
            assert await self._read(repository, branch=name) == f"e{n}"

    async def test_filter_16_all_criteria_hold_together(self, repository: AsyncSessionRepository) -> None:
        """An event is kept when it meets every criterion that is set (F-1, F-2)."""
        await begun(repository, *EVERY_KIND, [user(11, "question", branch="a"), user(12, "Question 2")])
        every = EventFilter(
            active_view=True,
            message_types={MessageType.USER},
            event_types={EventType.MESSAGE, PROGRESS},
            exclude_synthetic=True,
            since=at(2),
            until=at(12),
            after=1,
            before=13,
            keyword="question",
            keywords=["2", "nothing"],
            pattern=re.compile("uest"),
            branch=None,
        )
        assert ids(await repository.events("s", every)) == "e2 e12"
        for narrower, left in (
            ({"before": 12}, "e2"),
            ({"since": at(3)}, "e12"),
            ({"match": Match.ALL}, ""),
            ({"message_types": {MessageType.TOOL}}, ""),
            ({"pattern": re.compile("Quest")}, "e12"),
        ):
            assert ids(await repository.events("s", every.replace(**narrower))) == left

    async def _read(self, repository: AsyncSessionRepository, **criteria: object) -> str:
        return ids(await repository.events("s", EventFilter.all().replace(**criteria)))
