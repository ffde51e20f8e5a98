"""What may be claimed of a server, from the settings that are in force, and whether its schema is ours (R-13, R-15)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import psycopg

from turnlog.errors import SchemaVersionError, StoreError
from turnlog.storage.migrations import SCHEMA_VERSION
from turnlog.storage.protocol import Durability

NAMES: Final[tuple[str, ...]] = (
    "server_version",
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "synchronous_standby_names",
    "server_encoding",
)
#: Asked for at connect; NULL for what the server does not tell.
SETTINGS: Final = f"SELECT {', '.join(f'current_setting({name!r}, true)' for name in NAMES)}"
HAS_SETTINGS: Final = "SELECT to_regclass('store_setting') IS NOT NULL"
SCHEMA: Final = "SELECT value FROM store_setting WHERE name = 'schema_version'"

#: How far a commit has got on a synchronous standby when it is acknowledged.
_ON_STANDBY: Final = {"on": "flushed", "remote_apply": "applied", "remote_write": "written, not flushed"}


def check_encoding(connection: psycopg.BaseConnection[Any], place: str) -> None:
    """Refuse a connection that somebody has set up to carry less than all of Unicode, or bytes for text."""
    if connection.info.encoding != "utf-8":
        raise StoreError(f"{place}: the pool's connections have another client_encoding; turnlog needs UTF8")


def fault_of(settings: Mapping[str, str | None], schema: int, place: str, *, unsafe: bool) -> StoreError | None:
    """Why the database cannot be used as it is."""
    if settings["server_encoding"] != "UTF8":
        return StoreError(f"{place}: the database's encoding is {settings['server_encoding']}; turnlog needs UTF8")
    if schema > SCHEMA_VERSION:
        message = f"{place} has schema {schema}; this turnlog knows {SCHEMA_VERSION}: upgrade turnlog"
        return SchemaVersionError(message, schema, SCHEMA_VERSION)
    if schema < SCHEMA_VERSION:
        message = f"{place} has schema {schema}, not {SCHEMA_VERSION}: run `turnlog migrate apply --store …`"
        return SchemaVersionError(message, schema, SCHEMA_VERSION)
    off = [name for name in ("fsync", "full_page_writes", "synchronous_commit") if settings[name] == "off"]
    if off and not unsafe:
        names = " and ".join(off)
        return StoreError(
            f"{place}: with {names} off acknowledged appends may be lost: turn it on, or open the store with unsafe=yes"
        )
    return None


def durability_of(settings: Mapping[str, str | None]) -> Durability:
    """The claim that these settings allow."""
    shown = tuple((name, "not told" if (value := settings[name]) is None else value) for name in NAMES[:-1])
    if settings["fsync"] == "off" or settings["full_page_writes"] == "off":
        return Durability(True, False, "a power cut may corrupt the database: fsync or full_page_writes is off", shown)
    level = settings["synchronous_commit"]
    if level == "off":
        return Durability(True, False, "the last second of acknowledged appends may be lost at a power cut", shown)
    if None in (settings["fsync"], settings["full_page_writes"], level):
        return Durability(None, None, "the server does not tell the settings that it depends on", shown)
    if not settings["synchronous_standby_names"] or level not in _ON_STANDBY:
        claim = "no acknowledged append is lost on this server; a fail-over may lose the last ones"
        return Durability(True, True, claim, shown)
    claim = f"no acknowledged append is lost: each is {_ON_STANDBY[level]} on a synchronous standby too"
    if level == "remote_write":
        claim += ", which may lose the last ones if it crashes as well"
    return Durability(True, True, claim, shown)
