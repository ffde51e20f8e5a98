"""The floor: what one would write by hand with ``sqlite3``, on the same tables, keys and indexes, in WAL with FULL.

It does less than turnlog on purpose: it knows its keys and positions, looks at no version, no expiry and no turn,
appends by one statement and keeps no head of the log. It stores the same JSON, byte for byte.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from turnlog import SessionEvent
from turnlog.log.codec import encode_body
from turnlog.storage.migrations import full_schema, statements

Body: TypeAlias = dict[str, Any]
Row: TypeAlias = tuple[Any, ...]

INSERT = (
    "INSERT INTO event (session_key, position, event_id, timestamp, kind, batch, turn, format, body)"
    " VALUES (?, ?, ?, ?, ?, 0, ?, 0, ?)"
)
#: What an event is made of. A reader that does without ids, times and places is a sixth quicker.
_READ = (
    "SELECT position, event_id, timestamp, kind, type, branch, body FROM event"
    " WHERE session_key = (SELECT key FROM session WHERE id = ?) ORDER BY position"
)
_SESSION = (
    "SELECT s.id, s.created_at, s.expires_at, s.time_to_live, d.body FROM session s"
    " JOIN session_document d ON d.session_key = s.key WHERE s.id = ?"
)
_SESSIONS_OF = (
    "SELECT s.id, s.created_at, s.expires_at, s.time_to_live, d.body FROM session_attribute p"
    " JOIN session s ON s.key = p.session_key JOIN session_document d ON d.session_key = s.key"
    " WHERE p.name = 'principal_name' AND p.value = ? ORDER BY p.created_at, p.session_key LIMIT ?"
)
_KINDS = {"user": 8, "assistant": 4, "tool": 6}


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
        is_new = not path.exists()
        self.connection = sqlite3.connect(path, isolation_level=None, factory=factory, check_same_thread=False)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.execute("PRAGMA foreign_keys = ON")
        if is_new:
            for statement in statements(full_schema("sqlite")):
                self.connection.execute(statement)
        found: list[tuple[int, int]] = self.connection.execute("SELECT key, version FROM session").fetchall()
        self._positions = dict(found)

    def create(self, session_id: str) -> int:
        """A session with its metadata; returns its key."""
        self.connection.execute("BEGIN IMMEDIATE")
        key = self.insert_session(session_id)
        self.connection.execute("COMMIT")
        return key

    def insert_session(self, session_id: str) -> int:
        """The same in the caller's transaction."""
        found = self.connection.execute(
            "INSERT INTO session (id, created_at) VALUES (?, ?) RETURNING key", (session_id, time.time_ns() // 1_000)
        ).fetchall()
        key: int = found[0][0]
        self.connection.execute("INSERT INTO session_document VALUES (?, 0, ?)", (key, b"{}"))
        self._positions[key] = 0
        return key

    def row(self, key: int, body: Body) -> Row:
        """The row of the session's next event."""
        position = self._positions[key] = self._positions[key] + 1
        kind = _KINDS[body["message"]["role"]]
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        return (key, position, os.urandom(16), time.time_ns() // 1_000, kind, position, data)

    def append(self, key: int, body: Body) -> None:
        """One INSERT in a transaction of its own."""
        self.connection.execute(INSERT, self.row(key, body))

    def import_rows(self, conversations: Iterable[tuple[str, Sequence[Row]]]) -> None:
        """``executemany``, committed for each conversation; of a row everything is known but the session's key."""
        for session_id, rows in conversations:
            self.connection.execute("BEGIN IMMEDIATE")
            key = self.insert_session(session_id)
            self.connection.executemany(INSERT, [(key, *row[1:]) for row in rows])
            self.connection.execute("COMMIT")

    def last(self, session_id: str, count: int) -> list[Row]:
        """The newest rows, oldest first."""
        rows = self.connection.execute(f"{_READ} DESC LIMIT ?", (session_id, count)).fetchall()
        return [(*row[:-1], json.loads(row[-1])) for row in reversed(rows)]

    def open_and_read(self, session_id: str) -> tuple[Row, list[Row]]:
        """A session by its id, with its metadata, and all its events."""
        (found,) = self.connection.execute(_SESSION, (session_id,)).fetchall()
        rows = self.connection.execute(_READ, (session_id,)).fetchall()
        return (*found[:-1], json.loads(found[-1])), [(*row[:-1], json.loads(row[-1])) for row in rows]

    def sessions_of(self, principal: str, limit: int) -> list[Row]:
        """A principal's sessions, oldest first, with their metadata."""
        rows = self.connection.execute(_SESSIONS_OF, (principal, limit)).fetchall()
        return [(*row[:-1], json.loads(row[-1])) for row in rows]

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


def bodies(events: Sequence[SessionEvent]) -> list[Body]:
    """What turnlog stores of each event, as plain dictionaries."""
    return [json.loads(encode_body(event)[1]) for event in events]
