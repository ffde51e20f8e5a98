"""R-11 on a server: what a call reads does not grow with the log; counted in buffers, never timed.

Plans made for the values at hand, and plans made once for all values: the server may choose either for a statement that
it has prepared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from operator import methodcaller
from typing import Any, Final
from urllib.parse import quote

import psycopg
import pytest

from tests.postgres.conftest import new_database
from tests.postgres.states import TABLES
from tests.postgres.test_outcomes import pool_of
from tests.reading_cost.conftest import LENGTHS, batches
from tests.reading_cost.metering import LONG, SHORT
from tests.reading_cost.test_reading_cost import attempt, criteria, windows
from turnlog.log.event_filter import EventFilter
from turnlog.log.events import EventType
from turnlog.log.messages import MessageType
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.opening import open_store
from turnlog.storage.protocol import SessionRepository, Turn
from turnlog.storage.sql.drivers.postgres import PostgresOptions
from turnlog.storage.sql.drivers.postgres.migrating import migrate
from turnlog.testing import factories
from turnlog.testing.clocks import FixedClock

pytestmark = [pytest.mark.store, pytest.mark.slow, pytest.mark.timeout(300)]

#: The tree of the long log's index is a level or two higher, and each lane looks into it.
_SHARE, _SLACK = 0.10, 6
_MODES: Final = ("force_custom_plan", "force_generic_plan")
_BUFFERS: Final = """
    SELECT coalesce(sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit + idx_blks_read, 0)
      + coalesce(toast_blks_hit + toast_blks_read, 0)), 0)::bigint FROM pg_statio_user_tables
