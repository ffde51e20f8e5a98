"""Bringing a file to the newest schema, on command (R-13)."""

from __future__ import annotations

from turnlog.errors import SchemaVersionError
from turnlog.storage.migrations import Migration, migrations, statements
from turnlog.storage.sql.drivers.sqlite import connecting
from turnlog.storage.sql.drivers.sqlite.connecting import Connection, SqliteOptions, connect
from turnlog.storage.sql.drivers.sqlite.errors import translated


def schema_version(options: SqliteOptions) -> int:
    """The schema that the file is at, 0 for an empty one; raises for a file of another program."""
    connection = connect(options)
    try:
        with translated(options.path):
            return connecting.found_version(connection, options.path)
    finally:
        connection.close()


def migrate(options: SqliteOptions) -> list[Migration]:
    """Take the steps that the file lacks; returns them, none if it is at the newest schema already.

    Each step is one transaction with its number in it: an interrupted run is finished by the next one, and of processes
    that start at once each finds what the others have done. Readers go on meanwhile; writers wait for a step.
    """
    taken: list[Migration] = []
    connection = connect(options)
    try:
        with translated(options.path):
            taken += (step for step in migrations("sqlite") if _take(connection, options.path, step))
    finally:
        connection.close()
    return taken


def _take(connection: Connection, place: str, migration: Migration) -> bool:
    """Take a step if the file is at the one before; the number is looked at inside the transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = connecting.found_version(connection, place)
        newest = migrations("sqlite")[-1].number
        if found > newest:
            message = f"{place} has schema {found}; this turnlog knows {newest}: upgrade turnlog"
            raise SchemaVersionError(message, found, newest)
        is_next = found == migration.number - 1
        if is_next:
            for statement in statements(migration.sql):
                connection.execute(statement)
            connecting.mark(connection, migration.number)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return is_next
