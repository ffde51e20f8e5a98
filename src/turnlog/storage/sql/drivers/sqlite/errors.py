"""The driver's errors, translated by code, with the cause kept."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from turnlog.errors import (
    ForeignStoreError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    UnreadableDataError,
)
from turnlog.storage.sql.driver import UniqueViolationError

_UNIQUE = frozenset({sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY})
_PRIMARY_CODE = 0xFF

#: What a statement may end with. By MemoryError ``sqlite3`` says that SQLite has no memory left, by SystemError that it
#: does not understand what has happened; a transaction in which they come must be undone like any other.
ENGINE_ERRORS: Final = (sqlite3.Error, MemoryError, SystemError)


@contextmanager
def translated(place: str) -> Generator[None, None, None]:
    """Turn errors of ``sqlite3`` inside the block into turnlog's; ``place`` is the file."""
    try:
        yield
    except ENGINE_ERRORS as error:
        raise translation(error, place) from error


def translation(error: Exception, place: str) -> Exception:
    """The error of ours that stands for one of ``ENGINE_ERRORS``."""
    code = getattr(error, "sqlite_errorcode", None)
    if code in _UNIQUE:
        return UniqueViolationError(str(error))
    primary = None if code is None else code & _PRIMARY_CODE
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusyError(f"{place} is locked by another writer; nothing was written: {error}")
    if primary == sqlite3.SQLITE_FULL:
        return StoreFullError(f"no room is left for {place}; nothing was written: {error}")
    if primary == sqlite3.SQLITE_NOTADB:
        return ForeignStoreError(f"{place} is no SQLite database; it was not touched: {error}")
    if primary == sqlite3.SQLITE_CORRUPT:
        return UnreadableDataError(None, None, f"{place} is damaged ({error}); restore it from a backup")
    if primary == sqlite3.SQLITE_READONLY:
        return StoreUnavailableError(
            f"{place} cannot be written to, or not its folder, which reading needs as well: {error}"
        )
    if primary in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_AUTH):
        why = _obstacle(Path(place)) or error
        return StoreUnavailableError(f"{place} cannot be opened, read or written here: {why}")
    return StoreError(f"{place}: {str(error) or type(error).__name__}")


def _obstacle(file: Path) -> str:
    """What SQLite does not say of a file that it cannot open; empty if it is nothing of the kind."""
    if file.is_dir():
        return "it is a folder"
    return "" if file.parent.is_dir() else f"there is no folder {file.parent}"
