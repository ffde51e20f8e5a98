"""The same calls get the same answers, row by row, from the store in memory, from SQLite, and from PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from operator import methodcaller
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.postgres.comparing import Trio, size_of, tally_of, trio
from tests.postgres.conftest import emptied
from turnlog.log.event_filter import EventFilter, Match
from turnlog.log.events import SessionEvent
from turnlog.log.queries import EventQuery
from turnlog.log.session import SessionAttributes
from turnlog.storage.changes import SessionChange
from turnlog.storage.protocol import SessionRepository
from turnlog.storage.sql.plans import at_once
from turnlog.testing import factories
from turnlog.testing.clocks import START
from turnlog.testing.contract.exactness import LOOK_ALIKES
from turnlog.testing.strategies import batches, events, filters, json_objects, names, queries

pytestmark = pytest.mark.store

#: For examples of which each makes dozens of calls on every store.
HALF: Final = settings(max_examples=max(20, settings().max_examples // 2))


@pytest.fixture(scope="module")
def stores(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    with trio(emptied(database), tmp_path_factory.mktemp("compared")) as opened:
        yield opened


@given(log=batches(max_batches=14), asked=st.lists(filters(), min_size=4, max_size=4), data=st.data())
def test_logs_read_through_filters(
    stores: Trio, log: list[list[SessionEvent]], asked: list[EventFilter], data: st.DataObject
) -> None:
    """F-1 to F-9: windows, pages, views, times, keywords, patterns, branches; as of every version."""
    stores.clear()
    stores.agree(lambda store: store.restore(factories.session(), log))
    for filter_ in asked:
        as_of = data.draw(st.none() | st.integers(0, size_of(log)))
        stores.agree(partial(reads, filter_=filter_, as_of=as_of, size=data.draw(st.integers(1, 5))))
    stores.agree(lambda store: store.iter_batches("s"))


@given(filters())
def test_only_plain_windows_are_read_at_once(filter_: EventFilter) -> None:
    # How several keywords are matched says nothing where there are none.
    is_plain = filter_.replace(match=Match.ANY) == EventFilter(window=filter_.window)
    assert at_once.reads(filter_) == (is_plain and filter_.window.newest is not None)


def reads(store: SessionRepository, filter_: EventFilter, as_of: int | None, size: int) -> list[Any]:
    return [
        store.events("s", filter_, as_of=as_of),
        store.count("s", filter_, as_of=as_of),
        *store.iter_events("s", filter_, as_of=as_of, batch_size=size),
    ]


@HALF
@given(log=batches(max_batches=10), asked=st.lists(queries(), min_size=3, max_size=3), at=st.integers(0, 20))
def test_appends_searches_tallies_and_copies(
    stores: Trio, log: list[list[SessionEvent]], asked: list[EventQuery], at: int
) -> None:
    """R-3, R-4, S-1, C-9, A-5; each batch is offered twice, so that replays agree too."""
    stores.clear()
    stores.agree(lambda store: store.create(factories.session()))
    for batch in log:
        for expected in (None, 1):
            stores.agree(methodcaller("append", "s", batch, expected_version=expected))
    for query in asked:
        stores.agree(methodcaller("search", "s", query))
    stores.agree(tally_of)
    stores.agree(lambda store: store.fork("s", factories.session("copy"), at=at))
    stores.agree(lambda store: store.iter_batches("copy"))
    for run in ("run-1", "run-2", "run"):
        stores.agree(methodcaller("find_events", "s", run_id=run))


@given(offered=st.lists(events(), min_size=1, max_size=4, unique_by=lambda event: event.id), together=st.booleans())
def test_content_that_is_hard_to_keep(stores: Trio, offered: list[SessionEvent], *, together: bool) -> None:
    """R-9: any text, surrogates and NUL, numbers of every size, ids that are barely names."""
    stores.clear()
    stores.agree(lambda store: store.create(factories.session(metadata=dict(offered[0].metadata))))
    for batch in [offered] if together else [[each] for each in offered]:
        stores.agree(methodcaller("append", "s", batch))
    stores.agree(lambda store: store.events("s"))
    stores.agree(lambda store: store.find_events("s", event_ids=[event.id for event in offered]))
    stores.agree(lambda store: store.find("s"))


def lookalikes() -> st.SearchStrategy[str]:
    """R-8's traps: case, padding, wildcards, marks that compose."""
    return st.sampled_from(LOOK_ALIKES) | names()


