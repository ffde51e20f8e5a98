"""Our statements in the server's own words."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import count
from typing import Final

from turnlog.storage.sql.statements import LAST_LANE, NEXT_LANE

_MARK: Final = re.compile(r"\?")
_LOCK: Final = re.compile(r"SELECT 1 /\*(LOCK TABLE .*)\*/")
_ORDER: Final = re.compile(r"ORDER BY position (?:ASC|DESC)")


@lru_cache(maxsize=1_024)
def for_server(sql: str) -> bytes:
    """A statement with numbered parameters, the row lock that SQLite does without, and lanes that are merged."""
    lock = _LOCK.fullmatch(sql)
    if lock is not None:
        return lock[1].encode()
    numbers = count(1)
    numbered = _MARK.sub(lambda _: f"${next(numbers)}", sql).replace("/*FOR UPDATE*/", "FOR UPDATE")
    if LAST_LANE in numbered:
        numbered = _merging(numbered, next(numbers) - 1)
    return numbered.encode()


def _merging(sql: str, offset: int) -> str:
    """The same rows, read lane by lane in order and merged, as many of each lane as are needed (R-11).

    From a plain UNION ALL the planner would fetch every lane to its end and sort. The last two parameters are the
    limit and the offset, and no lane has to give more than both together.
    """
    lanes, end = sql.split(LAST_LANE)
    order = _ORDER.search(end)
    if order is None:
        raise AssertionError(sql)
    parts = [f"({lane} {order[0]} LIMIT ${offset - 1} + ${offset})" for lane in lanes.split(f"{NEXT_LANE} UNION ALL ")]
    return f"SELECT * FROM ({' UNION ALL '.join(parts)}) AS merged{end}"
