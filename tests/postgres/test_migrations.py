"""R-13 on a server: numbered steps lead to the full schema; refused, interrupted, finished, and safe at once."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack
from typing import Any, Self
from unittest.mock import patch

import psycopg
import pytest

from tests.concurrency.processes import WorkerProcess
from tests.postgres.conftest import new_database
from tests.postgres.releases import STEP, next_release
from turnlog.errors import ForeignStoreError, SchemaVersionError, StoreBusyError, StoreUnavailableError, TurnlogError
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.migrations import SCHEMA_VERSION, full_schema, migrations, statements
from turnlog.storage.opening import open_async_store, open_store
from turnlog.storage.protocol import SessionRepository
from turnlog.storage.sql.drivers.postgres import PostgresOptions, migrating
from turnlog.testing import factories

pytestmark = pytest.mark.store

#: All that the catalog says of tables, columns, keys and indexes in the schema that the session is in.
_COLUMNS = """
    SELECT c.relname, c.relkind::text, c.reloptions::text, a.attname, a.attnum, a.attnotnull, a.attidentity::text,
        format_type(a.atttypid, a.atttypmod), a.attcollation::regcollation::text, pg_get_expr(d.adbin, d.adrelid)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE c.relnamespace = current_schema::regnamespace
"""
_CONSTRAINTS = """
    SELECT conname, conrelid::regclass::text, contype::text, pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = current_schema::regnamespace
"""
_INDEXES = """
    SELECT indexrelid::regclass::text, replace(pg_get_indexdef(indexrelid), current_schema || '.', ''), indisvalid
    FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE c.relnamespace = current_schema::regnamespace
"""
_CATALOG = (_COLUMNS, _CONSTRAINTS, _INDEXES)


def catalog(url: str, schema: str, scripts: list[str]) -> list[list[tuple[Any, ...]]]:
    """What the scripts make, in a schema of their own."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        connection.execute(f"SET search_path = {schema}".encode())
        for script in scripts:
            for statement in statements(script):
                connection.execute(statement.encode())
        return [sorted(connection.execute(query.encode()).fetchall(), key=repr) for query in _CATALOG]


def test_the_steps_make_the_full_schema(empty_database: str) -> None:
    whole = catalog(empty_database, "whole", [full_schema("postgres")])
    stepwise = catalog(empty_database, "stepwise", [step.sql for step in migrations("postgres")])
    assert all(map(len, whole))
    assert stepwise == whole


@pytest.mark.parametrize(
    "change", ["branch TEXT => branch VARCHAR", "kind, position) => kind)", "NOT NULL => ", " ON DELETE CASCADE => "]
)
def test_a_difference_in_the_catalog_is_seen(empty_database: str, change: str) -> None:
    before, after = change.split(" => ")
    text = full_schema("postgres")
    assert before in text
    assert catalog(empty_database, "one", [text]) != catalog(empty_database, "two", [text.replace(before, after, 1)])


@pytest.fixture
def options(empty_database: str) -> PostgresOptions:
    """A database at this release's schema, with an event in it."""
    migrating.migrate(PostgresOptions(conninfo=empty_database))
    with opened(empty_database) as store:
        store.create(factories.session())
        store.append("s", [factories.user(1)])
    return PostgresOptions(conninfo=empty_database)


def opened(url: str) -> SessionRepository:
    return open_store(url, token_counter=EstimatedTokens())


def refuse_in_both_colours(url: str, match: str) -> None:
    with pytest.raises(SchemaVersionError, match=match):
        opened(url)

    async def use() -> None:
        store = open_async_store(url, token_counter=EstimatedTokens())
        try:
            await store.version("s")
        finally:
            await store.close()

    with pytest.raises(SchemaVersionError, match=match):
        asyncio.run(use())


def test_a_database_without_a_schema_is_refused_with_the_command(empty_database: str) -> None:
    refuse_in_both_colours(empty_database, "run `turnlog migrate apply")
    with psycopg.connect(empty_database) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)


def test_an_old_database_is_refused_with_the_command_and_migrated_in_place(options: PostgresOptions) -> None:
    """CASE B145, B147."""
    with next_release() as added:
        refuse_in_both_colours(options.conninfo, "run `turnlog migrate apply")
        assert migrating.migrate(options) == [added]
        assert migrating.migrate(options) == []
        assert migrating.schema_version(options) == added.number
        with opened(options.conninfo) as store:
            assert store.append("s", [factories.user(2)]).version == 2


def test_a_newer_database_is_refused(options: PostgresOptions) -> None:
    with next_release():
        migrating.migrate(options)
    refuse_in_both_colours(options.conninfo, "upgrade turnlog")
    with pytest.raises(SchemaVersionError, match="upgrade turnlog"):
        migrating.migrate(options)


def test_a_strangers_database_is_not_touched(empty_database: str) -> None:
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute("CREATE TABLE session (theirs INTEGER)")
    before = catalog_of(empty_database)
    with pytest.raises(ForeignStoreError):
        migrating.migrate(PostgresOptions(conninfo=empty_database))
    assert catalog_of(empty_database) == before


def catalog_of(url: str) -> list[list[tuple[Any, ...]]]:
    with psycopg.connect(url) as connection:
        return [sorted(connection.execute(query.encode()).fetchall(), key=repr) for query in _CATALOG]


