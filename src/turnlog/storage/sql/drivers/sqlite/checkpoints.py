"""Checkpoints: moving the write-ahead log into the file, by one connection at a time.

Before SQLite 3.51.3 two connections that checkpoint and write at once can corrupt the file (the WAL-reset bug, in
3.7.0 to 3.51.2). So automatic checkpoints are off, and a writer that has committed enough checkpoints under an
exclusive lock on a file beside the database; a process that finds the lock taken leaves the work to its holder.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress

from turnlog.storage.sql.drivers.sqlite.connecting import Connection, SqliteOptions

try:
    import fcntl
except ImportError:  # Windows: SQLite's own locks have to do, and doctor says so
    fcntl = None  # type: ignore[assignment]

#: What a write-ahead log may collect before it is moved: about SQLite's own 1,000 pages.
_COMMITS = 200
_ROWS = 2_000


class Checkpointer:
    """Counts the commits of one connection and checkpoints with it now and then."""

    def __init__(self, connection: Connection, options: SqliteOptions) -> None:
        self._connection = connection
        self._options = options
        self._commits = 0
        self._rows = connection.total_changes

    def after_commit(self) -> None:
        """Called by the writer after each commit, outside any transaction."""
        self._commits += 1
        if self._commits >= _COMMITS or self._connection.total_changes - self._rows >= _ROWS:
            self._commits = 0
            self._rows = self._connection.total_changes
            self.run()

    def run(self) -> None:
        """Checkpoint if nobody else does. It waits for no reader, and its failure loses nothing: the log stays."""
        if self._options.in_memory or fcntl is None:
            return
        with suppress(OSError, sqlite3.Error):
            descriptor = os.open(self._options.path + "-checkpoint", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            finally:
                os.close(descriptor)
