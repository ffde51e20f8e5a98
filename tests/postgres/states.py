"""The state that the fault tests begin with, in a database; putting it back quickly; and what a database holds."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import psycopg
from psycopg import Connection
from psycopg.errors import InsufficientPrivilege

from tests.faults.operations import clock, prepare
from tests.faults.stores import Dump
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.sql import SqlRepository
from turnlog.storage.sql.drivers.postgres import PostgresDriver, PostgresOptions

#: In the order in which they can be filled.
TABLES: Final = ("session", "session_document", "session_attribute", "event", "token_count", "store_setting")
_OF_SESSIONS: Final = TABLES[1:5]
_BLOCKING: Final = b"""
  WITH RECURSIVE waits (pid) AS (
    SELECT unnest(pg_blocking_pids(%s)) UNION SELECT b.pid FROM waits, unnest(pg_blocking_pids(waits.pid)) AS b (pid))
  SELECT count(*), bool_or(pid = %s) FROM waits"""
_FIND_DEADLOCKS_AT_ONCE: Final = """
  DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = 1', current_database()); END $$"""


class Database:
    """A database whose content is what ``prepare`` writes, each time that it is ``reset``."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.connection: Connection = psycopg.connect(url, autocommit=True)
        with self.store() as store:
            prepare(store)
        with suppress(InsufficientPrivilege):  # then it takes its time
            self._run(_FIND_DEADLOCKS_AT_ONCE)
        self._run("CREATE SCHEMA saved")
        for table in TABLES:
            self._run(f"CREATE TABLE saved.{table} AS SELECT * FROM public.{table}")  # noqa: S608 - our own names
        (self._last_key,) = self._run("SELECT max(key) FROM session").fetchall()[0]

    def _run(self, statement: str) -> psycopg.Cursor[tuple[Any, ...]]:
        return self.connection.execute(statement.encode())

    def store(self) -> SqlRepository:
        """A store on it that goes by the fault tests' clock; not open yet."""
        driver = PostgresDriver(PostgresOptions(conninfo=self.url, pool_max=1))
        return SqlRepository(driver, clock(), token_counter=EstimatedTokens())

    def reset(self) -> None:
        """Everything as it was; every transaction on it must have ended."""
        copies = "; ".join(
            f"INSERT INTO public.{table} OVERRIDING SYSTEM VALUE SELECT * FROM saved.{table}"  # noqa: S608 - our own
            for table in TABLES
        )
        self._run(
            f"BEGIN; DELETE FROM session; DELETE FROM store_setting; {copies};"  # noqa: S608 - our own
            f" SELECT setval(pg_get_serial_sequence('session', 'key'), {self._last_key}); COMMIT"
        )

    def empty(self) -> None:
        """No session, and keys from the first on."""
        self._run("DELETE FROM session; SELECT setval(pg_get_serial_sequence('session', 'key'), 1, false)")

    def ids(self) -> set[str]:
        """Of all sessions that have a row."""
        return {session_id for (session_id,) in self._run("SELECT id FROM session").fetchall()}

    def dump(self) -> Dump:
        """All rows of all tables, with the session's id for its key: keys are not given back, so they differ."""
        found: Dump = {"session": sorted(row[1:] for row in self._run("SELECT * FROM session").fetchall())}
        for table in _OF_SESSIONS:
            text = f"SELECT s.id, t.* FROM {table} t JOIN session s ON s.key = t.session_key"  # noqa: S608 - the same
            cursor = self._run(text)
            place = [column.name for column in cursor.description or ()].index("session_key")
            rows = cursor.fetchall()
            found[table] = sorted((row[:place] + row[place + 1 :] for row in rows), key=repr)
        found["store_setting"] = self._run("SELECT * FROM store_setting ORDER BY name").fetchall()
        return found

    def open_transactions(self) -> int:
        """How many connections of others on this database are in a transaction."""
        found = self._run(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND state LIKE '%in transaction%'"
        ).fetchall()
        count: int = found[0][0]
        return count

    def is_in_transaction(self, pid: int) -> bool:
        """Whether it has one open."""
        text = "SELECT state LIKE '%%in transaction%%' FROM pg_stat_activity WHERE pid = %s"
        found = self.connection.execute(text, (pid,)).fetchall()
        return bool(found and found[0][0])

    def terminate(self, pid: int) -> None:
        """End the session on the server, and wait until it has ended."""
        self.connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
        while self.connection.execute("SELECT FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchall():
            pass

    def is_blocked(self, pid: int) -> bool:
        """Whether its statement waits for a lock of somebody else who does not wait for it: the server ends that."""
        ((blocking, is_circle),) = self.connection.execute(_BLOCKING, (pid, pid)).fetchall()
        return bool(blocking) and not is_circle

    def cancel(self, pid: int) -> None:
        """End the statement that it waits with."""
        self.connection.execute("SELECT pg_cancel_backend(%s)", (pid,))

    def close(self) -> None:
        self.connection.close()
