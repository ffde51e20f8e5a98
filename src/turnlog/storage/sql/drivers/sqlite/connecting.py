"""Opening a file: settings of a connection, whose file it is, and its first creation (R-13, R-15)."""

from __future__ import annotations

import os
import sqlite3
import time
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from turnlog.errors import ForeignStoreError, InvalidValueError, SchemaVersionError, StoreUnavailableError
from turnlog.storage import migrations
from turnlog.storage.migrations import SCHEMA_VERSION, SQLITE_APPLICATION_ID, full_schema, statements
from turnlog.storage.sql.drivers.sqlite.errors import translated

Connection: TypeAlias = sqlite3.Connection

#: STRICT tables came with 3.37.
OLDEST_SQLITE: Final = (3, 37, 0)


#: Seconds that a writer may be told to wait for another process.
LONGEST_BUSY_TIMEOUT: Final = 3600


class SqliteOptions(Struct, frozen=True, kw_only=True):
    """How to open a file. ``path`` ``":memory:"`` is one database for all threads, gone when the store is closed.

    A path is made absolute and its links are followed at once: connections are made now and later, from whatever is the
    working folder then, and all of them, by whatever name, share the lock file beside the database.

    ``synchronous`` FULL makes every acknowledged append durable; NORMAL risks the last ones at a power cut; OFF risks
    the file and needs ``unsafe`` too. ``busy_timeout`` is how many seconds a writer waits for another process.
    """

    path: str
    synchronous: str = "FULL"
    busy_timeout: float = 30.0
    unsafe: bool = False

    def __post_init__(self) -> None:
        if self.synchronous not in ("FULL", "NORMAL", "OFF"):
            raise InvalidValueError(f"synchronous is FULL, NORMAL or OFF, not {self.synchronous!r}")
        if self.synchronous == "OFF" and not self.unsafe:
            raise InvalidValueError("synchronous=OFF may corrupt the file at a power cut; it needs unsafe=yes as well")
        if not 0 <= self.busy_timeout <= LONGEST_BUSY_TIMEOUT:
            raise InvalidValueError(f"busy_timeout is 0 to {LONGEST_BUSY_TIMEOUT} seconds, not {self.busy_timeout!r}")
        if not self.path or "\0" in self.path:
            raise InvalidValueError(f"{self.path!r} is no path of a file")
        if not self.in_memory:
            force_setattr(self, "path", os.path.realpath(self.path))

    @property
    def in_memory(self) -> bool:
        """Whether nothing is written to disk."""
        return self.path == ":memory:"


def connect(
    options: SqliteOptions, *, read_only: bool = False, factory: type[Connection] = sqlite3.Connection
) -> Connection:
    """A connection with our settings. It may be used by any thread, one at a time."""
    with translated(options.path):
        connection = sqlite3.connect(
            options.path,
            timeout=options.busy_timeout,
            isolation_level=None,  # transactions are begun and ended by us alone
            check_same_thread=False,
            cached_statements=256,
            factory=factory,
        )
        try:
            _configure(connection, options, read_only=read_only)
        except BaseException:
            connection.close()
            raise
        return connection


def _configure(connection: Connection, options: SqliteOptions, *, read_only: bool) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(f"PRAGMA synchronous = {options.synchronous}")
    # A file may come from anywhere: its schema must not run functions, and damaged cells are to be noticed.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    # Several connections that checkpoint at once can corrupt a file before SQLite 3.51.3: only our writer does, under
    # a lock.
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    if read_only:
        connection.execute("PRAGMA query_only = ON")


def prepare(connection: Connection, options: SqliteOptions) -> None:
    """Make sure that the file is ours and at our schema; create the schema in an empty file, once, whoever is first."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise StoreUnavailableError(f"SQLite {sqlite3.sqlite_version} is too old: turnlog needs 3.37 or newer")
    with translated(options.path):
        # One snapshot: while somebody else creates the schema, half an answer would be of a stranger.
        connection.execute("BEGIN")
        is_ours = _is_ours(connection, options.path)
        connection.execute("COMMIT")
        if not is_ours:
            _create(connection, options)
        if not options.in_memory:
            _use_wal(connection, options)


def _is_ours(connection: Connection, place: str) -> bool:
    """True for a store at our schema, False for an empty file; raises for anything else."""
    version = found_version(connection, place)
    if not version:
        return False
    if version > SCHEMA_VERSION:
        found = f"schema {version}; this one knows {SCHEMA_VERSION}"
        message = f"{place} was written by a newer turnlog ({found}): upgrade turnlog"
        raise SchemaVersionError(message, version, SCHEMA_VERSION)
    if version < SCHEMA_VERSION:
        message = f"{place} has schema {version}, not {SCHEMA_VERSION}: run `turnlog migrate apply`"
        raise SchemaVersionError(message, version, SCHEMA_VERSION)
    return True


def found_version(connection: Connection, place: str) -> int:
    """The schema that a file of ours is at, 0 for an empty file; raises for the file of another program."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if not tables and not application and not version:
        return 0
    if application != SQLITE_APPLICATION_ID or version < 1:
        raise ForeignStoreError(f"{place} is a database of another program; it was not touched")
    return version


def mark(connection: Connection, version: int) -> None:
    """Write into the header whose file it is, and at which schema."""
    for statement in statements(migrations.mark("sqlite", version)):
        connection.execute(statement)


def _create(connection: Connection, options: SqliteOptions) -> None:
    """Create the schema in one transaction. Whoever waits for it finds it done, and looks again before creating."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not _is_ours(connection, options.path):
            for statement in statements(full_schema("sqlite")):
                connection.execute(statement)
            mark(connection, SCHEMA_VERSION)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _use_wal(connection: Connection, options: SqliteOptions) -> None:
    """Switch to WAL. The switch wants the file for itself and does not wait for it, so we do."""
    deadline = time.monotonic() + options.busy_timeout
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
            continue
        if mode != "wal":
            raise StoreUnavailableError(f"{options.path}: the journal mode is {mode}; turnlog needs WAL (a local disk)")
        return
