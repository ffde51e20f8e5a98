"""What may be claimed of a file, from the settings that are in force (R-15)."""

from __future__ import annotations

import sqlite3
from typing import Final

from turnlog.storage.protocol import Durability
from turnlog.storage.sql.drivers.sqlite.database import SqliteDatabase
from turnlog.storage.sql.plans.plan import Plan
from turnlog.storage.sql.statements import Statement

#: The first release without the WAL-reset bug (https://sqlite.org/wal.html).
FIXED_WAL: Final = (3, 51, 3)
_LEVELS = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}

_CLAIMS = {
    "FULL": (True, True, "no acknowledged append is lost, if the disk honours fsync"),
    "EXTRA": (True, True, "no acknowledged append is lost, if the disk honours fsync"),
    "NORMAL": (True, False, "a power cut may lose the last appends, never part of one, and leaves no gap"),
    "OFF": (True, False, "a power cut may corrupt the file"),
}


def durability_of(database: SqliteDatabase) -> Durability:
    """Ask the engine, not the options: what counts is what is in force."""
    if database.options.in_memory:
        return Durability(False, False, "for tests: everything is gone when the store is closed")
    journal, synchronous = database.read(_settings)
    crash, power, claim = _CLAIMS[synchronous]
    settings = (("sqlite", sqlite3.sqlite_version), ("journal_mode", journal), ("synchronous", synchronous))
    return Durability(crash, power, claim, settings, _warnings())


def _settings() -> Plan[tuple[str, str]]:
    journal = yield Statement("PRAGMA journal_mode")
    synchronous = yield Statement("PRAGMA synchronous")
    return journal[0][0], _LEVELS[synchronous[0][0]]


def _warnings() -> tuple[str, ...]:
    if sqlite3.sqlite_version_info >= FIXED_WAL:
        return ()
    warning = (
        f"SQLite {sqlite3.sqlite_version} can corrupt a file when several connections checkpoint at once (fixed in "
        "3.51.3); turnlog checkpoints from one connection at a time: keep other programs from writing to the file"
    )
    return (warning,)
