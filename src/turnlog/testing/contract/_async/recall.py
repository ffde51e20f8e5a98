"""SEARCH: literal recall over the whole log (S-1)."""

from __future__ import annotations

from datetime import timedelta

from turnlog.log.event_filter import Match
from turnlog.log.messages import MessageType
from turnlog.log.queries import EventQuery
from turnlog.storage.protocol import AsyncSessionRepository
from turnlog.testing.clocks import START
from turnlog.testing.contract._async.setting import begun
from turnlog.testing.contract.exactness import exactly, ids
from turnlog.testing.factories import assistant, boundary, own, summary, turn, user


class Recall:
    """Whatever was said is found, by what was typed."""

    async def test_search_1_finds_literal_terms_oldest_first(self, repository: AsyncSessionRepository) -> None:
        """Terms are literals in any case; hits come oldest first, as they are stored (S-1, CASE B115, B153)."""
        texts = ["don't park.", "@nasa a-b", 'say "x"', "100%", "这是中文", "DON'T", "a_b", "Straße"]
        log = await begun(repository, [user(n, text) for n, text in enumerate(texts, 1)])
        hits = {"don't": "e1 e6", "park.": "e1", "@nasa": "e2", "a-b": "e2", '"': "e3", "%": "e4", "中文": "e5"}
        hits |= {"_": "e7", "STRASSE": "e8", "*": "", "OR": "", "a b": ""}
        found = {term: await repository.search("s", EventQuery.keyword(term)) for term in hits}
        assert {term: ids(page.events) for term, page in found.items()} == hits
        assert exactly(list(found["don't"].events)) == exactly([log[0], log[5]])

    async def test_search_2_wants_any_or_all_terms(self, repository: AsyncSessionRepository) -> None:
        """One term is enough, or with ``match`` all are needed (S-1)."""
        await begun(repository, [user(1, "red green"), user(2, "green blue"), user(3, "black")])
        both = EventQuery(terms=("GREEN", "blue"))
        assert ids((await repository.search("s", both)).events) == "e1 e2"
        both = EventQuery(terms=("GREEN", "blue"), match=Match.ALL)
        assert ids((await repository.search("s", both)).events) == "e2"

    async def test_search_3_finds_covered_events(self, repository: AsyncSessionRepository) -> None:
        """What a compaction or a clear took out of the view is still found (A-4, CASE B58)."""
        await begun(repository, turn(1), summary(5), [boundary(8, [], strategy="clear")], [user(9, "question 9")])
        assert ids((await repository.search("s", EventQuery.keyword("question"))).events) == "e1 e9"

    async def test_search_4_finds_summaries_only_when_asked(self, repository: AsyncSessionRepository) -> None:
        """Summaries are found with ``include_summaries``; boundaries and own types never (S-1)."""
        await begun(repository, turn(1), summary(5, text="summary of answer 1"), [own(8, {"text": "answer summary"})])
        assert ids((await repository.search("s", EventQuery.keyword("answer"))).events) == "e4"
        assert ids((await repository.search("s", EventQuery.keyword("summary"))).events) == ""
        asked = EventQuery(terms=("answer", "summary"), include_summaries=True)
        assert ids((await repository.search("s", asked)).events) == "e4 e7"

    async def test_search_5_needs_no_term(self, repository: AsyncSessionRepository) -> None:
        """A time range, ends included, or message types are enough (S-1, CASE B122)."""
        await begun(repository, turn(1), [own(5)], turn(6))
        since, until = START + timedelta(seconds=4), START + timedelta(seconds=6)
        assert ids((await repository.search("s", EventQuery(since=since, until=until))).events) == "e4 e6"
        tools = EventQuery(message_types=frozenset({MessageType.TOOL}))
        assert ids((await repository.search("s", tools)).events) == "e3 e8"

    async def test_search_6_goes_by_pages_and_cursor(self, repository: AsyncSessionRepository) -> None:
        """Pages are cut from the oldest; a full page's cursor leads to the next, whatever is appended (CASE B108)."""
        await begun(repository, [user(n, f"hit {n}") for n in range(1, 6)])
        pages = [await repository.search("s", EventQuery(terms=("hit",), page=n, page_size=2)) for n in range(4)]
        assert [ids(page.events) for page in pages] == ["e1 e2", "e3 e4", "e5", ""]
        assert [page.cursor for page in pages] == [2, 4, None, None]
        assert (await repository.search("s", EventQuery(terms=("hit",), page=10**18))).events == ()
        await repository.append("s", [assistant(6, "hit 6")])
        rest = await repository.search("s", EventQuery(terms=("hit",), after=pages[1].cursor, page_size=2))
        assert (ids(rest.events), rest.cursor) == ("e5 e6", 6)
