"""One database for each worker of a test run, empty before each test."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import count
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


@contextmanager
def new_database(admin_url: str) -> Generator[str]:
    """An empty database, which is dropped at the end."""
    name = f"turnlog_test_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(admin_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    try:
        yield urlunsplit(urlsplit(admin_url)._replace(path=f"/{name}"))
    finally:
        with psycopg.connect(admin_url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


_numbers = count(1)


@pytest.fixture(scope="session")
def database(admin_url: str) -> Iterator[str]:
    """A database at the newest schema."""
    with new_database(admin_url) as url:
        migrate(PostgresOptions(conninfo=url))
        yield url


@pytest.fixture
def empty_database(admin_url: str) -> Iterator[str]:
    """A database of the test's own, without any schema."""
    with new_database(admin_url) as url:
        yield url


@pytest.fixture
def url(database: str) -> str:
    """The database, with nothing in it."""
    return emptied(database)


def emptied(url: str) -> str:
    """The URL of a database that has nothing in it any more."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DELETE FROM session")
        connection.execute("DELETE FROM store_setting WHERE name <> 'schema_version'")
    return url
