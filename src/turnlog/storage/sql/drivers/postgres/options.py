"""Where a PostgreSQL store lies, and how it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import unquote

import psycopg
from msgspec import Struct
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from turnlog.errors import InvalidValueError
from turnlog.storage import url_options

#: Seconds that a lock may be waited for.
_LONGEST_WAIT: Final = 3600


class PostgresOptions(Struct, frozen=True, kw_only=True):
    """How to reach a server: connection information as libpq takes it, and the bounds of the pool.

    Seconds are how long a call waits for a free connection (``pool_timeout``) and for somebody else's lock
    (``lock_timeout``; 0: for ever). ``unsafe`` allows servers whose settings may lose acknowledged appends.
    """

    conninfo: str
    pool_min: int = 1
    pool_max: int = 8
    pool_timeout: float = 30.0
    lock_timeout: float = 30.0
    unsafe: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.pool_min <= self.pool_max:
            raise InvalidValueError(f"a pool has 1 or more connections: {self.pool_min} to {self.pool_max}")
        for name in ("pool_timeout", "lock_timeout"):
            if not 0 <= getattr(self, name) <= _LONGEST_WAIT:
                raise InvalidValueError(f"{name} is 0 to {_LONGEST_WAIT} seconds, not {getattr(self, name)!r}")
        _check(self.conninfo)

    @property
    def address(self) -> str:
        """What libpq is given. Text travels as UTF-8, whatever the environment, the role or the URL asks for."""
        return make_conninfo(self.conninfo, client_encoding="UTF8")

    @property
    def place(self) -> str:
        """The server and database, without the password: for messages."""
        return shown(self.conninfo)

    def __repr__(self) -> str:
        return f"PostgresOptions({self.place})"


_OWN: Final[dict[str, Callable[[str, str], Any]]] = {
    "pool_min": url_options.whole,
    "pool_max": url_options.whole,
    "pool_timeout": url_options.seconds,
    "lock_timeout": url_options.seconds,
    "unsafe": url_options.flag,
}
#: Of libpq's complaints the one that can quote no part of a password.
_HARMLESS: Final = "invalid URI query parameter"


def options_of(url: str) -> PostgresOptions:
    """The options in a store's URL: ours are taken out of its query; the rest is libpq's, and left as it is written."""
    place, _, query = url.partition("?")
    own: dict[str, Any] = {}
    others: list[str] = []
    for pair in filter(None, query.split("&")):
        name, _, value = pair.partition("=")
        if name in _OWN:
            own[name] = _OWN[name](name, unquote(value))
        else:
            others.append(pair)
    return PostgresOptions(conninfo=f"{place}?{'&'.join(others)}" if others else place, **own)


def _check(conninfo: str) -> None:
    """Refuse what libpq cannot read, or would read in another way than it was meant, without quoting a secret."""
    reason = "percent-encode what is special in user, password, host and database"
    if "@" not in _address(conninfo):
        try:
            conninfo_to_dict(conninfo)
        except psycopg.Error as error:
            told = str(error).strip()
            if told.startswith(_HARMLESS) and "@" not in conninfo.partition("?")[2]:
                reason = told
        else:
            return
    raise InvalidValueError(f"{shown(conninfo)} is no address that libpq takes: {reason}")


def shown(conninfo: str) -> str:
    """Connection information without secrets."""
    if "://" in conninfo:
        address = _address(conninfo).rpartition("@")[2]
        if "@" in conninfo and not _has_user(conninfo):
            address = "…"  # it may be a password, in which a slash was not encoded
        return f"postgresql://{'the local server' if address.startswith('/') or not address else ''}{address}"
    try:
        known = conninfo_to_dict(conninfo)
    except psycopg.Error:
        return "postgresql"
    return " ".join(f"{name}={known[name]}" for name in ("host", "port", "dbname") if name in known) or "postgresql"


def _has_user(url: str) -> bool:
    """Whether libpq sees user and password in a URL: they end with the first @, if that comes before any slash."""
    return "@" in url.partition("://")[2].partition("/")[0]


def _address(conninfo: str) -> str:
    """Host and database of a URL, empty for any other connection information."""
    rest = conninfo.partition("://")[2]
    return (rest.partition("@")[2] if _has_user(conninfo) else rest).partition("?")[0]
