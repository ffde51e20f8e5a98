"""Whatever befalls a commit or a connection, the caller is told the truth (R-6, R-14)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, cast

import psycopg
import pytest
from psycopg import Connection
from psycopg_pool import ConnectionPool

from tests.postgres.proxy import Fate, Link, Proxy, proxied
from turnlog.errors import (
    AppendOutcomeUnknownError,
    SessionNotFoundError,
    StoreUnavailableError,
    VersionConflictError,
)
from turnlog.log.events import SessionEvent
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.opening import open_async_store, open_store
from turnlog.storage.protocol import SessionRepository
from turnlog.storage.sql import SqlRepository
from turnlog.storage.sql.driver import CommitFailedError
from turnlog.storage.sql.drivers.postgres import PostgresDriver
from turnlog.testing import factories

pytestmark = pytest.mark.store

ONE: Final = [factories.user(1)]
BATCH: Final = factories.turn(1)
SIZES: Final = pytest.mark.parametrize("batch", [ONE, BATCH], ids=["one event", "a batch"])


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    with proxied(url) as made:
        yield made


@pytest.fixture
def store(url: str) -> Iterator[SessionRepository]:
    """Straight to the server, with a session in it."""
    with opened(url) as made:
        made.create(factories.session())
        yield made


def opened(url: str, **options: Any) -> SessionRepository:
    """A store with one connection."""
    asked = "&".join(f"{name}={value}" for name, value in ({"pool_max": 1} | options).items())
    return open_store(f"{url}{'&' if '?' in url else '?'}{asked}", token_counter=EstimatedTokens())


def pool_of(store: SessionRepository) -> ConnectionPool[Connection]:
    driver: Any = cast("SqlRepository", store)._driver
    pool: ConnectionPool[Connection] = driver._pools.current()
    return pool


def once(fate: Fate, *kinds: str) -> Callable[[Link, str], Fate | None]:
    """Strikes the first of these kinds, then never again."""
    left: list[Fate] = [fate]

    def judge(_link: Link, what: str) -> Fate | None:
        return left.pop() if what in kinds and left else None

    return judge


def ids(events: Sequence[SessionEvent]) -> list[str]:
    return [event.id for event in events]


def commits_of_appends_never_arrive(link: Link, what: str) -> Fate | None:
    return "never" if what == "commit" and link.inserts else None


@SIZES
def test_an_append_whose_answer_is_lost_is_settled_by_its_ids(
    store: SessionRepository, proxy: Proxy, batch: list[SessionEvent]
) -> None:
    """It is stored, once, and the caller hears so."""
    with opened(proxy.url) as through:
        through.version("s")
        proxy.judge = once("answer lost", "committed", "appended")
        result = through.append("s", batch)
        assert proxy.struck == 1
        assert (ids(result.events), result.version) == (ids(batch), len(batch))
        assert result.is_replay is (batch is ONE)  # of a single event nobody knows whose it is
        assert ids(store.events("s")) == ids(batch)
        assert through.append("s", batch).is_replay


@SIZES
async def test_so_it_is_for_tasks(store: SessionRepository, proxy: Proxy, batch: list[SessionEvent]) -> None:
    async with open_async_store(proxy.url, token_counter=EstimatedTokens()) as through:
        await through.version("s")
        proxy.judge = once("answer lost", "committed", "appended")
        result = await through.append("s", batch)
        assert (proxy.struck, ids(result.events), result.version) == (1, ids(batch), len(batch))
        assert ids(store.events("s")) == ids(batch)


def test_competitors_do_not_send_an_append_the_long_way_round(
    store: SessionRepository, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has waited for the session's row goes by its newest version, in the same statement."""
    with opened(url, pool_max=4) as through, ThreadPoolExecutor(4) as pool, psycopg.connect(url) as holder:
        through.version("s")

        def refuse(*_: object) -> None:
            raise AssertionError("an append took a transaction")

        monkeypatch.setattr(PostgresDriver, "write", refuse)
        holder.execute("SELECT FROM session FOR UPDATE")
        pending = [pool.submit(through.append, "s", [factories.user(number)]) for number in range(1, 5)]
        wait_until_blocked(url, 4)
        holder.rollback()
        assert sorted(each.result(20).version for each in pending) == [1, 2, 3, 4]
    assert len(store.events("s")) == 4


def test_a_commit_that_never_arrives_has_stored_nothing(store: SessionRepository, proxy: Proxy) -> None:
    """So the append is made again, a few times; then it has failed, for certain."""
    with opened(proxy.url) as through:
        through.version("s")
        proxy.judge = once("never", "commit")
        assert not through.append("s", BATCH).is_replay
        assert proxy.struck == 1
        proxy.judge = commits_of_appends_never_arrive
        with pytest.raises(StoreUnavailableError) as failed:
            through.append("s", [factories.user(10), factories.user(11)])
        assert not isinstance(failed.value, AppendOutcomeUnknownError)
    assert ids(store.events("s")) == ids(BATCH)


def test_a_commit_that_comes_late_is_waited_for(store: SessionRepository, proxy: Proxy) -> None:
    """The look-up asks for the lock that the transaction under way still holds: it sees how that ends."""
    with opened(proxy.url) as through, ThreadPoolExecutor(1) as pool:
        through.version("s")
        proxy.judge = once("late", "commit")
        pending = pool.submit(through.append, "s", BATCH)
        assert proxy.has_struck.wait(20)
        wait_until_blocked(proxy.url)
        assert store.version("s") == 0
        proxy.let_through()
        result = pending.result(20)
    assert not result.is_replay
    assert ids(store.events("s")) == ids(BATCH)


