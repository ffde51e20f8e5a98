"""Appends: at every length of the log, alone and beside other sessions; and how often they flush."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

from benchmarks.floor import Floor, bodies
from benchmarks.lab import Result, Scale, folder, timed
from benchmarks.traffic import events, messages
from turnlog import Session, SessionEvent, SessionRepository, open_store
from turnlog.testing.factories import session

_FLUSHED_APPENDS = 1_000


def results(scale: Scale) -> Iterator[Result]:
    """A row for each length of the log, the growth between them, and the flushes."""
    for others in (0, scale.others):
        beside = f" beside {others:,} other sessions" if others else ""
        own_times = []
        for size in scale.sizes:
            ratio, own, by_hand = _append(size, others, scale.calls)
            own_times.append(own)
            note = f"{own:.0f} µs; by hand {by_hand:.0f} µs"
            yield Result(f"append at {size:,} events{beside}", ratio, 2.0, note=note)
        yield Result(f"append, largest time ÷ smallest{beside}", max(own_times) / min(own_times), 1.25)
    yield Result("flushes per append, checkpoints included", _flushes(), 1.05, note="counted by strace")


def filled(store: SessionRepository, size: int, others: int) -> None:
    """A session of ``size`` events, and others of twenty."""
    _restore(store, session("s"), events("s", size))
    for number in range(others):
        name = f"other-{number}"
        _restore(store, session(name), events(name, 20, seed=number))


def _restore(store: SessionRepository, into: Session, log: list[SessionEvent]) -> None:
    store.restore(into, ([event] for event in log))


def _append(size: int, others: int, calls: int) -> tuple[float, float, float]:
    with folder() as place, open_store(str(place / "ours.db")) as store:
        floor = Floor(place / "floor.db")
        filled(store, size, others)
        key = floor.create("s")
        floor.fill(key, bodies(events("s", size)))
        for number in range(others):
            floor.fill(floor.create(f"other-{number}"), bodies(events("s", 20, seed=number)))
        source = messages(7)
        kept = cycle(bodies(events("s", 400, seed=7)))

        def ours() -> None:
            store.append("s", (SessionEvent(session_id="s", message=next(source)),))

        try:
            return timed(ours, lambda: floor.append(key, next(kept)), calls)
        finally:
            floor.close()


def _flushes() -> float | None:
    """``fsync`` and ``fdatasync`` calls of 1,000 appends, those of opening and closing subtracted."""
    if shutil.which("strace") is None:
        return None
    with folder() as place:
        return (_traced(place, _FLUSHED_APPENDS) - _traced(place, 0)) / _FLUSHED_APPENDS


def _traced(place: Path, appends: int) -> int:
    log = place / f"trace-{appends}"
    command = [sys.executable, "-m", "benchmarks.appending", str(place / f"{appends}.db"), str(appends)]
    subprocess.run(["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", log, *command], check=True)  # noqa: S603, S607
    return len(re.findall(r"f(?:data)?sync\(", log.read_text()))


def append_many(path: str, appends: int) -> None:
    """What is traced."""
    with open_store(path) as store:
        store.create(session("s"))
        for event in events("s", appends):
            store.append("s", (event,))


if __name__ == "__main__":
    append_many(sys.argv[1], int(sys.argv[2]))
