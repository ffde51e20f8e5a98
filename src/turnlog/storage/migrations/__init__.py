"""Numbered schema changes per dialect, and the full schema beside them; a test proves that they agree (R-13)."""

from __future__ import annotations

from importlib import resources
from typing import Final, Literal, TypeAlias

from msgspec import Struct

Dialect: TypeAlias = Literal["sqlite", "postgres"]

#: The newest schema. A change of it is a new numbered migration in every dialect.
SCHEMA_VERSION: Final = 1
#: "tlog": what the header of a SQLite file of ours says of the program that owns it.
SQLITE_APPLICATION_ID: Final = 0x746C6F67


class Migration(Struct, frozen=True):
    """The step to schema ``number`` from the one before."""

    number: int
    name: str
    sql: str


def migrations(dialect: Dialect) -> tuple[Migration, ...]:
    """All steps, in order. The first makes the first release's schema."""
    folder = resources.files(f"turnlog.storage.migrations.{dialect}")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name[:4].isdigit())
    return tuple(
        Migration(int(name[:4]), name[5:].removesuffix(".sql"), folder.joinpath(name).read_text(encoding="utf-8"))
        for name in names
    )


def full_schema(dialect: Dialect) -> str:
    """The newest schema as one script."""
    folder = resources.files(f"turnlog.storage.migrations.{dialect}")
    return folder.joinpath("schema.sql").read_text(encoding="utf-8")


def statements(script: str) -> list[str]:
    """The statements of a script, comments left out; none of ours has a semicolon or two dashes within."""
    lines = (line.split("--", 1)[0].rstrip() for line in script.splitlines())
    return [statement.strip() for statement in "\n".join(lines).split(";") if statement.strip()]


def mark(dialect: Dialect, number: int) -> str:
    """The statements that say which schema a database is at."""
    if dialect == "sqlite":
        return f"PRAGMA application_id = {SQLITE_APPLICATION_ID};\nPRAGMA user_version = {number};\n"
    forget = "DELETE FROM store_setting WHERE name = 'schema_version'"
    return f"{forget};\nINSERT INTO store_setting (name, value) VALUES ('schema_version', '{number}');\n"
