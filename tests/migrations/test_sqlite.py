"""R-13: numbered steps lead to the full schema; refused, finished, and safe at once."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from turnlog import ForeignStoreError, SchemaVersionError, SessionEvent, SessionService, UserMessage, open_store
from turnlog.storage import migrations as schema
from turnlog.storage.migrations import SCHEMA_VERSION, Migration, full_schema, migrations, statements
from turnlog.storage.sql.drivers.sqlite import SqliteOptions, connecting, migrating


def shape(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    """Everything the schema says, without the blanks and comments it is written with."""
    found = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name").fetchall()
    return [(*row[:3], " ".join((row[3] or "").split())) for row in found]


def test_the_steps_make_the_full_schema() -> None:
    whole, stepwise = sqlite3.connect(":memory:"), sqlite3.connect(":memory:")
    for statement in statements(full_schema("sqlite")):
        whole.execute(statement)
    for step in migrations("sqlite"):
        for statement in statements(step.sql):
            stepwise.execute(statement)
    assert shape(stepwise) == shape(whole)
    whole.close()
    stepwise.close()


def test_the_steps_are_numbered_up_to_the_newest() -> None:
    for dialect in ("sqlite", "postgres"):
        assert [step.number for step in migrations(dialect)] == list(range(1, SCHEMA_VERSION + 1))


@pytest.fixture
def next_release(monkeypatch: pytest.MonkeyPatch) -> Migration:
    """The tests' own step to a schema that is not there yet."""
    added = Migration(
        SCHEMA_VERSION + 1, "more", "CREATE TABLE more (a INTEGER) STRICT; ALTER TABLE event ADD COLUMN b TEXT;"
    )
    steps = (*migrations("sqlite"), added)
    for module in (migrating, schema):
        monkeypatch.setattr(module, "migrations", lambda _dialect: steps)
    monkeypatch.setattr(connecting, "SCHEMA_VERSION", added.number)
    return added


@pytest.fixture
def old_file(tmp_path: Path) -> Path:
    path = tmp_path / "old.db"
    with SessionService.open(str(path)) as service:
        service.create("s")
        service.append_message("s", UserMessage("kept"))
    return path


def test_an_old_file_is_refused_with_the_command_and_migrated_in_place(old_file: Path, next_release: Migration) -> None:
    """CASE B145, B147."""
    with pytest.raises(SchemaVersionError, match="turnlog migrate apply"):
        open_store(str(old_file))
    options = SqliteOptions(path=str(old_file))
    assert migrating.migrate(options) == [next_release]
    assert migrating.migrate(options) == []
    assert migrating.schema_version(options) == next_release.number
    with SessionService.open(str(old_file)) as service:
        assert service.active_messages("s") == [UserMessage("kept")]


def test_a_newer_file_is_refused(old_file: Path) -> None:
    with sqlite3.connect(old_file) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    for use in (lambda: open_store(str(old_file)), lambda: migrating.migrate(SqliteOptions(path=str(old_file)))):
        with pytest.raises(SchemaVersionError, match="upgrade turnlog"):
            use()


def test_a_strangers_file_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "stranger.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ForeignStoreError):
        migrating.migrate(SqliteOptions(path=str(path)))
    assert path.read_bytes() == before


def test_an_interrupted_step_leaves_nothing_and_is_finished_by_the_next_run(
    old_file: Path, next_release: Migration, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = SqliteOptions(path=str(old_file))
    broken = Migration(next_release.number, "more", "CREATE TABLE more (a INTEGER) STRICT; SELECT no_such_column;")
    steps = (*migrations("sqlite")[:1], broken)
    with monkeypatch.context() as patch:
        patch.setattr(migrating, "migrations", lambda _dialect: steps)
        with pytest.raises(Exception, match="no_such_column"):
            migrating.migrate(options)
    assert migrating.schema_version(options) == SCHEMA_VERSION
    assert migrating.migrate(options) == [next_release]


@pytest.mark.usefixtures("old_file", "next_release")
def test_eight_at_once_take_each_step_once_while_others_read_and_write(old_file: Path) -> None:
    options = SqliteOptions(path=str(old_file))
    taken: list[list[Migration]] = []
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        taken.append(migrating.migrate(options))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(len, taken)) == [0] * 7 + [1]
    with SessionService.open(str(old_file)) as service:
        stored = service.append("s", SessionEvent(session_id="s", message=UserMessage("after")))
        assert stored.version == 2


def test_an_empty_file_is_made_by_the_steps_too(tmp_path: Path) -> None:
    options = SqliteOptions(path=str(tmp_path / "new.db"))
    assert migrating.migrate(options) == list(migrations("sqlite"))
    with SessionService.open(options.path) as service:
        assert service.create("s").id == "s"
