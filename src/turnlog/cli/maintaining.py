"""``migrate`` and ``index``: what changes how a store keeps its data."""

from __future__ import annotations

from typing import Annotated

import typer

from turnlog.cli.options import JsonOption, StoreOption
from turnlog.cli.stores import existing_store, store_url
from turnlog.cli.terminal import print_json, print_line, progress, write_bytes
from turnlog.errors import InvalidValueError
from turnlog.storage.migrations import SCHEMA_VERSION, Dialect, Migration, full_schema, mark, migrations
from turnlog.storage.opening import is_postgres, sqlite_options
from turnlog.storage.sql import SqlRepository
from turnlog.storage.sql.drivers.sqlite import SqliteOptions
from turnlog.storage.sql.drivers.sqlite import migrating as sqlite

migrate = typer.Typer(help="Show, make and change a store's schema.", no_args_is_help=True)


@migrate.command()
def status(as_json: JsonOption = False, store: StoreOption = None) -> None:
    """Say which schema the store is at, and which steps it lacks."""
    url = store_url(store)
    found = _schema_version(url)
    lacking = [step for step in migrations(_dialect(url)) if step.number > found]
    if as_json:
        print_json({"found": found, "newest": SCHEMA_VERSION, "lacking": [step.number for step in lacking]})
        return
    print_line(f"schema {found}; this turnlog knows {SCHEMA_VERSION}")
    for step in lacking:
        print_line(f"lacking: {_named(step)}")


@migrate.command()
def apply(store: StoreOption = None) -> None:
    """Take the steps that the store lacks. It can be run again, and by several processes at once."""
    url = store_url(store)
    for step in _migrate(url):
        print_line(f"done: {_named(step)}")
    print_line(f"schema {_schema_version(url)}")


@migrate.command("sql")
def print_sql(
    dialect: Annotated[str, typer.Option("--dialect", help="sqlite or postgres.")] = "postgres",
    since: Annotated[
        int | None,
        typer.Option("--from", help="The steps behind this schema.", show_default=False, min=0, max=SCHEMA_VERSION),
    ] = None,
) -> None:
    """Print the whole schema, or with --from the steps, for somebody else to run."""
    known: dict[str, Dialect] = {"sqlite": "sqlite", "postgres": "postgres"}
    if dialect not in known:
        raise InvalidValueError(f"--dialect is sqlite or postgres, not {dialect!r}")
    if since is None:
        write_bytes((full_schema(known[dialect]) + mark(known[dialect], SCHEMA_VERSION)).encode())
        return
    for step in migrations(known[dialect]):
        if step.number > since:
            write_bytes((step.sql + mark(known[dialect], step.number)).encode())


def index(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The metadata key to find sessions by.")],
    store: StoreOption = None,
) -> None:
    """Index all sessions by a further metadata key, from now on."""
    with existing_store(store) as repository:
        if not isinstance(repository, SqlRepository):
            raise InvalidValueError("this store keeps no index: open it with indexed_metadata=")
        with progress(f"indexing {key}", None):
            filled = repository.fill_index(key)
        print_line(f"{key}: indexed; {filled:,} sessions have a value")


def _dialect(url: str) -> Dialect:
    return "postgres" if is_postgres(url) else "sqlite"


def _sqlite(url: str) -> SqliteOptions:
    options = sqlite_options(url)
    if options is None or options.in_memory:
        raise InvalidValueError(f"{url} has no schema to migrate")
    return options


def _schema_version(url: str) -> int:
    if is_postgres(url):
        from turnlog.storage.sql.drivers.postgres import migrating, options_of

        return migrating.schema_version(options_of(url))
    return sqlite.schema_version(_sqlite(url))


def _migrate(url: str) -> list[Migration]:
    if is_postgres(url):
        from turnlog.storage.sql.drivers.postgres import migrating, options_of

        return migrating.migrate(options_of(url))
    return sqlite.migrate(_sqlite(url))


def _named(step: Migration) -> str:
    return f"{step.number:04} {step.name.replace('_', ' ')}"
