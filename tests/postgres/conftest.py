"""One database for each worker of a test run, empty before each test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from tests.postgres.server import VARIABLE, server
from turnlog.storage.sql.drivers.postgres import PostgresOptions
from turnlog.storage.sql.drivers.postgres.migrating import migrate


@pytest.fixture(scope="session")
def admin_url() -> Iterator[str]:
    """A server on which databases can be made."""
    with server() as url:
        if url is None:
            pytest.skip(f"NOT TESTED on PostgreSQL: none is running, none is installed, and {VARIABLE} names none")
        yield url


@pytest.fixture(scope="session")
def database(admin_url: str) -> Iterator[str]:
    """A database at the newest schema."""
    name = f"turnlog_test_{os.getpid()}"
    with psycopg.connect(admin_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    url = urlunsplit(urlsplit(admin_url)._replace(path=f"/{name}"))
    migrate(PostgresOptions(conninfo=url))
    yield url
    with psycopg.connect(admin_url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def url(database: str) -> str:
    """The database, with nothing in it."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DELETE FROM session")
        connection.execute("DELETE FROM store_setting WHERE name <> 'schema_version'")
    return database
