"""Appends and windows: at every length of the log, alone and beside other sessions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

from benchmarks.floor import bodies
from benchmarks.lab import Compared, Result, Scale, Subject, compared, spread
from benchmarks.logs import Log, logs
from benchmarks.traffic import events, repeated
from turnlog import EventFilter, SessionEvent

_WINDOW = EventFilter.last(50)
_FLATTEST = 1.25


def results(scale: Scale) -> Iterator[Result]:
    """A row for each log and operation, and how much the times differ between the logs."""
    with logs(scale) as made:
        yield from _table("append", made, compared([_appending(log) for log in made], scale.visits), 2.0)
        yield from _table("last(50)", made, compared([_reading(log) for log in made], scale.visits), 0.9)


def _table(operation: str, made: list[Log], found: list[Compared], bound: float) -> Iterator[Result]:
    for log, each in zip(made, found, strict=True):
        yield Result(f"{operation}, {log.name}", each.ratio, bound, note=each.note)
    yield Result(f"{operation}, largest time ÷ smallest of these", spread(found), _FLATTEST)


def _appending(log: Log) -> Subject:
    source = repeated(7)
    kept = cycle(bodies(events("s", 400, seed=7)))

    def ours() -> None:
        log.store.append("s", (SessionEvent(session_id="s", message=next(source)),))

    return Subject(ours, lambda: log.floor.append(1, next(kept)), log.renew)


def _reading(log: Log) -> Subject:
    log.renew()
    rows = len(log.store.events("s", _WINDOW))
    return Subject(lambda: log.store.events("s", _WINDOW), lambda: log.floor.last("s", rows))
