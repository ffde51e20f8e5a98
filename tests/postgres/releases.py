"""The release after this one, as far as its schema goes."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from turnlog.storage.migrations import SCHEMA_VERSION, Migration, migrations
from turnlog.storage.sql.drivers.postgres import durability, migrating

#: A step as one may come: a new table, a new column of the largest table, a new index.
STEP = (
    "CREATE TABLE more (a INTEGER); ALTER TABLE event ADD COLUMN b TEXT;"
    " CREATE INDEX event_b ON event (session_key, b) WHERE b IS NOT NULL"
)


@contextmanager
def next_release(step: str = STEP) -> Generator[Migration]:
    """Inside, turnlog knows one schema more."""
    added = Migration(SCHEMA_VERSION + 1, "more", step)
    steps = (*migrations("postgres"), added)
    with ExitStack() as stack:
        stack.enter_context(patch.object(migrating, "migrations", lambda _dialect: steps))
        for module in (migrating, durability):
            stack.enter_context(patch.object(module, "SCHEMA_VERSION", added.number))
        yield added
