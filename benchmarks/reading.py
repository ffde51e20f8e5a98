"""Reads: a window, a whole small session, a listing, a view behind a boundary; and what a compaction costs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, cycle

from benchmarks.appending import filled
from benchmarks.floor import Floor, bodies
from benchmarks.lab import Result, Scale, folder, ratio, timed
from benchmarks.traffic import events, messages
from turnlog import EventFilter, SessionEvent, SessionService, open_store
from turnlog.compaction import TurnCountTrigger, WindowCompactionStrategy
from turnlog.testing.factories import session

_NEVER = TurnCountTrigger(10**9)


def results(scale: Scale) -> Iterator[Result]:
    """A row for each read."""
    for size in scale.sizes:
        yield _window(size, scale)
    yield _open_and_read(scale)
    yield _listing(scale)
    yield from _view(scale)
    for size in (100, 1_000, 10_000)[: len(scale.sizes)]:
        yield _trigger(size, scale)


def _window(size: int, scale: Scale) -> Result:
    with folder() as place, open_store(str(place / "ours.db")) as store:
        floor = Floor(place / "floor.db")
        filled(store, size, scale.others)
        key = floor.create("s")
        floor.fill(key, bodies(events("s", size)))
        window = EventFilter.last(50)
        rows = len(store.events("s", window))
        measured, own, by_hand = timed(lambda: store.events("s", window), lambda: floor.last(key, rows), scale.calls)
        floor.close()
    note = f"{own:.0f} µs; by hand {by_hand:.0f} µs, {rows} rows"
    return Result(f"last(50) at {size:,} events", measured, 0.9, note=note)


def _open_and_read(scale: Scale) -> Result:
    with folder() as place, open_store(str(place / "ours.db")) as store:
        floor = Floor(place / "floor.db")
        for number in range(scale.sessions):
            name = f"session-{number}"
            log = events(name, 20, seed=number)
            store.restore(session(name), ([event] for event in log))
            floor.fill(floor.create(name), bodies(log))
        own_names, floor_names = (cycle(f"session-{n}" for n in range(scale.sessions)) for _ in range(2))

        def ours() -> None:
            name = next(own_names)
            store.find(name)
            store.events(name)

        measured, own, by_hand = timed(ours, lambda: floor.open_and_read(next(floor_names)), scale.calls)
        floor.close()
    note = f"{own:.0f} µs; by hand {by_hand:.0f} µs"
    return Result("open a session not seen before, read its 20 events", measured, 1.5, note=note)


def _listing(scale: Scale) -> Result:
    with folder() as place, open_store(str(place / "ours.db")) as store:
        floor = Floor(place / "floor.db")
        for number in range(scale.sessions):
            owner = "ada" if number % (scale.sessions // 50) == 0 else f"owner-{number}"
            store.create(session(f"s{number}", principal=owner))
            floor.create(f"s{number}", owner)
        if len(store.list(principal="ada")) != len(floor.sessions_of("ada", 50)):
            raise AssertionError("the two sides list different sessions")
        measured, own, by_hand = timed(
            lambda: store.list(principal="ada"), lambda: floor.sessions_of("ada", 50), scale.calls
        )
        floor.close()
    note = f"{own:.0f} µs; by hand {by_hand:.0f} µs"
    return Result(f"list a principal's 50 of {scale.sessions:,} sessions", measured, 2.0, note=note)


def _view(scale: Scale) -> Iterator[Result]:
    size = scale.sizes[-1]
    kept = min(1_000, size // 4)
    with folder() as place:
        service = SessionService.open(str(place / "ours.db"))
        with service:
            filled(service.repository, size, 0)
            service.compact("s", WindowCompactionStrategy(last_turns=kept // 4))
            view = EventFilter.active()
            rows = len(service.events("s", view))
            floor = Floor(place / "floor.db")
            key = floor.create("s")
            floor.fill(key, bodies(events("s", size)))
            calls = max(20, scale.calls // 5)
            measured = ratio(lambda: service.events("s", view), lambda: floor.last(key, rows), calls)
            yield Result(f"view of {rows:,} behind a boundary in {size:,} events", measured, 1.3)
            floor.close()

            def compact() -> None:
                service.rewind("s", size + 1)
                service.compact("s", WindowCompactionStrategy(last_turns=kept // 4 - 1), dry_run=True)

            def rewind_and_read() -> None:
                service.rewind("s", size + 1)
                service.events("s", view)

            compared = ratio(compact, rewind_and_read, 20)
            yield Result("decide a plain-window compaction of it ÷ read the view", compared, 3.0)


def _trigger(size: int, scale: Scale) -> Result:
    with folder() as place:
        service = SessionService.open(str(place / "ours.db"))
        with service:
            filled(service.repository, size, 0)
            source, numbers = messages(3), count()

            def append() -> None:
                next(numbers)
                service.append("s", SessionEvent(session_id="s", message=next(source)))

            def append_and_check() -> None:
                append()
                service.compact("s", WindowCompactionStrategy(last_turns=1), trigger=_NEVER)

            both = ratio(append_and_check, append, scale.calls)
    return Result(f"trigger check after an append, view of {size:,} ÷ the append", both - 1, 0.5)
