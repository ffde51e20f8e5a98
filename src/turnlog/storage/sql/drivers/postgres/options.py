"""Where a PostgreSQL store lies, and how it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from turnlog.errors import InvalidValueError

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

    @property
    def place(self) -> str:
        """The server and database, without the password: for messages."""
        return shown(self.conninfo)

    def __repr__(self) -> str:
        return f"PostgresOptions({self.place})"


_OWN: Final[dict[str, Callable[[str], Any]]] = {
    "pool_min": int,
    "pool_max": int,
    "pool_timeout": float,
    "lock_timeout": float,
    "unsafe": lambda text: text.lower() in ("yes", "true", "1"),
}


def options_of(url: str) -> PostgresOptions:
    """The options in a store's URL: ours are taken out of its query; the rest is libpq's, and left as it is written."""
    place, _, query = url.partition("?")
    own: dict[str, Any] = {}
    others: list[str] = []
    for pair in filter(None, query.split("&")):
        name, _, value = pair.partition("=")
        if name not in _OWN:
            others.append(pair)
            continue
        try:
            own[name] = _OWN[name](unquote(value))
        except ValueError:
            raise InvalidValueError(f"{name} is a number, not {value!r}") from None
    return PostgresOptions(conninfo=f"{place}?{'&'.join(others)}" if others else place, **own)


def shown(conninfo: str) -> str:
    """Connection information without secrets."""
    if "://" in conninfo:
        parts = urlsplit(conninfo)
        host = parts.netloc.rpartition("@")[2] or "the local server"
        return f"postgresql://{host}{parts.path}"
    words = (word for word in conninfo.split() if word.partition("=")[0] in ("host", "port", "dbname"))
    return " ".join(words) or "postgresql"
