"""The driver's errors, translated by SQLSTATE, with the cause kept."""

from __future__ import annotations

from typing import Any, Final

import psycopg
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout

from turnlog.errors import (
    StoreBusyError,
    StoreClosedError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    UnreadableDataError,
)
from turnlog.storage.sql.driver import UniqueViolationError


class UndoneError(Exception):
    """The server has undone the transaction for another's sake: a deadlock, or a serialisation failure."""


class LostError(Exception):
    """The connection is gone, or of no use for writing; ``cause`` is the error of ours that stands for it."""

    def __init__(self, cause: StoreError) -> None:
        super().__init__(str(cause))
        self.cause = cause


_UNDONE: Final = (errors.SerializationFailure, errors.DeadlockDetected)
_ENDS_THE_CONNECTION: Final = ("FATAL", "PANIC")


def met(error: psycopg.Error, connection: psycopg.BaseConnection[Any], place: str) -> Exception:
    """What has happened on a connection: undone, lost, refused by a unique key, or an error for the caller."""
    if isinstance(error, _UNDONE):
        return UndoneError(str(error))
    is_over = connection.closed or error.diag.severity_nonlocalized in _ENDS_THE_CONNECTION
    # A primary that has become a standby answers still: the next connection may lead to its successor.
    if is_over or isinstance(error, errors.ReadOnlySqlTransaction):
        cause = StoreUnavailableError(f"{place} cannot be reached, or written to: {error}")
        cause.__cause__ = error
        return LostError(cause)
    return translation(error, place)


def translation(error: psycopg.Error, place: str) -> Exception:  # noqa: PLR0911 - one for each kind of error
    """The error of ours that stands for one of psycopg's."""
    match error:
        case errors.UniqueViolation():
            return UniqueViolationError(str(error))
        case PoolClosed():
            return StoreClosedError(f"the store is closed: {error}")
        case PoolTimeout():
            return StoreUnavailableError(f"no connection to {place} was free, or could be made, in time: {error}")
        case errors.LockNotAvailable():
            return StoreBusyError(f"{place}: a lock was not free in time; nothing was written: {error}")
        case errors.QueryCanceled():
            return StoreBusyError(f"{place}: the server gave a statement up; nothing was written: {error}")
        case errors.DiskFull():
            return StoreFullError(f"no room is left for {place}; nothing was written: {error}")
        case errors.DataCorrupted() | errors.IndexCorrupted():
            return UnreadableDataError(None, None, f"{place} is damaged: {error}")
        case errors.ReadOnlySqlTransaction() | errors.InsufficientPrivilege():
            return StoreUnavailableError(f"{place} cannot be written to: {error}")
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return StoreUnavailableError(f"{place} cannot be reached: {error}")
        case _:
            return StoreError(f"{place}: {error}")
