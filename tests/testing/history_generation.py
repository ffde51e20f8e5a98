"""Concurrent histories, tiny or busy: executions of a plain list; and what random faults make of tiny ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeAlias

import msgspec

from turnlog.testing.history.records import (
    Absent,
    Conflict,
    Done,
    Failed,
    FinalLog,
    Kind,
    LogEntry,
    Ok,
    Operation,
    Outcome,
    RecordedEvent,
    Seen,
    Unknown,
    Window,
)

SESSION = "s"
LATEST = 24

History: TypeAlias = tuple[list[Operation], FinalLog]


def seeded(seed: int) -> Random:
    """The random choices that belong to a seed, so that a failure can be had again."""
    return Random(seed)  # noqa: S311 - nothing here is secret


class Execution:
    """A session as a plain list, and the calls made on it one by one, each with room around its moment."""

    def __init__(self, random: Random, *, deletes: bool = False, regroups: bool = False) -> None:
        self.random = random
        self.deletes = deletes
        self.regroups = regroups
        self.created_by_call = random.random() < 0.4
        self.log: list[RecordedEvent] | None = None if self.created_by_call else []
        self.offered: list[tuple[RecordedEvent, ...]] = []
        self.numbers = itertools.count(1)

    def history(self) -> History:
        """One to eight calls, and the log they leave."""
        random = self.random
        width = random.choice((1, 3, LATEST))
        moments = sorted(random.choices(range(LATEST), k=random.randint(1, 8)))
        operations = [
            self.call(moment - random.randint(0, width), moment + random.randint(0, width), first=number == 0)
            for number, moment in enumerate(moments)
        ]
        random.shuffle(operations)
        return operations, FinalLog.of(self.log or ())

    def call(self, invoked_ns: int, returned_ns: int, *, first: bool) -> Operation:
        kinds: Sequence[str] = ("append", "append", "read")
        if first and self.created_by_call:
            kinds = ("create", "create", "create", "read")
        elif self.deletes:
            kinds = ("append", "append", "append", "read", "read", "create", "delete")
        elif self.created_by_call:
            kinds = ("append", "append", "append", "read", "read", "create")
        kind = self.random.choice(kinds)
        before = None if self.log is None else list(self.log)
        operation: Operation = getattr(self, kind)(invoked_ns, returned_ns)
        chance = self.random.random()
        if chance < 0.12:
            lost = self.random.choice((None, returned_ns))
            operation = msgspec.structs.replace(operation, returned_ns=lost, outcome=Unknown())
        elif chance < 0.2:
            self.log = before
            operation = msgspec.structs.replace(operation, outcome=self.random.choice((Failed(), Unknown())))
        return operation

    def append(self, invoked_ns: int, returned_ns: int) -> Operation:
        batch = self.batch()
        self.offered.append(batch)
        length = len(self.log or ())
        expected = self.random.choice((None, None, length, self.random.randint(0, length + 1)))
        return Operation(
            process=self.process(),
            kind="append",
            session=SESSION,
            invoked_ns=invoked_ns,
            returned_ns=returned_ns,
            outcome=self.appended(batch, expected),
            events=batch,
            expected_version=expected,
        )

    def batch(self) -> tuple[RecordedEvent, ...]:
        """New events, or a batch offered before: the same, or with other content; rarely what is no batch at all."""
        if self.random.random() < 0.03:
            return self.random.choice(((), (RecordedEvent("e1", "a"), RecordedEvent("e1", "a"))))
        if self.regroups:
            ids = self.random.sample(range(1, 5), self.random.randint(1, 3))
            return tuple(RecordedEvent(f"e{number}", self.random.choice("aaab")) for number in ids)
        if self.offered and self.random.random() < 0.3:
            batch = self.random.choice(self.offered)
            if self.random.random() < 0.2:
                return tuple(RecordedEvent(event.id, "b") for event in batch)
            return batch
        return tuple(RecordedEvent(f"e{next(self.numbers)}", "a") for _ in range(self.random.choice((1, 1, 2, 3))))

    def appended(self, batch: tuple[RecordedEvent, ...], expected: int | None) -> Outcome:
        if self.log is None:
            return Absent()
        ids = [event.id for event in self.log]
        if not 0 < len({event.id for event in batch}) == len(batch):
            return Failed() if expected in {None, len(ids)} else Conflict(len(ids))
        if all(event in self.log for event in batch):
            return Ok(ids.index(batch[0].id) + 1, ids.index(batch[-1].id) + 1, replay=True)
        if any(event.id in ids for event in batch):
            return Failed()
        if expected is not None and expected != len(ids):
            return Conflict(len(ids))
        self.log.extend(batch)
        return Ok(len(ids) + 1, len(ids) + len(batch))

    def read(self, invoked_ns: int, returned_ns: int) -> Operation:
        log = self.log or []
        window: Window = self.random.choice(("whole", "whole", "filtered", 0, 1, 2))
        version = self.random.choice((None, len(log)))
        seen = Seen(tuple(log), version)
        if window == "filtered":
            chosen = [place for place in range(1, len(log) + 1) if self.random.random() < 0.6]
            seen = Seen(tuple(log[place - 1] for place in chosen), version, tuple(chosen))
        elif window != "whole":
            # A window of whole turns may be longer than asked for.
            first = max(0, len(log) - window - self.random.choice((0, 0, 1)))
            seen = Seen(tuple(log[first:]), version, self.random.choice((None, tuple(range(first + 1, len(log) + 1)))))
        missing = self.log is None and self.random.random() < 0.5
        outcome = Absent() if missing else seen
        return self.simple("read", invoked_ns, returned_ns, outcome, window)

    def create(self, invoked_ns: int, returned_ns: int) -> Operation:
        outcome: Outcome = Failed("exists")
        if self.log is None:
            self.log, outcome = [], Done()
        return self.simple("create", invoked_ns, returned_ns, outcome)

    def delete(self, invoked_ns: int, returned_ns: int) -> Operation:
        outcome: Outcome = Absent() if self.log is None else Done()
        self.log = None
        return self.simple("delete", invoked_ns, returned_ns, outcome)

    def simple(
        self, kind: Kind, invoked_ns: int, returned_ns: int, outcome: Outcome, window: Window = "whole"
    ) -> Operation:
        return Operation(
            process=self.process(),
            kind=kind,
            session=SESSION,
            invoked_ns=invoked_ns,
            returned_ns=returned_ns,
            outcome=outcome,
            window=window,
        )

    def process(self) -> str:
        return self.random.choice(("p1", "p2", "p3"))


def busy_history(random: Random, *, calls: int = 150, processes: int = 4, start_ns: int = 0) -> History:
    """A linearizable history of processes that make one call after another, with time to spare between all moments."""
    spans: list[tuple[int, int, int, str]] = []
    for number in range(processes):
        now = start_ns
        for _ in range(calls // processes):
            invoked = now + random.randint(10, 400)
            moment = invoked + random.randint(10, 200)
            now = moment + random.randint(10, 200)
            spans.append((moment, invoked, now, f"w{number}"))
    execution = Execution(random)
    execution.log, execution.created_by_call = [], False
    operations: list[Operation] = []
    for _, invoked, returned, process in sorted(spans):
        operation = execution.call(invoked, returned, first=False)
        operations.append(msgspec.structs.replace(operation, process=process))
    return operations, FinalLog.of(execution.log or ())


def tiny_history(random: Random, *, faults: int = 0, deletes: bool = False, regroups: bool = False) -> History:
    """A history with so many random faults, most of which break something; without any it is linearizable."""
    operations, final = Execution(random, deletes=deletes, regroups=regroups).history()
    for _ in range(faults):
        if random.random() < 0.2:
            final = faulty_log(random, final)
        else:
            index = random.randrange(len(operations))
            operations[index] = faulty_operation(random, operations[index])
    return operations, final


def faulty_log(random: Random, final: FinalLog) -> FinalLog:
    """The log with one thing changed."""
    events = [RecordedEvent(entry.id, entry.digest) for entry in final.entries]
    match random.randrange(5):
        case 0:
            return FinalLog(final.version + random.choice((-1, 1)), final.entries)
        case 1 if final.entries:
            shift = random.randrange(len(final.entries))
            entries = [LogEntry(e.id, e.digest, e.position + (n >= shift)) for n, e in enumerate(final.entries)]
            return FinalLog(final.version + 1, tuple(entries))
        case _:
            return FinalLog.of(faulty_events(random, events))


def faulty_events(random: Random, events: list[RecordedEvent]) -> list[RecordedEvent]:
    """Events with one lost, moved, doubled, changed, or a foreign one among them."""
    events = list(events)
    index = random.randrange(len(events)) if events else 0
    match random.randrange(6):
        case 0 if events:
            del events[index]
        case 1 if len(events) > 1:
            other = random.randrange(len(events))
            events[index], events[other] = events[other], events[index]
        case 2 if events:
            events.insert(random.randint(0, len(events)), events[index])
        case 3 if events:
            events[index] = RecordedEvent(events[index].id, "changed")
        case 4:
            del events[len(events) - 1 :]
        case _:
            events.insert(random.randint(0, len(events)), RecordedEvent(f"e{random.randint(1, 9)}", "a"))
    return events


def faulty_operation(random: Random, operation: Operation) -> Operation:
    """The call with its times or its answer changed."""
    if random.random() < 0.5 and operation.returned_ns is not None:
        moved = random.randint(-LATEST, LATEST)
        invoked, returned = operation.invoked_ns + moved, operation.returned_ns + moved
        return msgspec.structs.replace(operation, invoked_ns=invoked, returned_ns=returned)
    if random.random() < 0.1 and operation.kind == "append":
        expected = random.choice((None, 0, 1, 2, 3))
        return msgspec.structs.replace(operation, expected_version=expected)
    if operation.returned_ns is None:
        return operation
    return msgspec.structs.replace(operation, outcome=faulty_outcome(random, operation))


def faulty_outcome(random: Random, operation: Operation) -> Outcome:
    step: Callable[[], int] = lambda: random.choice((-1, 0, 0, 1))  # noqa: E731 - one word for a small change
    match operation.outcome:
        case Ok(first, last, replay):
            choices: list[Outcome] = [
                Ok(first + step(), last + step(), replay),
                Ok(first + 1, last + 1, replay),
                Ok(first, last, not replay),
                Conflict(first - 1 + step()),
                Failed(),
                Unknown(),
            ]
        case Conflict(actual):
            choices = [Conflict(actual + step()), Ok(actual + 1, actual + len(operation.events)), Failed()]
        case Seen(events, version, positions):
            shown = tuple(faulty_events(random, list(events)))
            moved = None if positions is None else tuple(range(1 + step(), len(shown) + 1 + step()))[: len(shown)]
            kept = moved if moved is None or len(moved) == len(shown) else tuple(range(1, len(shown) + 1))
            choices = [
                Seen(shown, None if version is None else len(shown), kept),
                Seen(events, len(events) + step(), positions),
                Absent(),
            ]
        case Done():
            choices = [Failed(), Absent(), Unknown()]
        case _ if operation.kind == "append":
            first = random.randint(1, 4)
            choices = [Ok(first, first + len(operation.events) - 1), Conflict(random.randint(0, 4)), Absent()]
        case _ if operation.kind == "read":
            choices = [Absent(), Failed()]
        case _:
            choices = [Done(), Absent()]
    return random.choice(choices)
