"""Faults planted in histories of a correct execution: each is found, under the property that it breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec
import pytest

from tests.testing.history_generation import SESSION, busy_history, seeded
from tests.testing.history_planting import Planting
from turnlog.testing.history import (
    Absent,
    Conflict,
    Done,
    Failed,
    FinalLog,
    Kind,
    LogEntry,
    Ok,
    RecordedEvent,
    Seen,
    Unknown,
    check_history,
)

SEEDS = range(30)

Fault: TypeAlias = Callable[[Planting], None]


def lost_event(plant: Planting) -> None:
    operation, _ = plant.stored()
    plant.events.remove(operation.events[-1])
    plant.set_events()


def event_twice(plant: Planting) -> None:
    plant.events.append(plant.random.choice(plant.events))
    plant.set_events()


def gap(plant: Planting) -> None:
    start = plant.random.randrange(len(plant.final.entries))
    entries = [
        LogEntry(entry.id, entry.digest, entry.position + (number >= start))
        for number, entry in enumerate(plant.final.entries)
    ]
    plant.final = FinalLog(plant.final.version + 1, tuple(entries))


def position_twice(plant: Planting) -> None:
    entries = list(plant.final.entries)
    number = plant.random.randrange(1, len(entries))
    entries[number] = LogEntry(entries[number].id, entries[number].digest, number)
    plant.final = FinalLog(plant.final.version, tuple(entries))


def version_of_row(plant: Planting) -> None:
    plant.final = FinalLog(plant.final.version + plant.random.choice((-1, 1)), plant.final.entries)


def swapped_events(plant: Planting) -> None:
    operation, ok = plant.stored()
    other = ok.first if ok.first < len(plant.events) else ok.first - 2
    first = ok.first - 1
    plant.events[first], plant.events[other] = plant.events[other], plant.events[first]
    plant.set_events()
    assert operation.events[0] != plant.events[first]


def swapped_appends(plant: Planting) -> None:
    """Two appends, one after the other, that the log has the other way round."""
    earlier, _ = plant.stored(once=True)
    later, _ = plant.stored(once=True)
    while later.invoked_ns <= (earlier.returned_ns or 0):
        earlier, _ = plant.stored(once=True)
        later, _ = plant.stored(once=True)
    plant.move(earlier, later.invoked_ns, later.returned_ns or 0)
    plant.move(later, earlier.invoked_ns, earlier.returned_ns or 0)


def half_batch(plant: Planting) -> None:
    operation, _ = plant.stored(least=2, once=True)
    plant.change(operation, plant.random.choice((Unknown(), operation.outcome)))
    plant.events.remove(plant.random.choice(operation.events))
    plant.set_events()


def batch_torn_apart(plant: Planting) -> None:
    operation, _ = plant.stored(least=2, once=True)
    plant.change(operation, Unknown())
    plant.events.remove(operation.events[-1])
    plant.events.append(operation.events[-1])
    if plant.events[-2] == operation.events[-2]:
        plant.events.insert(0, plant.events.pop())
    plant.set_events()


def failed_batch_stored(plant: Planting) -> None:
    operation, _ = plant.stored(once=True)
    plant.change(operation, Failed())


def refused_batch_stored(plant: Planting) -> None:
    operation, ok = plant.stored(once=True)
    plant.change(operation, Conflict(ok.first - 1))


def failed_batch_read(plant: Planting) -> None:
    event = RecordedEvent("failed", "a")
    plant.add("append", plant.end, Failed(), events=(event,))
    plant.add("read", plant.end + 1, Seen((*plant.events, event)))


def half_batch_read(plant: Planting) -> None:
    operation, ok = plant.stored(least=2)
    plant.add_read(ok.first, operation.invoked_ns + 1)


def wrong_first_position(plant: Planting) -> None:
    operation, ok = plant.stored()
    step = plant.random.choice((-1, 1))
    plant.change(operation, Ok(ok.first + step, ok.last + step))


def expectation_ignored(plant: Planting) -> None:
    operation, ok = plant.stored()
    index = plant.operations.index(operation)
    plant.operations[index] = msgspec.structs.replace(operation, expected_version=ok.first)


def stale_conflict(plant: Planting) -> None:
    """Refused for a version that the log had left before the call."""
    operation, ok = plant.stored()
    plant.add(
        "append",
        (operation.returned_ns or 0) + 1,
        Conflict(ok.first - 1),
        events=(RecordedEvent("new"),),
        expected_version=ok.last,
    )


def early_conflict(plant: Planting) -> None:
    """Refused for a version that the log had not reached by then."""
    operation, ok = plant.stored()
    plant.add(
        "append",
        operation.invoked_ns - 1,
        Conflict(ok.last),
        events=(RecordedEvent("new"),),
        expected_version=ok.first - 1,
    )


def conflict_at_the_version_expected(plant: Planting) -> None:
    operation = plant.answered(Conflict)
    assert operation.expected_version is not None
    plant.change(operation, Conflict(operation.expected_version))


def conflict_for_a_replay(plant: Planting) -> None:
    operation, _ = plant.stored()
    plant.add(
        "append",
        plant.end,
        Conflict(len(plant.events)),
        events=operation.events,
        expected_version=0,
    )


def stale_read(plant: Planting) -> None:
    operation, ok = plant.stored()
    plant.add_read(ok.first - 1, (operation.returned_ns or 0) + 1)


def stale_version(plant: Planting) -> None:
    operation, ok = plant.stored()
    plant.add("read", (operation.returned_ns or 0) + 1, Seen((), ok.first - 1), window=0)


def acknowledged_before_visible(plant: Planting) -> None:
    """The append came back before it had been committed: a read in between does not show it."""
    operation, ok = plant.stored()
    plant.move(operation, operation.invoked_ns, operation.invoked_ns)
    plant.add_read(ok.first - 1, operation.invoked_ns + 1)


def reads_going_back(plant: Planting) -> None:
    operation, ok = plant.stored()
    after = (operation.returned_ns or 0) + 1
    plant.add_read(ok.last, after, process="one")
    plant.add_read(ok.first - 1, after + 1, process="one")


def own_write_not_read(plant: Planting) -> None:
    operation, ok = plant.stored()
    plant.add_read(ok.first - 1, (operation.returned_ns or 0) + 1, process=operation.process)


def future_read(plant: Planting) -> None:
    operation, ok = plant.stored(once=True)
    plant.add_read(ok.last, operation.invoked_ns - 1)


def hole_in_a_read(plant: Planting) -> None:
    read = plant.answered(Seen, window="whole")
    assert isinstance(read.outcome, Seen)
    events = list(read.outcome.events)
    del events[plant.random.randrange(len(events) - 1)]
    plant.change(read, Seen(tuple(events)))


def swap_in_a_read(plant: Planting) -> None:
    read = plant.answered(Seen, window="whole")
    assert isinstance(read.outcome, Seen)
    events = list(read.outcome.events)
    index = plant.random.randrange(len(events) - 1)
    events[index], events[index + 1] = events[index + 1], events[index]
    plant.change(read, Seen(tuple(events), read.outcome.version))


def content_changed_in_a_read(plant: Planting) -> None:
    read = plant.answered(Seen, window="whole")
    assert isinstance(read.outcome, Seen)
    events = list(read.outcome.events)
    index = plant.random.randrange(len(events))
    events[index] = RecordedEvent(events[index].id, "changed")
    plant.change(read, Seen(tuple(events), read.outcome.version))


def lost_event_in_a_read(plant: Planting) -> None:
    """An event of an append that was never acknowledged was shown once and is not in the log."""
    event = RecordedEvent("lost", "a")
    plant.add("append", plant.end, Unknown(), events=(event,))
    plant.add("read", plant.end + 1, Seen((*plant.events, event)))


def window_too_short(plant: Planting) -> None:
    plant.add("read", plant.end, Seen(tuple(plant.events[-2:]), len(plant.events)), window=3)


def wrong_position_in_a_window(plant: Planting) -> None:
    count = len(plant.events)
    plant.add("read", plant.end, Seen((plant.events[-3],), count, (count - 1,)), window="filtered")


def replay_at_another_position(plant: Planting) -> None:
    replay = plant.answered(Ok, replay=True)
    assert isinstance(replay.outcome, Ok)
    plant.change(replay, Ok(replay.outcome.first + 1, replay.outcome.last + 1, replay=True))


def stored_twice(plant: Planting) -> None:
    """Two appends of one batch are both told that they stored it."""
    operation, ok = plant.stored()
    plant.add("append", plant.end, Ok(ok.first, ok.last), events=operation.events)


def replay_with_other_content(plant: Planting) -> None:
    operation, ok = plant.stored()
    changed = tuple(RecordedEvent(event.id, "other") for event in operation.events)
    plant.add("append", plant.end, Ok(ok.first, ok.last, replay=True), events=changed)


def replay_before_the_first(plant: Planting) -> None:
    operation, ok = plant.stored(once=True)
    plant.add("append", operation.invoked_ns - 1, Ok(ok.first, ok.last, replay=True), events=operation.events)


def content_changed(plant: Planting) -> None:
    operation, ok = plant.stored(once=True)
    plant.events[ok.first - 1] = RecordedEvent(operation.events[0].id, "changed")
    plant.set_events()


def foreign_event(plant: Planting) -> None:
    plant.events.append(RecordedEvent("foreign"))
    plant.set_events()


def session_not_found(plant: Planting) -> None:
    operation, _ = plant.stored()
    kinds: tuple[Kind, ...] = ("read", "append")
    plant.add(plant.random.choice(kinds), (operation.returned_ns or 0) + 1, Absent())


def two_creators(plant: Planting) -> None:
    plant.add("create", -2, Done())
    plant.add("create", -1, Done())


def used_before_it_was_created(plant: Planting) -> None:
    plant.add("create", plant.end, Done())


FAULTS: dict[Fault, str] = {
    gap: "P1",
    position_twice: "P1",
    version_of_row: "P1",
    lost_event: "P2",
    swapped_events: "P2",
    wrong_first_position: "P2",
    content_changed: "P2",
    foreign_event: "P2",
    event_twice: "P3",
    stored_twice: "P3",
    replay_at_another_position: "P3",
    replay_with_other_content: "P3",
    replay_before_the_first: "P3",
    conflict_for_a_replay: "P3",
    half_batch: "P4",
    batch_torn_apart: "P4",
    failed_batch_stored: "P4",
    refused_batch_stored: "P4",
    failed_batch_read: "P4",
    half_batch_read: "P4",
    swapped_appends: "P5",
    expectation_ignored: "P6",
    stale_conflict: "P6",
    early_conflict: "P6",
    conflict_at_the_version_expected: "P6",
    future_read: "P7",
    hole_in_a_read: "P7",
    swap_in_a_read: "P7",
    content_changed_in_a_read: "P7",
    lost_event_in_a_read: "P7",
    window_too_short: "P7",
    wrong_position_in_a_window: "P7",
    stale_read: "P8",
    stale_version: "P8",
    acknowledged_before_visible: "P8",
    session_not_found: "P8",
    reads_going_back: "P9",
    own_write_not_read: "P9",
    two_creators: "P11",
    used_before_it_was_created: "P11",
}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_correct_history_has_no_violation(seed: int) -> None:
    operations, final = busy_history(seeded(seed))
    assert check_history(operations, {SESSION: final}) == []


@pytest.mark.parametrize(("fault", "property_id"), FAULTS.items(), ids=lambda value: getattr(value, "__name__", value))
def test_every_planted_fault_is_found_under_its_property(fault: Fault, property_id: str) -> None:
    for seed in SEEDS:
        plant = Planting(seeded(seed), busy_history(seeded(seed)))
        fault(plant)
        found = check_history(plant.operations, {SESSION: plant.final})
        assert property_id in {violation.property_id for violation in found}, f"seed {seed}: {found}"
