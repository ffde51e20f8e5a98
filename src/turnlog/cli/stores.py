"""Which store a command works on, and opening it."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from turnlog.errors import InvalidValueError, StoreUnavailableError
from turnlog.service import SessionService
from turnlog.storage.opening import is_postgres, open_store, sqlite_options
from turnlog.storage.protocol import SessionRepository

#: The environment variable that names the store of all commands.
STORE_VARIABLE: Final = "TURNLOG_STORE"


def default_store() -> str:
    """The path of a file in the user's data folder, as the platform has it."""
    return str(_data_folder() / "turnlog" / "turnlog.db")


def _data_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    # The XDG specification says that a relative path is to be ignored.
    given = Path(os.environ.get("XDG_DATA_HOME", ""))
    return given if given.is_absolute() else Path.home() / ".local" / "share"


def store_url(given: str | None) -> str:
    """The URL or path that was given, or else the default."""
    return given or default_store()


def shown(url: str) -> str:
    """The store's URL, without the password that may stand in it."""
    if not is_postgres(url):
        return url
    from turnlog.storage.sql.drivers.postgres.options import shown as without_password

    return without_password(url)


def sqlite_path(url: str) -> Path | None:
    """The file of a SQLite store; None for a store that is no file."""
    if is_postgres(url):
        return None
    options = sqlite_options(url)
    return None if options is None or options.in_memory else Path(options.path)


@contextmanager
def existing_store(given: str | None) -> Generator[SessionRepository]:
    """Open the store; a file that is not there is an error, not an empty store (a mistyped path is no empty one)."""
    url = store_url(given)
    path = sqlite_path(url)
    if path is not None and not path.exists():
        raise StoreUnavailableError(f"there is no store at {path}: `turnlog import` makes one")
    with open_store(url) as repository:
        yield repository


@contextmanager
def new_or_existing_store(given: str | None) -> Generator[SessionRepository]:
    """Open the store, making the file (and for the default its folder) if it is not there."""
    url = store_url(given)
    if not given:
        Path(url).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open_store(url) as repository:
        yield repository


@contextmanager
def existing_service(given: str | None) -> Generator[SessionService]:
    """A service on the existing store; it does not close the store again by itself."""
    with existing_store(given) as repository:
        yield SessionService(repository, allow_system_messages=True)


def existing_sqlite_file(given: str | None) -> Path:
    """The file of the store, for commands that only SQLite has."""
    url = store_url(given)
    path = sqlite_path(url)
    if path is None:
        raise InvalidValueError(f"{shown(url)} is no SQLite file")
    if not path.exists():
        raise StoreUnavailableError(f"there is no store at {path}")
    return path
