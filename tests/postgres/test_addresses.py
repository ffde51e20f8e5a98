"""Where a PostgreSQL store lies: what its URL says, what is told of it, and how text travels there (R-9)."""

from __future__ import annotations

import logging

import pytest
from psycopg import Connection
from psycopg_pool import ConnectionPool

from tests.concurrency.stores import opened_async
from turnlog.errors import InvalidValueError, StoreBusyError, StoreError, StoreUnavailableError
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.opening import open_async_store, open_store, system_clock
from turnlog.storage.sql import SqlRepository
from turnlog.storage.sql.drivers.postgres import PostgresDriver, PostgresOptions, options_of
from turnlog.storage.sql.plans.plan import Plan
from turnlog.storage.sql.statements import Statement
from turnlog.testing import factories

pytestmark = [pytest.mark.store, pytest.mark.timeout(120)]


def test_where_no_server_answers_that_is_told_at_once_and_in_one_place(caplog: pytest.LogCaptureFixture) -> None:
    """No pool goes on trying behind the error, nor logs that it does."""
    with caplog.at_level(logging.DEBUG, "psycopg.pool"), pytest.raises(StoreUnavailableError, match="refused"):
        open_store("postgresql://nobody:secret@127.0.0.1:9/none")
    assert caplog.messages == []


def test_a_url_says_how_the_store_is_used_and_its_password_is_shown_nowhere() -> None:
    made = options_of(
        "postgresql://me:secret@db:5433,other/chats?pool_max=3&lock_timeout=2.5&unsafe=yes&sslmode=require"
    )
    assert (made.pool_max, made.lock_timeout, made.unsafe) == (3, 2.5, True)
    assert made.conninfo == "postgresql://me:secret@db:5433,other/chats?sslmode=require"
    assert made.place == "postgresql://db:5433,other/chats"
    assert "secret" not in repr(made) + str(made)
    on_a_socket = options_of("postgresql:///chats?host=/run/postgresql&pool_max=2&password=a+b%20c")
    assert on_a_socket.conninfo == "postgresql:///chats?host=/run/postgresql&password=a+b%20c"
    assert on_a_socket.place == "postgresql://the local server/chats"
    assert options_of("postgresql://db/chats").conninfo == "postgresql://db/chats"
    for wrong in ("pool_max=many", "pool_min=9&pool_max=2", "lock_timeout=-1", "lock_timeout=soon", "unsafe=perhaps"):
        with pytest.raises(InvalidValueError):
            options_of(f"postgresql://db/chats?{wrong}")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:qz qz@db/chats",
        "postgresql://me:qz/qz@db/chats",
        "postgresql://me:qz/qz?qz=qz@db",
        "postgresql://me:qz@qz@db/chats",
        "postgresql://me:qz%zz@db/chats",
        "postgresql://me:qz@[::1/chats",
        "postgresql://me:qz@db/chats?hots=other",
    ],
)
def test_an_address_that_libpq_would_misread_is_refused_and_no_part_of_a_password_is_told(url: str) -> None:
    for opening in (open_store, open_async_store):
        with pytest.raises(InvalidValueError, match=r"^postgresql://\S+ is no address") as raised:
            opening(url)
        assert "qz" not in str(raised.value)
        assert raised.value.__context__ is None  # whose text a traceback would show


def test_an_option_that_libpq_does_not_have_is_named() -> None:
    with pytest.raises(InvalidValueError, match='"hots"'):
        options_of("postgresql://me:secret@db/chats?hots=other")


def test_connection_information_that_is_no_url_is_shown_without_its_password() -> None:
    assert PostgresOptions(conninfo="host=db dbname=chats password='a dbname=b'").place == "host=db dbname=chats"
    assert PostgresOptions(conninfo="").place == "postgresql"
    with pytest.raises(InvalidValueError) as raised:
        PostgresOptions(conninfo="password secret")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_text_travels_as_utf_8_whatever_the_environment_asks_for(
    encoding: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", encoding)
    with open_store(f"{url}?client_encoding={encoding}", token_counter=EstimatedTokens()) as store:
        store.create(factories.session("日本"))
    async with opened_async(url) as same:
        assert [session.id for session in await same.list()] == ["日本"]


def test_a_pool_that_cannot_carry_every_text_is_refused(url: str) -> None:
    settings = {"autocommit": True, "client_encoding": "LATIN1"}
    pool: ConnectionPool[Connection] = ConnectionPool(url, min_size=1, kwargs=settings, open=False)
    with pool:
        store = SqlRepository(PostgresDriver(PostgresOptions(conninfo=url), pool), system_clock)
        with pytest.raises(StoreError, match="client_encoding"):
            store.open()


def test_a_statement_that_the_server_gives_up_is_not_said_to_have_waited_for_a_lock(url: str) -> None:
    def slow() -> Plan[None]:
        yield Statement("SELECT pg_sleep(30)")

    driver = PostgresDriver(options_of(f"{url}?options=-c%20statement_timeout%3D100"))
    try:
        with pytest.raises(StoreBusyError, match="gave a statement up"):
            driver.read(slow)
    finally:
        driver.close()
