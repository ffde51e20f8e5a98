"""Reading costs what it returns, and appending the same at any length: counted, never timed (R-11)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import timedelta
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from tests.reading_cost.conftest import LENGTHS, Metered
from tests.reading_cost.metering import LONG, SHORT, Cost, Meter, alike, open_metered
from turnlog.errors import ConflictError
from turnlog.log.event_filter import ANY_BRANCH, EventFilter
from turnlog.log.events import EventType, SessionEvent
from turnlog.log.messages import MessageType
from turnlog.storage.protocol import Turn
from turnlog.storage.sql import SqlRepository
from turnlog.testing import factories
from turnlog.testing.clocks import START

_TYPES: Final = ((), (EventType.MESSAGE,), (factories.PROGRESS,), (EventType.COMPACTION,))
_AUTHORS: Final = ((), (MessageType.USER,), (MessageType.SYSTEM, MessageType.TOOL))
_BRANCHES: Final = (ANY_BRANCH, None, "a.b")


def criteria() -> Iterator[dict[str, Any]]:
    """Every combination of the criteria that R-11 bounds."""
    for view, types, authors, real, branch in product((False, True), _TYPES, _AUTHORS, (False, True), _BRANCHES):
        yield {
            "active_view": view,
            "event_types": frozenset(types),
            "message_types": frozenset(authors),
            "exclude_synthetic": real,
            "branch": branch,
        }


def windows(length: int) -> Iterator[dict[str, Any]]:
    """The windows that are to cost the same: the newest, the first page, and ranges of the tail."""
    yield {"last": 5}
    yield {"last": 5, "whole_turns": False}
    yield {"page": 0, "page_size": 5}
    yield {"after": length - 30}
    yield {"after": length - 50, "before": length - 20, "last": 4}
    since = START + timedelta(seconds=length - 25)
    yield {"since": since, "until": since + timedelta(seconds=10)}


def read(metered: Metered, session: str, given: dict[str, Any], window: dict[str, Any]) -> Cost:
    filter_ = EventFilter(**given, **window)
    metered.store.events(session, filter_)  # the boundary is kept from now on
    return metered.meter.cost_of(lambda: metered.store.events(session, filter_))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(6))
def test_every_bounded_shape_costs_the_same_in_a_long_log(metered: Metered, number: int) -> None:
    unequal: list[str] = []
    for given in criteria():
        short, long = (list(windows(LENGTHS[session]))[number] for session in (SHORT, LONG))
        costs = read(metered, SHORT, given, short), read(metered, LONG, given, long)
        if not alike(*costs):
            unequal.append(f"{given} {short}: {costs[0].steps} and {costs[1].steps}")
    assert not unequal, "\n".join(unequal[:10])


@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize("branch", _BRANCHES)
def test_rare_events_are_found_without_passing_the_others(metered: Metered, branch: Any, *, view: bool) -> None:
    """Without a window too: the matches are few, and what lies between them is not looked at."""
    for given in (
        {"event_types": frozenset({factories.PROGRESS})},
        {"event_types": frozenset({EventType.COMPACTION})},
        {"message_types": frozenset({MessageType.SYSTEM, MessageType.TOOL})},
    ):
        costs = [
            read(metered, session, {**given, "active_view": view, "branch": branch}, {}) for session in (SHORT, LONG)
        ]
        assert alike(*costs), given


def test_the_view_after_a_boundary_costs_the_view(metered: Metered) -> None:
    costs = [read(metered, session, {"active_view": True}, {}) for session in (SHORT, LONG)]
    assert alike(*costs)


@pytest.mark.parametrize("back", [1, 20, 39, 50])
def test_reading_as_of_a_version_costs_the_same(metered: Metered, back: int) -> None:
    window = EventFilter(active_view=True, last=5)

    def cost(session: str) -> Cost:
        as_of = LENGTHS[session] - back
        metered.store.events(session, window, as_of=as_of)
        return metered.meter.cost_of(lambda: metered.store.events(session, window, as_of=as_of))

    assert alike(cost(SHORT), cost(LONG))


@pytest.mark.parametrize("name", ["version", "find", "find_events", "find_run", "take_turn", "release_turn"])
def test_small_calls_cost_the_same(metered: Metered, name: str) -> None:
    store = metered.store
    calls: dict[str, Callable[[str], Any]] = {
        "version": store.version,
        "find": store.find,
        "find_events": lambda session: store.find_events(session, event_ids=["e3", "e900", "none"]),
        "find_run": lambda session: store.find_events(session, run_id="none"),
        "take_turn": lambda session: store.take_turn(session, Turn("t")),
        "release_turn": lambda session: store.release_turn(session, "t"),
    }
    costs = [metered.meter.cost_of(partial(calls[name], session)) for session in (SHORT, LONG)]
    store.release_turn(SHORT, "t")
    store.release_turn(LONG, "t")
    assert alike(*costs)


def test_appending_costs_the_same_at_event_10_and_at_event_100_000(metered: Metered) -> None:
    store = metered.store
    store.delete("tiny")
    store.create(factories.session("tiny", principal="p"))
    for number in range(1, 10):
        store.append("tiny", [factories.user(number, session_id="tiny")])
    tiny = metered.meter.cost_of(lambda: store.append("tiny", [factories.user(10, session_id="tiny")]))
    copy = store.fork(LONG, factories.session("copy", principal="p"))
    made = factories.user(copy + 1, session_id="copy")
    costs = tiny, metered.meter.cost_of(lambda: store.append("copy", [made]))
    store.delete("copy")
    assert alike(*costs)


def test_refusals_and_replays_cost_the_same(metered: Metered) -> None:
    costs: dict[str, list[Cost]] = {"replay": [], "conflict": [], "partial": []}
    for session in (SHORT, LONG):
        stored = metered.store.events(session, EventFilter(after=LENGTHS[session] - 3))
        made = factories.user(LENGTHS[session] + 1, session_id=session)
        attempts = {"replay": stored[-2:-1], "conflict": [made], "partial": [stored[-1], made]}
        for name, batch in attempts.items():
            costs[name].append(metered.meter.cost_of(partial(attempt, metered.store, session, batch)))
    for name, both in costs.items():
        assert alike(*both), name


def attempt(store: SqlRepository, session: str, batch: list[SessionEvent]) -> None:
    with suppress(ConflictError):
        store.append(session, [event.replace(position=None) for event in batch], expected_version=0)


def test_a_tally_carried_on_costs_what_is_new(metered: Metered) -> None:
    costs: list[Cost] = []
    for session in (SHORT, LONG):
        known = metered.store.tally(session)
        costs.append(metered.meter.cost_of(partial(metered.store.tally, session, known=known)))
    assert alike(*costs)


def test_a_read_that_has_lost_its_index_is_noticed(metered: Metered, tmp_path: Path) -> None:
    """The meter tells a search from a walk."""
    path = tmp_path / "slow.db"
    with closing(sqlite3.connect(metered.path)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)
        target.execute("DROP INDEX event_kind")
        target.execute("DROP INDEX event_own")
    meter = Meter()
    with open_metered(path, meter) as store:
        slow = Metered(store, meter, path)
        given = {"event_types": frozenset({factories.PROGRESS})}
        costs = [read(slow, session, given, {}) for session in (SHORT, LONG)]
    assert not alike(*costs)


def test_a_listing_costs_its_page(metered: Metered) -> None:
    first = metered.meter.cost_of(lambda: metered.store.list(principal="p", limit=5))
    whole = metered.meter.cost_of(lambda: metered.store.list(principal="p", limit=20))
    assert first.steps * 2 < whole.steps
    others = metered.meter.cost_of(lambda: metered.store.list(principal="q", limit=5))
    assert alike(first, others)


@pytest.mark.slow
@pytest.mark.parametrize("view", [False, True])
def test_no_statement_of_a_windowed_read_sorts_or_scans(metered: Metered, *, view: bool) -> None:
    for given, window in product(criteria(), windows(LENGTHS[SHORT])):
        if given["active_view"] != view:
            continue
        filter_ = EventFilter(**given, **window)
        metered.meter.cost_of(partial(metered.store.events, SHORT, filter_))
        for sql, bound in zip(metered.meter.statements[:], metered.meter.bound[:], strict=True):
            if sql.startswith(("SELECT", "WITH")) and " FROM event" in sql:
                plan = explained(metered, sql, bound)
                assert not any("TEMP B-TREE" in line for line in plan), (sql, plan)
                searched = [line for line in plan if line.startswith(("SEARCH e", "SCAN e"))]
                assert searched, (sql, plan)
                assert all("(session_key=?" in line for line in searched), (sql, plan)


def explained(metered: Metered, sql: str, bound: Any) -> list[str]:
    with closing(sqlite3.connect(metered.path)) as connection:
        return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", bound)]
