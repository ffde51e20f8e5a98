"""The driver's errors, translated by SQLSTATE, with the cause kept."""

from __future__ import annotations

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

#: Undone by the server for another's sake: the plan is made anew.
RETRIED = (errors.SerializationFailure, errors.DeadlockDetected)


def translation(error: psycopg.Error, place: str) -> Exception:  # noqa: PLR0911 - one for each kind of error
    """The error of ours that stands for one of psycopg's."""
    match error:
        case errors.UniqueViolation():
            return UniqueViolationError(str(error))
        case PoolClosed():
            return StoreClosedError("the store is closed")
        case PoolTimeout():
            return StoreUnavailableError(f"no connection to {place} was free, or could be made, in time: {error}")
        case errors.LockNotAvailable() | errors.QueryCanceled():
            return StoreBusyError(f"{place}: a lock was not free in time; nothing was written: {error}")
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
