"""A store over a dict, written from the port alone: docs/how-to/write-a-store.md walks through it."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import count

from turnlog.storage.opening import system_clock
from turnlog.storage.protocol import Clock, Durability, SessionRecord
from turnlog.storage.whole_logs import WholeLogRepository


class DictKeeper:
    """Keeps each session's record under its id, and nothing when the process ends."""

    durability = Durability(False, False, "kept in this process, as long as it lives")

    def __init__(self) -> None:
        self._records: dict[str, SessionRecord] = {}
        self._serials = count(1)

    @contextmanager
    def transaction(self) -> Generator[dict[str, SessionRecord]]:
        """The store lets one thread in at a time, and no other process sees the dict: there is nobody to shut out."""
        yield self._records

    def next_serial(self) -> int:
        """One more each time."""
        return next(self._serials)

    def close(self) -> None:
        """Let go of the records."""
        self._records.clear()


class DictStore(WholeLogRepository):
    """The store over it."""

    def __init__(self, clock: Clock = system_clock, indexed_metadata: Sequence[str] = ()) -> None:
        super().__init__(DictKeeper(), clock, indexed_metadata)