@HALF
@given(ids=st.lists(lookalikes(), min_size=2, max_size=6, unique=True), owner=lookalikes(), data=st.data())
def test_names_compare_by_code_point(stores: Trio, ids: list[str], owner: str, data: st.DataObject) -> None:
    """R-8: as ids of sessions and events, as principals, as other indexed values, in listings and their pages."""
    stores.clear()
    owners = [data.draw(st.sampled_from([owner, *ids])) for _ in ids]
    for number, (id_, principal) in enumerate(zip(ids, owners, strict=True)):
        made = factories.session(
            id_,
            principal=principal,
            metadata={"channel": ids[0]},
            created_at=START + timedelta(microseconds=number % 2),
        )
        stores.agree(methodcaller("create", made))
        log = [factories.user(n, id=name, session_id=id_) for n, name in enumerate(ids)]
        stores.agree(methodcaller("append", id_, log))
    for name in [*ids, owner, "a"]:
        stores.agree(partial(names_of, name=name))
    stores.agree(partial(whole_listing, newest_first=data.draw(st.booleans())))


def sessions_of(store: SessionRepository, principal: str) -> Any:
    return store.list(principal=principal).sessions


def names_of(store: SessionRepository, name: str) -> list[Any]:
    return [
        store.find(name),
        store.events(name),
        store.find_events(name, event_ids=[name]),
        store.list(principal=name).sessions,
        store.find_by_metadata("channel", name).sessions,
        store.append(name, [factories.user(50, id=f"{name}"[:254] + "+", session_id=name)]),
    ]


def whole_listing(store: SessionRepository, *, newest_first: bool) -> list[Any]:
    """Page by page, two sessions at a time."""
    found: list[Any] = []
    cursor = None
    while True:
        page = store.list(limit=2, cursor=cursor, newest_first=newest_first)
        found += page.sessions
        cursor = page.cursor
        if cursor is None:
            return found


@given(branch=st.sampled_from(("a_b", "a%", "A", "a ", "a", "ab", "a.b", "ß", "ss", "é", "e\u0301", "%", "_")))
def test_branches_compare_by_code_point(stores: Trio, branch: str) -> None:
    """F-7, R-8."""
    stores.clear()
    stores.agree(lambda store: store.create(factories.session()))
    paths = ("a_b", "axb", "a%", "a%.c", "a", "A", "a ", "a.b", "ab", "ß", "ss", "é", "e\u0301", "%", "_", None)
    log = [factories.assistant(n, branch=path) for n, path in enumerate(paths)]
    for event in log:
        stores.agree(methodcaller("append", "s", [event]))
    for asked in (branch, f"{branch}.c"):
        stores.agree(methodcaller("events", "s", EventFilter.for_branch(asked)))
        stores.agree(methodcaller("events", "s", EventFilter(branch=asked, last=2)))


@given(changes=st.lists(st.tuples(json_objects(), st.none() | lookalikes()), max_size=3), channel=lookalikes())
def test_metadata_and_its_updates(stores: Trio, changes: list[tuple[dict[str, Any], str | None]], channel: str) -> None:
    """R-1, R-9, V-2."""
    stores.clear()
    stores.agree(lambda store: store.create(factories.session(principal="p", metadata={"channel": channel})))
    for metadata, principal in changes:
        change = (
            SessionChange(metadata=metadata) if principal is None else SessionChange(set=metadata, principal=principal)
        )
        stores.agree(methodcaller("update", "s", change))
        stores.agree(partial(sessions_of, principal=principal or "p"))
    stores.agree(lambda store: store.find_by_metadata("channel", channel).sessions)
    stores.agree(lambda store: store.find_by_metadata(SessionAttributes.PRINCIPAL_NAME, "p").sessions)
