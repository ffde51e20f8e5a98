"""LIST, INDEX: finding sessions without their id."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from turnlog.errors import NotIndexedError
from turnlog.log.session import Session
from turnlog.storage.changes import SessionChange
from turnlog.storage.protocol import AsyncSessionRepository, SessionPage
from turnlog.testing.clocks import START
from turnlog.testing.contract.exactness import LOOK_ALIKES
from turnlog.testing.factories import session


def aged(session_id: str, minutes: int = 0, **fields: Any) -> Session:
    """A session created so many minutes after START."""
    return session(session_id, created_at=START + timedelta(minutes=minutes), **fields)


def named(page: SessionPage) -> str:
    """The ids of a page, as in ``"a b"``."""
    return " ".join(found.id for found in page)


async def created(repository: AsyncSessionRepository, *sessions: Session) -> None:
    """These sessions, in this order."""
    for made in sessions:
        await repository.create(made)


async def walked(
    repository: AsyncSessionRepository, limit: int, *, newest_first: bool = False, principal: str | None = None
) -> list[str]:
    """The pages of a walk by cursor from the first to the last."""
    pages: list[str] = []
    cursor: str | None = None
    while True:
        page = await repository.list(principal=principal, limit=limit, cursor=cursor, newest_first=newest_first)
        pages.append(named(page))
        cursor = page.cursor
        if cursor is None or len(pages) > 20:
            return pages


class Listing:
    """The order of listings, the walk by cursor, and look-ups by indexed metadata."""

    async def test_list_1_is_oldest_first_by_created_at(self, repository: AsyncSessionRepository) -> None:
        """Sessions come by ``created_at``, whenever they were stored or last written (R-1, CASE B100)."""
        await created(repository, aged("c", 3), aged("a", 1), aged("d", 4), aged("b", 2))
        await repository.update("a", SessionChange(set={"x": 1}))
        assert named(await repository.list()) == "a b c d"

    async def test_list_2_keeps_equal_times_in_the_order_of_creation(self, repository: AsyncSessionRepository) -> None:
        """Of sessions with one ``created_at`` the one stored first comes first, whatever its id."""
        await created(repository, *map(aged, "cadb"))
        await repository.update("c", SessionChange(set={"x": 1}))
        assert named(await repository.list()) == "c a d b"

    async def test_list_3_newest_first_is_the_reverse(self, repository: AsyncSessionRepository) -> None:
        """``newest_first`` turns the whole order round, equal times too."""
        await created(repository, *map(aged, "cadb"), aged("e", -1), aged("f", 1))
        assert named(await repository.list(newest_first=True)) == "f b d a c e"

    async def test_list_4_gives_one_principals_sessions(self, repository: AsyncSessionRepository) -> None:
        """With ``principal`` only the sessions of exactly that owner are listed (V-2, R-8, CASE B111, B117)."""
        await created(
            repository, session("none"), *(session(f"{n}", principal=name) for n, name in enumerate(LOOK_ALIKES))
        )
        for n, name in enumerate(LOOK_ALIKES):
            assert named(await repository.list(principal=name)) == f"{n}"
        assert named(await repository.list(principal="nobody")) == ""

    async def test_list_5_is_cut_at_the_limit(self, repository: AsyncSessionRepository) -> None:
        """A page has at most ``limit`` sessions, and a cursor exactly when there are more."""
        await created(repository, *map(aged, "abc"))
        assert [(named(page), page.cursor is None) for page in [await repository.list(limit=n) for n in (2, 3, 4)]] == [
            ("a b", False),
            ("a b c", True),
            ("a b c", True),
        ]

    async def test_list_6_walks_by_cursor(self, repository: AsyncSessionRepository) -> None:
        """A walk by cursor gives every session once in the order of the listing, equal times too."""
        await created(repository, *map(aged, "cadb"), aged("e", -1), aged("f", 1))
        assert await walked(repository, 2) == ["e c", "a d", "b f"]
        assert await walked(repository, 1) == ["e", "c", "a", "d", "b", "f"]

    async def test_list_7_walks_newest_first(self, repository: AsyncSessionRepository) -> None:
        """So does a walk from the newest, of all sessions or of one principal's."""
        await created(repository, *map(partial(aged, principal="ann"), "cadb"), aged("e", -1), aged("f", 1))
        assert await walked(repository, 4, newest_first=True) == ["f b d a", "c e"]
        assert await walked(repository, 3, newest_first=True, principal="ann") == ["b d a", "c"]

    async def test_list_8_walks_on_while_sessions_come_and_go(self, repository: AsyncSessionRepository) -> None:
        """Sessions that live all through a walk are seen once, whatever comes and goes meanwhile (CASE B108)."""
        for newest_first in (False, True):
            for name in await self._ids(repository):
                await repository.delete(name)
            await created(repository, *map(aged, "abcdef", range(0, 60, 10)))
            first = await repository.list(limit=2, newest_first=newest_first)
            await repository.delete(first.sessions[-1].id)
            await created(repository, aged("before", -1), aged("early", -2), aged("late", 98), aged("after", 99))
            rest = await repository.list(cursor=first.cursor, newest_first=newest_first)
            lasting = [found.id for found in (*first, *rest) if len(found.id) == 1]
            assert lasting == list("fedcba" if newest_first else "abcdef")

    async def test_index_1_finds_by_indexed_metadata(self, repository: AsyncSessionRepository) -> None:
        """``find_by_metadata`` gives the sessions with exactly that value, oldest first (V-2, R-8, CASE B111)."""
        await created(repository, session("none"))
        for n, name in enumerate(LOOK_ALIKES):
            await created(repository, aged(f"new{n}", 2, metadata={"channel": name, "other": "ab"}))
            await created(repository, aged(f"old{n}", 1, metadata={"channel": name}))
        for n, name in enumerate(LOOK_ALIKES):
            assert named(await repository.find_by_metadata("channel", name)) == f"old{n} new{n}"

    async def test_index_2_refuses_a_key_that_is_not_indexed(self, repository: AsyncSessionRepository) -> None:
        """Any other key is an error that names it, never a wider or an empty answer (V-2, CASE B112, B113)."""
        await created(repository, session(metadata={"tenant": "acme", "channel": "web"}))
        for key in ("tenant", "Channel", "channel ", "chan%", "channel') OR 1=1 --", "$.channel"):
            with pytest.raises(NotIndexedError) as caught:
                await repository.find_by_metadata(key, "acme")
            assert caught.value.name == key

    async def test_index_3_follows_updates_and_deletes(self, repository: AsyncSessionRepository) -> None:
        """What is found is what the metadata says now: changed, removed, deleted, created anew (R-1)."""
        find: Callable[[str], Any] = partial(repository.find_by_metadata, "channel")
        await created(repository, *(session(name, metadata={"channel": "web"}) for name in "abcd"))
        await repository.update("a", SessionChange(set={"channel": "app"}))
        await repository.update("b", SessionChange(metadata={}))
        await repository.delete("c")
        await created(repository, session("c"))
        assert [named(await find(value)) for value in ("web", "app")] == ["d", "a"]

    async def test_index_4_finds_by_the_principal(self, repository: AsyncSessionRepository) -> None:
        """The principal's key is indexed in every store, and follows a change of owner (V-2)."""
        await created(repository, session("a", principal="ann"), session("b", principal="ann"))
        await repository.update("a", SessionChange(principal="bob"))
        assert named(await repository.find_by_metadata("principal_name", "ann")) == "b"
        assert named(await repository.list(principal="bob")) == "a"

    async def test_index_5_pages_as_list_does(self, repository: AsyncSessionRepository) -> None:
        """Order, limit and cursor are those of ``list``, in both directions."""
        for newest_first in (False, True):
            for name in await self._ids(repository):
                await repository.delete(name)
            await created(repository, *(aged(name, metadata={"channel": "web"}) for name in "cadb"), aged("x"))
            find = partial(repository.find_by_metadata, "channel", "web", limit=3, newest_first=newest_first)
            page = await find()
            rest = await find(cursor=page.cursor)
            assert (named(page), named(rest)) == (("b d a", "c") if newest_first else ("c a d", "b"))
            assert rest.cursor is None

    async def _ids(self, repository: AsyncSessionRepository) -> list[str]:
        return [found.id for found in await repository.list()]
