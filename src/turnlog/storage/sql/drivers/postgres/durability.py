"""What may be claimed of a server, from the settings that are in force, and whether its schema is ours (R-13, R-15)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from turnlog.errors import SchemaVersionError, StoreError
from turnlog.storage.migrations import SCHEMA_VERSION
from turnlog.storage.protocol import Durability

#: Asked for at connect.
SETTINGS: Final = {
    "server_version": "SHOW server_version",
    "fsync": "SHOW fsync",
    "full_page_writes": "SHOW full_page_writes",
    "synchronous_commit": "SHOW synchronous_commit",
    "synchronous_standby_names": "SHOW synchronous_standby_names",
    "encoding": "SHOW server_encoding",
    "schema": (
        "SELECT CASE WHEN to_regclass('store_setting') IS NULL THEN 0 ELSE"
        " (xpath('/row/value/text()', query_to_xml("
        "'SELECT value FROM store_setting WHERE name = ''schema_version''', false, true, '')))[1]::text::int END"
    ),
}


def schema_fault(settings: Mapping[str, Any], place: str) -> StoreError | None:
    """Why the database cannot be used as it is."""
    found = int(settings["schema"] or 0)
    if settings["encoding"] != "UTF8":
        return StoreError(f"{place}: the database's encoding is {settings['encoding']}; turnlog needs UTF8")
    if found == SCHEMA_VERSION:
        return None
    if found > SCHEMA_VERSION:
        message = f"{place} has schema {found}; this turnlog knows {SCHEMA_VERSION}: upgrade turnlog"
    else:
        message = f"{place} has schema {found}, not {SCHEMA_VERSION}: run `turnlog migrate apply --store …`"
    return SchemaVersionError(message, found, SCHEMA_VERSION)


def durability_of(settings: Mapping[str, Any]) -> Durability:
    """The claim that these settings allow."""
    names = ("server_version", "fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names")
    shown = tuple((name, str(settings[name])) for name in names)
    if settings["fsync"] != "on" or settings["full_page_writes"] != "on":
        return Durability(True, False, "a power cut may corrupt the database: fsync or full_page_writes is off", shown)
    if settings["synchronous_commit"] == "off":
        return Durability(True, False, "the last second of acknowledged appends may be lost at a power cut", shown)
    if settings["synchronous_standby_names"]:
        return Durability(
            True, True, "no acknowledged append is lost, a fail-over to a synchronous standby included", shown
        )
    return Durability(
        True, True, "no acknowledged append is lost on this server; a fail-over may lose the last ones", shown
    )
