"""The floor: what one would write by hand with ``sqlite3``, on the same tables, keys and indexes, in WAL with FULL."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from turnlog import SessionEvent
from turnlog.storage.migrations import full_schema, statements

INSERT = (
    "INSERT INTO event (session_key, position, event_id, timestamp, kind, batch, turn, format, body)"
    " VALUES (?, ?, ?, ?, ?, 0, ?, 0, ?)"
)
LAST = "SELECT body FROM event WHERE session_key = ? ORDER BY position DESC LIMIT ?"


class SlowCommits(sqlite3.Connection):
    """A connection on whose disk a commit takes two milliseconds more."""

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        """Execute, and wait where it commits."""
        cursor = super().execute(sql, parameters)
        if sql == "COMMIT" or (sql.startswith("INSERT") and not self.in_transaction):
            time.sleep(0.002)
        return cursor


class Floor:
    """One file, one connection, a statement for each operation."""

    def __init__(self, path: Path, factory: type[sqlite3.Connection] = sqlite3.Connection) -> None:
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None, factory=factory, check_same_thread=False)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.execute("PRAGMA foreign_keys = ON")
        for statement in statements(full_schema("sqlite")):
            self.connection.execute(statement)
        self.positions: dict[int, int] = {}

    def create(self, session_id: str, principal: str | None = None) -> int:
        """A session with its metadata; returns its key."""
        now = time.time_ns() // 1_000
        metadata = json.dumps({"principal_name": principal} if principal else {})
        connection = self.connection
        connection.execute("BEGIN IMMEDIATE")
        key: int = connection.execute(
            "INSERT INTO session (id, created_at) VALUES (?, ?) RETURNING key", (session_id, now)
        ).fetchall()[0][0]
        connection.execute("INSERT INTO session_document VALUES (?, 0, ?)", (key, metadata.encode()))
        if principal:
            connection.execute(
                "INSERT INTO session_attribute VALUES ('principal_name', ?, ?, ?)", (principal, now, key)
            )
        connection.execute("COMMIT")
        self.positions[key] = 0
        return key

    def row(self, key: int, body: dict[str, Any]) -> tuple[Any, ...]:
        """The row of the session's next event."""
        position = self.positions[key] = self.positions[key] + 1
        kind = {"user": 8, "assistant": 4, "tool": 6}[body["role"]]
        return (key, position, os.urandom(16), time.time_ns() // 1_000, kind, position, json.dumps(body).encode())

    def append(self, key: int, body: dict[str, Any]) -> None:
        """One INSERT in a transaction of its own."""
        self.connection.execute(INSERT, self.row(key, body))

    def fill(self, key: int, bodies: Sequence[dict[str, Any]]) -> None:
        """``executemany`` in one transaction."""
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany(INSERT, [self.row(key, body) for body in bodies])
        self.connection.execute("COMMIT")

    def last(self, key: int, count: int) -> list[Any]:
        """The newest rows, oldest first."""
        rows = self.connection.execute(LAST, (key, count)).fetchall()
        return [json.loads(body) for (body,) in reversed(rows)]

    def open_and_read(self, session_id: str) -> list[Any]:
        """A session by its id, with its metadata and all its events."""
        (found,) = self.connection.execute(
            "SELECT s.key, s.created_at, s.expires_at, d.body FROM session s"
            " JOIN session_document d ON d.session_key = s.key WHERE s.id = ?",
            (session_id,),
        ).fetchall()
        json.loads(found[3])
        rows = self.connection.execute(
            "SELECT body FROM event WHERE session_key = ? ORDER BY position", (found[0],)
        ).fetchall()
        return [json.loads(body) for (body,) in rows]

    def sessions_of(self, principal: str, limit: int) -> list[Any]:
        """A principal's sessions, oldest first, with their metadata."""
        rows = self.connection.execute(
            "SELECT s.id, s.created_at, s.expires_at, d.body FROM session_attribute p"
            " JOIN session s ON s.key = p.session_key JOIN session_document d ON d.session_key = s.key"
            " WHERE p.name = 'principal_name' AND p.value = ? ORDER BY p.created_at, p.session_key LIMIT ?",
            (principal, limit),
        ).fetchall()
        return [(row[0], row[1], row[2], json.loads(row[3])) for row in rows]

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


def bodies(events: Sequence[SessionEvent]) -> list[dict[str, Any]]:
    """The messages as plain dictionaries, made outside the timing."""
    return [msgspec.to_builtins(event.message) for event in events]
