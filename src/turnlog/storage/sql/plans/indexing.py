"""Plans of the metadata index: which keys a store indexes, and filling the index for a new one (V-2).

A write to a session reads the keys when it has touched the session, and a change of the keys waits until no such write
is under way: so no session is left out that comes or changes meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from turnlog.errors import IndexNotBuiltError
from turnlog.log.session import SessionAttributes
from turnlog.storage.rules import indexed_keys, indexed_values
from turnlog.storage.sql import rows
from turnlog.storage.sql import statements as sql
from turnlog.storage.sql.plans.plan import Plan
from turnlog.storage.sql.statements import Statement

_SETTING = "indexed_metadata"
_SESSIONS_AT_ONCE = 500


def read_keys() -> Plan[tuple[str, ...]]:
    """The keys that the store keeps an index of."""
    found = yield Statement(sql.SETTING, (_SETTING,))
    extra: list[str] = msgspec.json.decode(found[0][0], type=list[str]) if found else []
    return (SessionAttributes.PRINCIPAL_NAME, *extra)


def add_keys(wanted: Sequence[str]) -> Plan[tuple[str, ...]]:
    """Index ``wanted`` too: at once in a store without sessions; else the index has to be filled first."""
    known = yield from read_keys()
    missing = [key for key in indexed_keys(wanted) if key not in known]
    if not missing:
        return known
    yield Statement(sql.LOCK_SESSIONS)
    if (yield Statement(sql.ANY_SESSION)):
        raise IndexNotBuiltError(tuple(missing))
    yield from _save((*known, *missing))
    return (*known, *missing)


def fill(key: str) -> Plan[tuple[int, tuple[str, ...]]]:
    """Index all sessions by ``key`` and keep the index from now on; returns how many have a value, and all keys."""
    yield Statement(sql.LOCK_SESSIONS)
    known = yield from read_keys()
    if key in known:
        return 0, known
    filled, last = 0, 0
    while found := (yield Statement(sql.SESSIONS_BEHIND, (last, _SESSIONS_AT_ONCE))):
        for row in found:
            session, last = rows.session(row), row[6]
            for name, value in indexed_values(session, indexed_keys((key,))):
                if name == key:
                    yield Statement(sql.ADD_ATTRIBUTE, (name, value, row[1], last))
                    filled += 1
    yield from _save((*known, key))
    return filled, (*known, key)


def _save(keys: Sequence[str]) -> Plan[None]:
    extra = [key for key in keys if key != SessionAttributes.PRINCIPAL_NAME]
    yield Statement(sql.REMOVE_SETTING, (_SETTING,))
    yield Statement(sql.ADD_SETTING, (_SETTING, msgspec.json.encode(extra).decode()))
