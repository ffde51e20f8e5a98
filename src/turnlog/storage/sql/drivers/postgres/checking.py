"""What ``doctor`` asks a server: whether the schema is whole, and whether tables contradict one another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import psycopg
from psycopg import Connection

from turnlog.storage.migrations import full_schema, statements
from turnlog.storage.sql.drivers.postgres.errors import translation
from turnlog.storage.sql.drivers.postgres.options import PostgresOptions

_MOST_PROBLEMS: Final = 20
_CREATED: Final = re.compile(r"CREATE (TABLE|INDEX) (\w+)")
_RELATIONS: Final = """
    SELECT relname, coalesce(indisvalid, true) FROM pg_class LEFT JOIN pg_index ON indexrelid = pg_class.oid
    WHERE relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'session'::regclass)
"""
#: Keys by the tables they stand in; the second net under every append (R-14).
_KEYS: Final = """
    SELECT conrelid::regclass::text, contype::text FROM pg_constraint
    WHERE connamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'session'::regclass) AND convalidated
"""
_NEEDED_KEYS: Final = (
    ("session", "p", "primary key"),
    ("session", "u", "unique key on id"),
    ("event", "p", "primary key on session and position"),
    ("event", "u", "unique key on session and event id"),
    ("event", "f", "foreign key to its session"),
    ("session_document", "f", "foreign key to its session"),
    ("session_attribute", "f", "foreign key to its session"),
)
# Positions are unique and begin with 1: as many events as the highest position, which is the version, means no gap.
_CONTRADICTIONS: Final = """
    SELECT s.id, s.version, count(e.position), coalesce(max(e.position), 0)
    FROM session s LEFT JOIN event e ON e.session_key = s.key GROUP BY s.key
    HAVING count(e.position) <> s.version OR coalesce(max(e.position), 0) <> s.version LIMIT %s
"""
_WITHOUT_DOCUMENT: Final = """
    SELECT s.id FROM session s LEFT JOIN session_document d ON d.session_key = s.key
    WHERE d.session_key IS NULL LIMIT %s
"""


def problems(options: PostgresOptions) -> list[str]:
    """What is wrong with the database, expired sessions included; empty if it is sound. Reads every key, no content."""
    try:
        with psycopg.connect(options.address) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            missing = list(_missing(connection))
            return missing or list(_contradictions(connection))
    except psycopg.Error as error:
        raise translation(error, options.place) from error


def _missing(connection: Connection) -> Iterator[str]:
    there: dict[str, bool] = dict(connection.execute(_RELATIONS).fetchall())
    for statement in statements(full_schema("postgres")):
        created = _CREATED.match(statement)
        if created is None:
            continue
        kind, name = created[1].lower(), created[2]
        if name not in there:
            yield f"the {kind} {name} is missing"
        elif not there[name]:
            yield f"the {kind} {name} is not valid: REINDEX it"
    keys: set[tuple[str, str]] = set(connection.execute(_KEYS).fetchall())
    for table, kind, called in _NEEDED_KEYS:
        if (table, kind) not in keys:
            yield f"the table {table} has lost its {called}"


def _contradictions(connection: Connection) -> Iterator[str]:
    for session, version, count, last in connection.execute(_CONTRADICTIONS, (_MOST_PROBLEMS,)):
        yield f"session {session!r}: version {version}, but {count} events up to position {last}"
    for (session,) in connection.execute(_WITHOUT_DOCUMENT, (_MOST_PROBLEMS,)):
        yield f"session {session!r} has lost its metadata"
