"""What a plan is, and the first step of nearly every one."""

from __future__ import annotations

from collections.abc import Callable, Generator
from datetime import datetime
from typing import TypeAlias, TypeVar

from msgspec import Struct

from turnlog.errors import SessionNotFoundError
from turnlog.log.tokens import TokenCounter
from turnlog.storage.sql import rows
from turnlog.storage.sql import statements as sql
from turnlog.storage.sql.statements import Rows, Statement

T = TypeVar("T")


class StoreSettings(Struct, frozen=True):
    """What a store was opened with: the metadata keys it indexes, and the counter of its events' tokens."""

    indexed: tuple[str, ...]
    counter: TokenCounter

    def counter_beside(self, head: rows.Head) -> TokenCounter | None:
        """The counter, if it is the one whose counts stand beside the session's events."""
        return self.counter if head.token_counter == self.counter.name else None


Plan: TypeAlias = Generator[Statement, Rows, T]

#: Makes a plan for the given attempt, from 0. A later attempt follows a unique violation or a serialisation failure:
#: the plan then looks before it writes.
PlanFactory: TypeAlias = Callable[[int], Plan[T]]


def find_head(session_id: str, now: datetime, *, lock: bool = False) -> Plan[rows.Head | None]:
    """The head of a session that is there at ``now``; ``lock`` keeps others from writing to it until the end."""
    found = yield Statement(sql.HEAD_LOCKED if lock else sql.HEAD, (session_id,))
    head = rows.head(found[0]) if found else None
    return None if head is None or head.is_gone(now) else head


def lock_head(session_id: str, now: datetime) -> Plan[rows.Head]:
    """The head, locked; raises ``SessionNotFoundError``."""
    head = yield from find_head(session_id, now, lock=True)
    if head is None:
        raise SessionNotFoundError(session_id)
    return head
