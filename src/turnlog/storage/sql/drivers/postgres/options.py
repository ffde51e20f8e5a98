"""Where a PostgreSQL store lies, and what may be said of it."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urlsplit

from msgspec import Struct

from turnlog.errors import InvalidValueError


class PostgresOptions(Struct, frozen=True, kw_only=True):
    """How to reach a server: connection information as libpq takes it, and the bounds of the pool.

    ``pool_timeout`` is how many seconds a call waits for a free connection.
    """

    conninfo: str
    pool_min: int = 1
    pool_max: int = 8
    pool_timeout: float = 30.0

    def __post_init__(self) -> None:
        if not 0 < self.pool_min <= self.pool_max:
            raise InvalidValueError(f"a pool has 1 or more connections: {self.pool_min} to {self.pool_max}")

    @property
    def place(self) -> str:
        """The server and database, without the password: for messages."""
        return shown(self.conninfo)

    def __repr__(self) -> str:
        return f"PostgresOptions({self.place})"


def shown(conninfo: str) -> str:
    """Connection information without secrets."""
    if "://" in conninfo:
        parts = urlsplit(conninfo)
        host = parts.hostname or "the local server"
        return f"postgresql://{host}{f':{parts.port}' if parts.port else ''}{parts.path}"
    words = (word for word in conninfo.split() if word.partition("=")[0] in ("host", "port", "dbname"))
    return " ".join(words) or "postgresql"


@lru_cache(maxsize=1_024)
def for_server(sql: str) -> str:
    """A statement in the server's own words: its parameter mark, and the row lock that SQLite does without."""
    return sql.replace("?", "%s").replace("/*FOR UPDATE*/", "FOR UPDATE")
