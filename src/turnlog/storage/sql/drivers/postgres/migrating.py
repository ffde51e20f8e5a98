"""Creating and changing a server's schema: on command, never on connecting (R-13)."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import psycopg
from psycopg import Connection

from turnlog.errors import SchemaVersionError
from turnlog.storage.migrations import SCHEMA_VERSION, Migration, migrations, statements
from turnlog.storage.sql.drivers.postgres.errors import translation
from turnlog.storage.sql.drivers.postgres.options import PostgresOptions

#: The advisory lock that one migrating process holds: "turnlog" in ASCII.
_LOCK = 0x7475726E6C6F67


def schema_version(options: PostgresOptions) -> int:
    """The schema that the database is at, 0 for none."""
    with _connected(options) as connection:
        return _version(connection)


def migrate(options: PostgresOptions) -> list[Migration]:
    """Bring the database to the newest schema; returns the steps that were taken, none if it is there already.

    Each step is one transaction with its number in it, so an interrupted run is finished by the next one. Of processes
    that start at once one takes the steps and the others wait for it. Readers and writers go on meanwhile.
    """
    taken: list[Migration] = []
    with _connected(options) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        try:
            found = _version(connection)
            if found > SCHEMA_VERSION:
                message = f"{options.place} has schema {found}; this turnlog knows {SCHEMA_VERSION}: upgrade turnlog"
                raise SchemaVersionError(message, found, SCHEMA_VERSION)
            for migration in migrations("postgres"):
                if migration.number > found:
                    _take(connection, migration)
                    taken.append(migration)
        finally:
            if not connection.broken:
                connection.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))
    return taken


def _take(connection: Connection, migration: Migration) -> None:
    with connection.transaction():
        for statement in statements(migration.sql):
            connection.execute(statement.encode())
        connection.execute("DELETE FROM store_setting WHERE name = 'schema_version'")
        connection.execute("INSERT INTO store_setting VALUES ('schema_version', %s)", (str(migration.number),))


def _version(connection: Connection) -> int:
    table = connection.execute("SELECT to_regclass('store_setting')").fetchone()
    if table is None or table[0] is None:
        return 0
    found = connection.execute("SELECT value FROM store_setting WHERE name = 'schema_version'").fetchone()
    return int(found[0]) if found else 0


@contextmanager
def _connected(options: PostgresOptions) -> Generator[Connection, None, None]:
    try:
        with psycopg.connect(options.conninfo, autocommit=True) as connection:
            yield connection
    except psycopg.Error as error:
        raise translation(error, options.place) from error
