"""``open_store(url)``: from a URL to a store (R-1).

What a store needs is imported when one is opened: ``import turnlog`` should cost little, and nobody uses all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from turnlog.errors import InvalidValueError
from turnlog.log.tokens import TokenCounter
from turnlog.storage import url_options
from turnlog.storage.protocol import AsyncSessionRepository, Clock, SessionRepository
from turnlog.storage.rules import indexed_keys

if TYPE_CHECKING:
    from turnlog.storage.sql.driver import AsyncDriver, Driver
    from turnlog.storage.sql.drivers.sqlite import SqliteOptions


def system_clock() -> datetime:
    """The time now, in UTC: the clock of a store that is given no other."""
    return datetime.now(UTC)


def open_store(
    url: str,
    *,
    clock: Clock = system_clock,
    indexed_metadata: Sequence[str] = (),
    token_counter: TokenCounter | None = None,
) -> SessionRepository:
    """Open a store for threads.

    ``memory:`` is for tests. ``sqlite:chat.db`` (or ``sqlite:///chat.db``; ``sqlite:////var/lib/chat.db`` is
    absolute) is one file, made on first use; ``sqlite::memory:`` one database in memory. Options follow a question
    mark: ``sqlite:chat.db?synchronous=NORMAL&busy_timeout=5``. A plain path is a file too.
    """
    keys = indexed_keys(indexed_metadata)[1:]
    if is_postgres(url):
        from turnlog.storage.sql.drivers.postgres import PostgresDriver, options_of

        driver: Driver = PostgresDriver(options_of(url))
    else:
        options = sqlite_options(url)
        if options is None:
            from turnlog.storage.memory import MemoryRepository

            return MemoryRepository(clock, keys, token_counter)
        from turnlog.storage.sql.drivers.sqlite import SqliteDriver

        driver = SqliteDriver(options)
    from turnlog.storage.sql import SqlRepository

    repository = SqlRepository(driver, clock, keys, token_counter)
    try:
        repository.open()
    except BaseException:
        repository.close()
        raise
    return repository


def open_async_store(
    url: str,
    *,
    clock: Clock = system_clock,
    indexed_metadata: Sequence[str] = (),
    token_counter: TokenCounter | None = None,
) -> AsyncSessionRepository:
    """Open a store for tasks. It connects when entered (``async with``) or first used, never on the event loop."""
    keys = indexed_keys(indexed_metadata)[1:]
    if is_postgres(url):
        from turnlog.storage.sql.drivers.postgres import AsyncPostgresDriver, options_of

        driver: AsyncDriver = AsyncPostgresDriver(options_of(url))
    else:
        options = sqlite_options(url)
        if options is None:
            from turnlog.storage.memory import AsyncMemoryRepository

            return AsyncMemoryRepository(clock, keys, token_counter)
        from turnlog.storage.sql.drivers.sqlite import AsyncSqliteDriver

        driver = AsyncSqliteDriver(options)
    from turnlog.storage.sql import AsyncSqlRepository

    return AsyncSqlRepository(driver, clock, keys, token_counter)


def is_postgres(url: object) -> bool:
    """Whether ``url`` names a PostgreSQL database."""
    return isinstance(url, str) and url.startswith(("postgresql://", "postgres://"))


def sqlite_options(url: object) -> SqliteOptions | None:
    """The options of the SQLite store that ``url`` names, None for the memory store; opens nothing."""
    from urllib.parse import unquote

    from turnlog.storage.sql.drivers.sqlite import SqliteOptions

    if not isinstance(url, str) or not url or "\0" in unquote(url):
        raise InvalidValueError(f"a store is opened by a URL such as 'sqlite:chat.db', not {url!r}")
    if url in ("memory:", "memory://"):
        return None
    scheme, colon, rest = url.partition(":")
    if not colon or len(scheme) == 1:  # no scheme, or a drive letter
        return SqliteOptions(path=url)
    if url == ":memory:":
        return SqliteOptions(path=url)
    if scheme != "sqlite":
        raise InvalidValueError(f"{scheme!r} is no kind of store that is known: memory, sqlite, postgresql")
    place, _, query = rest.partition("?")
    if place.startswith("//"):
        host, _, place = place[2:].partition("/")
        if host:
            raise InvalidValueError(f"a SQLite file has no host ({host!r}): write sqlite:///{host}/…")
    if not place:
        raise InvalidValueError("a SQLite store needs a path: 'sqlite:chat.db'")
    return SqliteOptions(path=unquote(place), **_parsed(query))


def _parsed(query: str) -> dict[str, Any]:
    from urllib.parse import parse_qsl

    parsed: dict[str, Any] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        match name:
            case "synchronous":
                parsed[name] = value.upper()
            case "busy_timeout":
                parsed[name] = url_options.seconds(name, value)
            case "unsafe":
                parsed[name] = url_options.flag(name, value)
            case _:
                raise InvalidValueError(f"{name!r} is no option of a SQLite store: synchronous, busy_timeout, unsafe")
    return parsed