"""

#: Three thousand sessions of one owner, and as many of another.
_OWNERS: Final = "SELECT 'principal_name', CASE key % 2 WHEN 0 THEN 'owner' ELSE 'other' END, created_at, key"
_MANY_SESSIONS: Final = (
    "INSERT INTO session (id, created_at) SELECT 'many ' || n, n FROM generate_series(1, 6000) n",
    "INSERT INTO session_document SELECT key, 0, '{}' FROM session WHERE id LIKE 'many%'",
    f"INSERT INTO session_attribute {_OWNERS} FROM session WHERE id LIKE 'many%'",
)


class Meter:
    """A store with one connection, and the buffers that its statements look at."""

    def __init__(self, url: str, mode: str) -> None:
        there = f"{url}?pool_max=1&options={quote(f'-c plan_cache_mode={mode}')}"
        self.store: SessionRepository = open_store(there, clock=FixedClock(), token_counter=EstimatedTokens())
        self._watch = psycopg.connect(url, autocommit=True)
        self._watch.execute("SET stats_fetch_consistency = none")

    def _told(self) -> int:
        with pool_of(self.store).connection() as connection:
            connection.execute("SELECT pg_stat_force_next_flush()")
            connection.execute("SELECT 1")  # what was counted before is told when this ends
        (found,) = self._watch.execute(_BUFFERS).fetchall()
        return int(found[0])

    def cost_of(self, call: Callable[[SessionRepository], Any]) -> int:
        before = self._told()
        answer = call(self.store)
        if isinstance(answer, Iterator):
            list(answer)
        return self._told() - before

    def close(self) -> None:
        self.store.close()
        self._watch.close()


@pytest.fixture(scope="module")
def filled(admin_url: str) -> Iterator[str]:
    """A log of 1,000 events and one of 100,000 that end alike, and other sessions."""
    with new_database(admin_url) as url:
        migrate(PostgresOptions(conninfo=url))
        with open_store(url, clock=FixedClock(), token_counter=EstimatedTokens()) as store:
            for session, length in LENGTHS.items():
                store.restore(factories.session(session, principal="p"), batches(session, length))
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in (*_MANY_SESSIONS, "VACUUM ANALYZE"):
                connection.execute(statement.encode())
            for table in TABLES:  # what a vacuum looks at would be counted too
                connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)".encode())
        yield url


@pytest.fixture(scope="module", params=_MODES)
def meter(request: pytest.FixtureRequest, filled: str) -> Iterator[Meter]:
    made = Meter(filled, request.param)
    yield made
    made.close()


def alike(one: int, other: int, *, lanes: int = 1) -> bool:
    return abs(one - other) <= _SHARE * min(one, other) + _SLACK + 2 * lanes


def check_windows(meter: Meter, number: int) -> None:
    unequal: list[str] = []
    for given in criteria():
        costs: list[int] = []
        for session in (SHORT, LONG):
            window = list(windows(LENGTHS[session]))[number]
            read = methodcaller("events", session, EventFilter(**given, **window))
            meter.cost_of(read)  # the boundary is kept from now on
            costs.append(meter.cost_of(read))
        if not alike(*costs, lanes=12):
            unequal.append(f"{given}, window {number}: {costs[0]} and {costs[1]}")
    assert not unequal, "\n".join([f"{len(unequal)} differ:", *unequal[:10]])


@pytest.mark.parametrize("number", [0, 2])
def test_every_bounded_shape_costs_the_same_in_a_long_log(meter: Meter, number: int) -> None:
    check_windows(meter, number)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(6))
def test_every_window_does(meter: Meter, number: int) -> None:
    check_windows(meter, number)


_RARE: Final[tuple[dict[str, Any], ...]] = (
    {"event_types": frozenset({factories.PROGRESS})},
    {"event_types": frozenset({EventType.COMPACTION})},
    {"message_types": frozenset({MessageType.SYSTEM, MessageType.TOOL})},
)


@pytest.mark.parametrize("view", [False, True])
def test_rare_events_are_found_without_passing_the_others(meter: Meter, *, view: bool) -> None:
    for given in _RARE:
        read = [methodcaller("events", name, EventFilter(**given, active_view=view)) for name in (SHORT, LONG)]
        assert alike(*map(meter.cost_of, read), lanes=4), given


_SMALL: Final[dict[str, Callable[[str], Any]]] = {
    "version": partial(methodcaller, "version"),
    "find": partial(methodcaller, "find"),
    "find_events": lambda name: methodcaller("find_events", name, event_ids=["e3", "e900", "none"]),
    "find_run": lambda name: methodcaller("find_events", name, run_id="none"),
    "take_turn": lambda name: methodcaller("take_turn", name, Turn("t")),
    "release_turn": lambda name: methodcaller("release_turn", name, "t"),
    "view": lambda name: methodcaller("events", name, EventFilter(active_view=True)),
    "as of": lambda name: methodcaller("events", name, EventFilter(active_view=True, last=5), as_of=LENGTHS[name] - 50),
    "replay": lambda name: lambda store: attempt(store, name, store.events(name, EventFilter.last(1))),
    "conflict": lambda name: lambda store: attempt(store, name, [factories.user(10**6, session_id=name)]),
}


@pytest.mark.parametrize("name", _SMALL)
def test_small_calls_cost_the_same(meter: Meter, name: str) -> None:
    # The least of some: a statement may also tidy up behind those before it.
    calls = [_SMALL[name](session) for session in (SHORT, LONG)]
    short, long = [min(meter.cost_of(call) for _ in range(4)) for call in calls]
    # A session's row that was written to often has left versions behind, however long its log is.
    assert long <= short or alike(short, long), (short, long)


def test_appending_costs_the_same_at_any_length(filled: str) -> None:
    """Each of the six indexes is a level or two higher, and each event goes into all of them."""
    meter = Meter(filled, _MODES[1])
    costs: dict[int, list[int]] = {1: [], 3: []}
    for session in (SHORT, LONG):
        copy = f"copy of {session}"
        number = meter.store.fork(session, factories.session(copy)) + 1
        meter.store.append(copy, [factories.user(number, session_id=copy)])
        for count, found in costs.items():
            batch = [factories.user(number + count + n, session_id=copy) for n in range(count)]
            found.append(meter.cost_of(methodcaller("append", copy, batch)))
        meter.store.delete(copy)
    meter.close()
    for count, found in costs.items():
        assert alike(*found, lanes=6 * count), costs


def test_a_listing_costs_its_page(meter: Meter) -> None:
    few, more = (meter.cost_of(methodcaller("list", principal="owner", limit=limit)) for limit in (5, 50))
    assert few + 45 <= more < 1_000
    assert alike(few, meter.cost_of(methodcaller("list", principal="other", limit=5)))


def test_a_read_that_scans_is_noticed(meter: Meter) -> None:
    """The meter tells a search from a walk."""
    scan = [methodcaller("events", name, EventFilter.keyword_search("nowhere")) for name in (SHORT, LONG)]
    assert not alike(*map(meter.cost_of, scan), lanes=12)
