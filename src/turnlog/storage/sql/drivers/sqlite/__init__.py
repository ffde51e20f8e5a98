"""SQLite through the standard library, in WAL mode."""

from turnlog.storage.sql.drivers.sqlite.connecting import SqliteOptions
from turnlog.storage.sql.drivers.sqlite.driver import AsyncSqliteDriver, SqliteDriver

__all__ = ["AsyncSqliteDriver", "SqliteDriver", "SqliteOptions"]
