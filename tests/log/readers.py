"""The ways to read a log that must agree: ``EventFilter.apply`` and every store."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from turnlog.log.event_filter import EventFilter
from turnlog.log.events import SessionEvent
from turnlog.storage.opening import open_store
from turnlog.storage.protocol import SessionRepository
from turnlog.testing.clocks import FixedClock
from turnlog.testing.factories import SESSION_ID, session
from turnlog.testing.strategies import stored

Batches = Sequence[Sequence[SessionEvent]]

READERS: Final = ("apply", "memory", "sqlite", "sqlite in memory")


class Log(Protocol):
    """A log that was written, to be read."""

    def positions(self, filter_: EventFilter) -> list[int]:
        """The positions of what the filter selects."""
        ...

    def read(self, filter_: EventFilter, as_of: int | None = None) -> list[SessionEvent]:
        """What the filter selects of the log, or of the log as it was; all ways to read it agree."""
        ...


class Reader(Protocol):
    """Writes a log, batch by batch, and gives it to be read."""

    def write(self, batches: Batches) -> Log:
        """A new log of these batches, whose events are those of session ``s``."""
        ...


class _AppliedLog:
    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self._whole = stored(batches)

    def positions(self, filter_: EventFilter) -> list[int]:
        return _positions(filter_.apply(self._whole))

    def read(self, filter_: EventFilter, as_of: int | None = None) -> list[SessionEvent]:
        kept: list[Sequence[SessionEvent]] = []
        length = 0
        for batch in self._batches:
            length += len(batch)
            if as_of is not None and length > as_of:
                break
            kept.append(batch)
        return filter_.apply(stored(kept))


class ApplyReader:
    """The reference: no store at all."""

    def write(self, batches: Batches) -> Log:
        """See the protocol."""
        return _AppliedLog(batches)


class _StoredLog:
    def __init__(self, store: SessionRepository, session_id: str) -> None:
        self._store = store
        self._session_id = session_id

    def positions(self, filter_: EventFilter) -> list[int]:
        return _positions(self._store.events(self._session_id, filter_))

    def read(self, filter_: EventFilter, as_of: int | None = None) -> list[SessionEvent]:
        found = self._store.events(self._session_id, filter_, as_of=as_of)
        assert self._store.count(self._session_id, filter_, as_of=as_of) == len(found)
        walked = self._store.iter_events(self._session_id, filter_, as_of=as_of, batch_size=3)
        assert list(itertools.chain.from_iterable(walked)) == found
        return [event.replace(session_id=SESSION_ID) for event in found]


class StoreReader:
    """A store, with one session for each log."""

    def __init__(self, store: SessionRepository) -> None:
        self._store = store
        self._count = itertools.count(1)

    def write(self, batches: Batches) -> Log:
        """See the protocol."""
        session_id = f"session {next(self._count)}"
        self._store.create(session(session_id))
        for batch in batches:
            self._store.append(session_id, [event.replace(session_id=session_id) for event in batch])
        return _StoredLog(self._store, session_id)


def _positions(events: Sequence[SessionEvent]) -> list[int]:
    return [event.position for event in events if event.position is not None]


@contextmanager
def open_reader(name: str, folder: Path) -> Generator[Reader]:
    """The reader of that name; a store lies in ``folder``."""
    if name == "apply":
        yield ApplyReader()
        return
    urls = {"memory": "memory:", "sqlite": f"sqlite:{folder / 'log.db'}", "sqlite in memory": "sqlite::memory:"}
    with open_store(urls[name], clock=FixedClock()) as store:
        yield StoreReader(store)