def wait_until_blocked(url: str, count: int = 1) -> None:
    """Return when so many of the database's connections wait for a lock."""
    waiting = b"SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    with psycopg.connect(url, autocommit=True) as connection:
        while len(connection.execute(waiting).fetchall()) < count:
            pass


@SIZES
def test_what_cannot_be_settled_is_called_unknown_and_appending_again_is_safe(
    store: SessionRepository, proxy: Proxy, batch: list[SessionEvent]
) -> None:
    with opened(proxy.url, pool_timeout=0.2) as through:
        through.version("s")

        def cut(_link: Link, what: str) -> Fate | None:
            if what == "commit":
                return None
            proxy.is_refusing = True  # nobody gets through any more
            return "answer lost"

        proxy.judge = cut
        with pytest.raises(AppendOutcomeUnknownError) as unknown:
            through.append("s", batch)
        assert unknown.value.event_ids == tuple(ids(batch))
        proxy.is_refusing, proxy.judge = False, lambda _link, _what: None
    with opened(proxy.url) as through:
        assert through.append("s", batch).is_replay
    assert ids(store.events("s")) == ids(batch)


def test_a_log_that_was_deleted_meanwhile_leaves_the_outcome_unknown(store: SessionRepository, proxy: Proxy) -> None:
    """Another log under the same id says nothing about the first."""
    for batch in (BATCH, ONE):
        with opened(proxy.url) as through:
            through.version("s")

            def strike(_link: Link, what: str) -> Fate | None:
                if what == "commit":
                    return None
                store.delete("s")
                proxy.judge = lambda _link, _what: None
                return "answer lost"

            proxy.judge = strike
            with pytest.raises(AppendOutcomeUnknownError) as unknown:
                through.append("s", batch)
            assert isinstance(unknown.value.__cause__, SessionNotFoundError)
        store.create(factories.session())


def test_a_log_that_was_made_anew_meanwhile_leaves_the_outcome_unknown(store: SessionRepository, proxy: Proxy) -> None:
    """Its version is not the one that was expected: no reason to say that nothing was stored in the first."""
    with opened(proxy.url) as through:
        through.version("s")

        def strike(_link: Link, what: str) -> Fate | None:
            if what == "commit":
                return None
            store.delete("s")
            store.create(factories.session())
            store.append("s", [factories.user(2)])
            proxy.judge = lambda _link, _what: None
            return "answer lost"

        proxy.judge = strike
        with pytest.raises(AppendOutcomeUnknownError) as unknown:
            through.append("s", ONE, expected_version=0)
    assert isinstance(unknown.value.__cause__, VersionConflictError)


def test_other_writes_say_that_their_commit_failed(store: SessionRepository, proxy: Proxy) -> None:
    with opened(proxy.url) as through:
        through.version("s")
        proxy.judge = once("answer lost", "committed")
        with pytest.raises(CommitFailedError):
            through.create(factories.session("other"))
    assert store.find("other") is not None


class Watched:
    """The statements of a driver, each looked at before it is sent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[str] = []
        self.before: Callable[[Connection, str], None] = lambda _connection, _sql: None
        send = PostgresDriver._begun

        def begun(driver: PostgresDriver, connection: Connection, statement: Any) -> Any:
            self.sent.append(statement.sql)
            self.before(connection, statement.sql)
            return send(driver, connection, statement)

        monkeypatch.setattr(PostgresDriver, "_begun", begun)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


def terminate(connection: Connection, url: str) -> None:
    """End the session on the server, and wait until it has ended."""
    pid = connection.info.backend_pid
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", (pid,))
        while other.execute("SELECT FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchall():
            pass


def strike_first(url: str, part: str) -> Callable[[Connection, str], None]:
    left = [part]

    def before(connection: Connection, sql: str) -> None:
        if left and left[0] in sql:
            left.clear()
            terminate(connection, url)

    return before


@pytest.mark.parametrize("part", ["FOR UPDATE", "INSERT INTO event"])
def test_a_connection_lost_inside_a_transaction_is_replaced_and_the_append_made_again(
    store: SessionRepository, url: str, watched: Watched, part: str
) -> None:
    with opened(url) as through:
        through.version("s")
        watched.before = strike_first(url, part)
        assert not through.append("s", BATCH).is_replay
    assert ids(store.events("s")) == ids(BATCH)


@pytest.mark.parametrize("call", ["version", "events", "find"])
def test_a_read_whose_connection_is_lost_is_made_again(
    store: SessionRepository, url: str, watched: Watched, call: str
) -> None:
    store.append("s", BATCH)
    with opened(url) as through:
        expected = getattr(through, call)("s")
        watched.before = strike_first(url, "FROM session")
        assert getattr(through, call)("s") == expected


def test_all_connections_of_a_pool_may_be_lost_at_once(store: SessionRepository, url: str) -> None:
    """As after a restart of the server: the broken ones are found, not tried one after the other."""
    with opened(url, pool_min=8, pool_max=8) as through:
        pool_of(through).wait()
        kill_others(url)
        assert through.version("s") == 0
        kill_others(url)
        assert through.append("s", BATCH).version == 4
        kill_others(url)
        assert through.append("s", [factories.user(9)]).version == 5
    del store


def kill_others(url: str) -> None:
    """End every other session on the database, and wait until they have ended."""
    with psycopg.connect(url, autocommit=True) as connection:
        ended = connection.execute(
            "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
        pids = [pid for pid, _ in ended]
        while connection.execute("SELECT FROM pg_stat_activity WHERE pid = ANY(%s)", (pids,)).fetchall():
            pass