class _Breaking:
    """Connections that break before their n-th statement, as if the process had been killed there."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, conninfo: str, **options: Any) -> psycopg.Connection:
        connection = _CONNECT(conninfo, **options)
        execute = connection.execute

        def counted(*arguments: Any, **more: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                connection.pgconn.finish()
            return execute(*arguments, **more)

        connection.execute = counted  # type: ignore[method-assign]
        return connection


_CONNECT = psycopg.connect


def test_a_run_that_breaks_anywhere_leaves_nothing_and_is_finished_by_the_next(admin_url: str) -> None:
    """Before each statement of the first step, and after the last."""
    statements_of_the_first = len(statements(migrations("postgres")[0].sql))
    with new_database(admin_url) as url:
        options = PostgresOptions(conninfo=url)
        broken = 0
        for number in range(1, statements_of_the_first + 20):
            with patch.object(psycopg, "connect", _Breaking(number)):
                try:
                    migrating.migrate(options)
                except StoreUnavailableError:
                    broken += 1
            if migrating.schema_version(options):
                break
            assert catalog_of(url) == [[], [], []]
        assert broken >= statements_of_the_first
        assert migrating.migrate(options) == []
        with opened(url) as store:
            store.create(factories.session())


def test_a_process_killed_in_the_middle_of_a_step(options: PostgresOptions) -> None:
    """The step waits for a reader's table when it is killed; the next run takes it as if nothing had been."""
    with ExitStack() as stack:
        reader = stack.enter_context(psycopg.connect(options.conninfo))
        reader.execute("SELECT FROM event")
        killed = stack.enter_context(WorkerProcess("migrate", "tests.postgres.worker", url=options.conninfo, step=STEP))
        assert killed.hear() == "ready"
        killed.tell("go")
        wait_for_a_blocked_statement(options.conninfo)
    before = catalog_of(options.conninfo)
    assert migrating.schema_version(options) == SCHEMA_VERSION
    with next_release() as added:
        assert migrating.migrate(options) == [added]
    assert catalog_of(options.conninfo) != before


def wait_for_a_blocked_statement(url: str) -> None:
    waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    with psycopg.connect(url, autocommit=True) as connection:
        while not connection.execute(waiting.encode()).fetchall():
            pass


def test_a_step_lets_others_pass_while_it_waits_for_a_table(
    options: PostgresOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a lock that waits, every reader and writer waits too: it is given up, and asked for again."""
    monkeypatch.setattr(migrating, "_LONGEST_WAIT", "20ms")
    monkeypatch.setattr(migrating, "_LONGEST_PAUSE", 0.01)
    monkeypatch.setattr(migrating, "_MOST_ATTEMPTS", 3)
    with opened(options.conninfo) as store, next_release(), psycopg.connect(options.conninfo) as reader:
        reader.execute("SELECT FROM event")
        with pytest.raises(StoreBusyError):
            migrating.migrate(options)
        assert store.append("s", [factories.user(2)]).version == 2
        reader.rollback()
        assert len(migrating.migrate(options)) == 1


def test_eight_processes_at_once_take_each_step_once(empty_database: str) -> None:
    with ExitStack() as stack:
        started = [
            stack.enter_context(WorkerProcess("migrate", "tests.postgres.worker", url=empty_database)) for _ in range(8)
        ]
        for worker in started:
            assert worker.hear() == "ready"
        for worker in started:
            worker.tell("go")
        assert sorted(worker.hear() for worker in started) == [[]] * 7 + [[1]]
    with opened(empty_database) as store:
        store.create(factories.session())


class _Traffic:
    """Appends and reads in three threads, each through a store of its own, until it is left."""

    def __init__(self, url: str) -> None:
        self.errors: list[BaseException] = []
        self._stores = [opened(url) for _ in range(3)]
        self._stop = threading.Event()
        self._rounds = threading.Semaphore(0)
        self._threads = [
            threading.Thread(target=self._run, args=(store, f"traffic-{number}"))
            for number, store in enumerate(self._stores)
        ]

    def _run(self, store: SessionRepository, name: str) -> None:
        try:
            while not self._stop.is_set():
                store.create(factories.session(name))
                for number in range(12):
                    self._round(store, name, number)
                store.delete(name)
        except (TurnlogError, AssertionError) as error:
            self.errors.append(error)
            self._rounds.release(100)

    def _round(self, store: SessionRepository, name: str, number: int) -> None:
        store.append(name, [factories.user(number, session_id=name)])
        store.append(name, factories.turn(100 + 4 * number, session_id=name))
        assert [event.position for event in store.events(name)] == list(range(1, 5 * number + 6))
        self._rounds.release()

    def flow(self, rounds: int = 12) -> None:
        """Return when so many rounds have been made since."""
        for _ in range(rounds):
            self._rounds.acquire()

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        for store in self._stores:
            store.close()


def test_readers_and_writers_go_on_while_steps_are_taken(options: PostgresOptions) -> None:
    with _Traffic(options.conninfo) as traffic:
        for number in range(5):
            traffic.flow()
            step = f"CREATE TABLE more{number} (a INTEGER); ALTER TABLE event ADD COLUMN b{number} TEXT"
            with next_release(f"{step}; CREATE INDEX ON event (session_key, b{number})"):
                assert len(migrating.migrate(options)) == 1
            back_to_this_release(options.conninfo)
        traffic.flow()
    assert not traffic.errors


def back_to_this_release(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE store_setting SET value = %s WHERE name = 'schema_version'", (str(SCHEMA_VERSION),))
