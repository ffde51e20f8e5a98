"""Creating and changing a server's schema: on command, never on connecting (R-13)."""

from __future__ import annotations

import random
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg import Connection, errors

from turnlog.errors import ForeignStoreError, SchemaVersionError
from turnlog.storage.migrations import SCHEMA_VERSION, Migration, mark, migrations, statements
from turnlog.storage.sql.drivers.postgres.errors import translation
from turnlog.storage.sql.drivers.postgres.options import PostgresOptions

#: The advisory lock that one migrating process holds: "turnlog" in ASCII.
_LOCK: Final = 0x7475726E6C6F67
#: A step that waits for a table has everybody else wait behind it: it gives up soon, lets them pass, and tries again.
_LONGEST_WAIT: Final = "2s"
_MOST_ATTEMPTS: Final = 30
_LONGEST_PAUSE: Final = 2.0


def schema_version(options: PostgresOptions) -> int:
    """The schema that the database is at, 0 for none."""
    with _connected(options) as connection:
        return _version(connection)


def migrate(options: PostgresOptions) -> list[Migration]:
    """Bring the database to the newest schema; returns the steps that were taken, none if it is there already.

    Each step is one transaction with its number in it, so an interrupted run is finished by the next one. Of processes
    that start at once one takes the steps and the others wait for it. Readers and writers go on meanwhile: a step that
    does not get a table within two seconds lets them pass and tries again; ``StoreBusyError`` after a minute or two.
    """
    taken: list[Migration] = []
    with _connected(options) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        try:
            found = _version(connection)
            _check(connection, found, options.place)
            for migration in migrations("postgres"):
                if migration.number > found:
                    _take_patiently(connection, migration)
                    taken.append(migration)
        finally:
            if not connection.broken:
                connection.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))
    return taken


def _check(connection: Connection, found: int, place: str) -> None:
    if found > SCHEMA_VERSION:
        message = f"{place} has schema {found}; this turnlog knows {SCHEMA_VERSION}: upgrade turnlog"
        raise SchemaVersionError(message, found, SCHEMA_VERSION)
    if found == 0 and _exists(connection, "session"):
        raise ForeignStoreError(f"{place} has a table `session` that is not turnlog's; it was not touched")


def _take_patiently(connection: Connection, migration: Migration) -> None:
    for _ in range(_MOST_ATTEMPTS - 1):
        try:
            _take(connection, migration)
        except errors.LockNotAvailable:
            time.sleep(_LONGEST_PAUSE * random.random())  # noqa: S311 - spreads tries, guards nothing
        else:
            return
    _take(connection, migration)


def _take(connection: Connection, migration: Migration) -> None:
    with connection.transaction():
        connection.execute("SELECT set_config('lock_timeout', %s, true)", (_LONGEST_WAIT,))
        for statement in statements(migration.sql) + statements(mark("postgres", migration.number)):
            connection.execute(statement.encode())


def _version(connection: Connection) -> int:
    if not _exists(connection, "store_setting"):
        return 0
    found = connection.execute("SELECT value FROM store_setting WHERE name = 'schema_version'").fetchone()
    return int(found[0]) if found else 0


def _exists(connection: Connection, table: str) -> bool:
    found = connection.execute("SELECT to_regclass(%s)", (table,)).fetchone()
    return found is not None and found[0] is not None


@contextmanager
def _connected(options: PostgresOptions) -> Generator[Connection, None, None]:
    try:
        with psycopg.connect(options.address, autocommit=True) as connection:
            yield connection
    except psycopg.Error as error:
        raise translation(error, options.place) from error
