"""Reads: a session not seen before, a listing, a view behind a boundary; and what a compaction costs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

from benchmarks.floor import Floor
from benchmarks.lab import Result, Scale, compare, folder
from benchmarks.logs import fill, restore
from benchmarks.traffic import events, repeated
from turnlog import EventFilter, SessionEvent, SessionService, open_store
from turnlog.compaction import TurnCountTrigger, WindowCompactionStrategy
from turnlog.testing.factories import session

_NEVER = TurnCountTrigger(10**9)
_VIEW = EventFilter.active()


def results(scale: Scale) -> Iterator[Result]:
    """A row for each read."""
    yield from _sessions(scale)
    yield from _view(scale)
    for size in (100, 1_000, 10_000)[: len(scale.sizes)]:
        yield _trigger(size, scale)


def _sessions(scale: Scale) -> Iterator[Result]:
    """Sessions of twenty events. One in so many belongs to ada, who has fifty; the others to somebody else each."""
    with folder() as place:
        path = place / "sessions.db"
        with open_store(str(path)) as store:
            for number in range(scale.sessions):
                owner = "ada" if number % (scale.sessions // 50) == 0 else f"owner-{number}"
                name = f"session-{number}"
                restore(store, session(name, principal=owner), events(name, 20, seed=number % 10))
        floor = Floor(path)
        with open_store(str(path)) as store:
            ours, by_hand = (cycle(f"session-{n * 7 % scale.sessions}" for n in range(scale.sessions)) for _ in "12")

            def open_and_read() -> None:
                name = next(ours)
                store.find(name)
                store.events(name)

            found = compare(open_and_read, lambda: floor.open_and_read(next(by_hand)), scale.visits * 2)
            name = "open a session not seen before, read its 20 events"
            yield Result(name, found.ratio, 1.5, note=found.note)
            if len(store.list(principal="ada")) != len(floor.sessions_of("ada", 50)):
                raise AssertionError("the two sides list different sessions")
            found = compare(lambda: store.list(principal="ada"), lambda: floor.sessions_of("ada", 50), scale.visits * 2)
            yield Result(f"list a principal's 50 of {scale.sessions:,} sessions", found.ratio, 2.0, note=found.note)
        floor.close()


def _view(scale: Scale) -> Iterator[Result]:
    size = scale.sizes[-1]
    turns = min(250, size // 16)
    with folder() as place, SessionService.open(str(place / "ours.db")) as service:
        fill(service.repository, size, 0)
        service.compact("s", WindowCompactionStrategy(last_turns=turns))
        rows = len(service.events("s", _VIEW))
        plain = EventFilter.last(rows, whole_turns=False)
        found = compare(lambda: service.events("s", _VIEW), lambda: service.events("s", plain), scale.visits, block=3)
        note = f"{found.own:,.0f} µs; plain read {found.by_hand:,.0f} µs"
        yield Result(
            f"view of {rows:,} behind a boundary in {size:,} events ÷ a plain read", found.ratio, 1.3, note=note
        )
        one_less = WindowCompactionStrategy(last_turns=turns - 1)
        found = compare(
            lambda: service.compact("s", one_less, dry_run=True),
            lambda: service.events("s", _VIEW),
            scale.visits,
            block=3,
        )
        yield Result("decide a plain-window compaction of it ÷ read the view", found.ratio, 3.0)


def _trigger(size: int, scale: Scale) -> Result:
    with folder() as place, SessionService.open(str(place / "ours.db")) as service:
        fill(service.repository, size, 0)
        source = repeated(3)

        def append() -> None:
            service.append("s", SessionEvent(session_id="s", message=next(source)))

        def append_and_check() -> None:
            append()
            service.compact("s", WindowCompactionStrategy(last_turns=1), trigger=_NEVER)

        both = compare(append_and_check, append, scale.visits).ratio
    return Result(f"trigger check after an append, view of {size:,} ÷ the append", both - 1, 0.5)
