"""``turnlog doctor`` and ``turnlog migrate`` on a server: what is wrong, and what may be claimed (R-13, R-15)."""

from __future__ import annotations

from typing import Final

import psycopg
import pytest

from tests.cli.running import CommandLine
from turnlog.errors import StoreError
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.migrations import SCHEMA_VERSION
from turnlog.storage.opening import open_store
from turnlog.storage.sql.drivers.postgres import PostgresOptions
from turnlog.storage.sql.drivers.postgres.durability import NAMES, durability_of, fault_of
from turnlog.storage.sql.drivers.postgres.migrating import migrate
from turnlog.testing import factories
from turnlog.testing.clocks import START

pytestmark = pytest.mark.store


@pytest.fixture
def store(empty_database: str) -> str:
    """A database of the test's own, with a log of eight events and the remains of another."""
    migrate(PostgresOptions(conninfo=empty_database))
    with open_store(empty_database, token_counter=EstimatedTokens()) as made:
        made.create(factories.session())
        made.append("s", factories.conversation(2))
        made.create(factories.session("old", expires_at=START))
    return empty_database


@pytest.fixture
def turnlog(store: str, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    return CommandLine(monkeypatch, store.replace("postgres@", "postgres:secret@"))


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def test_a_sound_database(turnlog: CommandLine) -> None:
    out = turnlog.ok("doctor").out
    for line in (
        "fsync                     on",
        "synchronous_commit        on",
        "synchronous_standby_names",
        "  power loss              acknowledged appends survive",
        "read                      1 sessions, 8 events",
        "sound                     yes",
    ):
        assert line in out.splitlines()
    assert "a fail-over may lose the last ones" in out
    assert "secret" not in out
    assert "secret" not in turnlog.ok("doctor", "--json").out


DAMAGES: Final = {
    "DELETE FROM event WHERE position = 3": "version 8, but 7 events",
    "UPDATE session SET version = 9 WHERE id = 's'": "version 9, but 8 events",
    "UPDATE session SET version = 1 WHERE id = 'old'": "session 'old': version 1, but 0 events",
    "DELETE FROM session_document": "has lost its metadata",
    "UPDATE event SET body = '{' WHERE position = 5": "event 5",
    "UPDATE session_document SET body = '{'": "sessions cannot be listed",
    "DROP INDEX event_kind": "the index event_kind is missing",
    "DROP TABLE token_count": "the table token_count is missing",
    "ALTER TABLE event DROP CONSTRAINT event_pkey": "primary key on session and position",
    "ALTER TABLE event DROP CONSTRAINT event_session_key_event_id_key": "unique key on session and event id",
    "ALTER TABLE event DROP CONSTRAINT event_session_key_fkey": "foreign key to its session",
    "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'event_time'::regclass": "event_time is not valid",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_wrong_is_named(turnlog: CommandLine, store: str, damage: str) -> None:
    execute(store, damage)
    ran = turnlog.run("doctor")
    assert ran.code == 7
    assert DAMAGES[damage] in ran.out
    assert "sound                     NO" in ran.out


def test_a_database_at_another_schema_names_the_command(turnlog: CommandLine, store: str) -> None:
    execute(store, "DELETE FROM store_setting WHERE name = 'schema_version'")
    assert "turnlog migrate apply" in turnlog.fails(7, "doctor")


def test_the_printed_schema_makes_a_store(
    turnlog: CommandLine, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else may run it, with the rights that the application does not have."""
    text = turnlog.ok("migrate", "sql").out
    execute(empty_database, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public", text)
    with open_store(empty_database, token_counter=EstimatedTokens()) as made:
        made.create(factories.session())
    assert f"schema {SCHEMA_VERSION}" in CommandLine(monkeypatch, empty_database).ok("migrate", "status").out


_SOUND: Final = dict.fromkeys(NAMES, "on") | {"synchronous_standby_names": "", "server_encoding": "UTF8"}
#: Settings other than the sound ones, whether a power cut is survived, and a part of what is said.
CLAIMS: Final[tuple[tuple[dict[str, str | None], bool | None, str], ...]] = (
    ({}, True, "a fail-over may lose the last ones"),
    ({"fsync": "off"}, False, "may corrupt the database"),
    ({"full_page_writes": "off"}, False, "may corrupt the database"),
    ({"synchronous_commit": "off"}, False, "the last second"),
    ({"synchronous_standby_names": "ANY 1 (a, b)"}, True, "flushed on a synchronous standby"),
    (
        {"synchronous_standby_names": "*", "synchronous_commit": "remote_apply"},
        True,
        "applied on a synchronous standby",
    ),
    ({"synchronous_standby_names": "*", "synchronous_commit": "remote_write"}, True, "if it crashes as well"),
    ({"synchronous_standby_names": "*", "synchronous_commit": "local"}, True, "a fail-over may lose the last ones"),
    ({"fsync": None}, None, "does not tell"),
)


@pytest.mark.parametrize(("settings", "survives", "said"), CLAIMS)
def test_what_may_be_claimed(settings: dict[str, str | None], survives: bool | None, said: str) -> None:  # noqa: FBT001
    """R-15."""
    in_force: dict[str, str | None] = {**_SOUND, **settings}
    durability = durability_of(in_force)
    assert durability.survives_power_loss is survives
    assert said in durability.claim
    refusal = fault_of(in_force, SCHEMA_VERSION, "here", unsafe=False)
    assert (refusal is not None) is (survives is False)
    assert fault_of(in_force, SCHEMA_VERSION, "here", unsafe=True) is None


def test_settings_that_are_not_durable_need_an_explicit_word(store: str) -> None:
    """R-15. The connection asks for them itself, as a role or a database may."""
    name = store.rpartition("/")[2]
    execute(store, f"ALTER DATABASE {name} SET synchronous_commit = off")
    with pytest.raises(StoreError, match="unsafe=yes"):
        open_store(store)
    with open_store(f"{store}?unsafe=yes", token_counter=EstimatedTokens()) as opened:
        assert opened.durability.survives_power_loss is False
        assert opened.version("s") == 8
