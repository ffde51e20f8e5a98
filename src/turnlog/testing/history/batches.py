"""Which append stored which part of the log, between which two moments: P2, P3, P4 and the static half of P6."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from turnlog.testing.history.lives import Life
from turnlog.testing.history.properties import Findings
from turnlog.testing.history.records import FOREVER, Ok, Operation, RecordedEvent, Unknown


class Log:
    """A log to look things up in, with what was offered to it."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.events = [RecordedEvent(entry.id, entry.digest) for entry in life.log.entries]
        self.place = {event.id: position for position, event in enumerate(self.events, 1)}
        self.appends = [operation for operation in life.operations if operation.kind == "append"]
        self.offers: defaultdict[str, list[Operation]] = defaultdict(list)
        for operation in self.appends:
            for event in operation.events:
                self.offers[event.id].append(operation)

    def holds(self, event: RecordedEvent) -> bool:
        """Whether the event is there, with this content."""
        return self.event_at(self.place.get(event.id, 0)) == event

    def event_at(self, position: int) -> RecordedEvent | None:
        """The event at a position, from 1."""
        return self.events[position - 1] if 1 <= position <= len(self.events) else None

    def blame(self, event: RecordedEvent, otherwise: str) -> tuple[str, str, list[Operation]]:
        """The property that an event breaks by being seen, why, and the calls that offered it."""
        offers = [operation for operation in self.offers.get(event.id, ()) if event in operation.events]
        if offers and not any(may_have_stored(operation) for operation in offers):
            return "P4", f"event {event.id!r} is seen, but its append failed", offers[:1]
        if not offers and self.life.is_earlier(event.id):
            return "P11", f"event {event.id!r} is from before the session was deleted", []
        return otherwise, "", offers[:1]


class Cover(msgspec.Struct, frozen=True):
    """A batch in its place in the log, and the first call that may have put it there."""

    first: int
    last: int
    opened: Operation
    is_certain: bool


class Stored(msgspec.Struct, frozen=True):
    """What is known of one position: it was stored after `opened` was called and before `closed` returned.

    `is_inner`: the next position belongs to the same batch, so the log never was at this version.
    """

    opened: Operation
    closed: Operation | None
    is_inner: bool

    @property
    def after(self) -> int:
        """The event was not stored before this time."""
        return self.opened.invoked_ns

    @property
    def before(self) -> int:
        """The event was stored before this time."""
        return FOREVER if self.closed is None else self.closed.ended_ns


def may_have_stored(operation: Operation) -> bool:
    """Whether the append was acknowledged or may have taken effect."""
    return isinstance(operation.outcome, Ok | Unknown)


def is_replay_of_stored(log: Log, operation: Operation, version: int) -> bool:
    """Whether all that the append offers is in the log at this version, which makes it a replay (R-4)."""
    is_batch = 0 < len({event.id for event in operation.events}) == len(operation.events)
    return is_batch and all(log.holds(event) and log.place[event.id] <= version for event in operation.events)


def match_batches(log: Log, findings: Findings) -> dict[int, Stored]:
    """When each position was stored, if an append explains it; what breaks P2, P3, P4 or P6 goes to the findings."""
    covers = _placed(log)
    closed: dict[int, Operation] = {}
    for operation in log.appends:
        if isinstance(operation.outcome, Ok):
            _check_acknowledgement(log, operation, operation.outcome, findings)
            _close(log, operation, closed)
    _check_single_storing(log, findings)
    _check_whole(log, covers, findings)
    stored: dict[int, Stored] = {}
    premature: set[int] = set()
    for position, event in enumerate(log.events, 1):
        found = covers.get(position)
        if found is None:
            _report_unexplained(log, event, position, findings)
            continue
        opened = min((cover.opened for cover in found), key=lambda operation: operation.invoked_ns)
        end = closed.get(position)
        if end is not None and end.ended_ns < opened.invoked_ns:
            # Judged here; taken for true it would contradict half the history.
            if id(end) not in premature:
                premature.add(id(end))
                findings.add("P3", f"event {event.id!r} was called a replay before anybody had stored it", end, opened)
            end = None
        stored[position] = Stored(opened, end, all(cover.last > position for cover in found))
    return stored


def _groups(log: Log) -> Iterator[tuple[tuple[RecordedEvent, ...], list[Operation]]]:
    """The batches offered, each with all calls that offered just this batch and may have stored it."""
    groups: defaultdict[tuple[RecordedEvent, ...], list[Operation]] = defaultdict(list)
    for operation in log.appends:
        if operation.events and may_have_stored(operation):
            groups[operation.events].append(operation)
    yield from groups.items()


def _is_certain(operation: Operation) -> bool:
    return isinstance(operation.outcome, Ok) and not operation.outcome.replay


def _is_in_place(log: Log, events: Sequence[RecordedEvent]) -> bool:
    first = log.place.get(events[0].id, 0)
    return first > 0 and tuple(log.events[first - 1 : first - 1 + len(events)]) == tuple(events)


def _placed(log: Log) -> dict[int, list[Cover]]:
    """For each position the batches that lie whole over it; a batch known to be stored leaves no room for others."""
    covers: dict[int, list[Cover]] = {}
    for events, operations in _groups(log):
        if not _is_in_place(log, events):
            continue
        first = log.place[events[0].id]
        certain = [operation for operation in operations if _is_certain(operation)]
        # An append that expected another version cannot have put the batch here.
        storing = certain or [each for each in operations if each.expected_version in {None, first - 1}]
        if not storing:
            continue
        opened = min(storing, key=lambda operation: operation.invoked_ns)
        cover = Cover(first, first + len(events) - 1, opened, bool(certain))
        for position in range(cover.first, cover.last + 1):
            covers.setdefault(position, []).append(cover)
    for position, found in covers.items():
        if len(found) > 1 and any(cover.is_certain for cover in found):
            covers[position] = [cover for cover in found if cover.is_certain]
    return covers


def _close(log: Log, operation: Operation, closed: dict[int, Operation]) -> None:
    """An acknowledgement proves that its events were stored before it, whoever stored them."""
    for event in operation.events:
        if log.holds(event):
            position = log.place[event.id]
            if position not in closed or operation.ended_ns < closed[position].ended_ns:
                closed[position] = operation


def _check_acknowledgement(log: Log, operation: Operation, ok: Ok, findings: Findings) -> None:
    events = operation.events
    if not events:
        findings.add("P4", "a batch without events was acknowledged", operation)
        return
    if len({event.id for event in events}) < len(events):
        findings.add("P3", "a batch with an id twice was acknowledged", operation)
        return
    if not ok.replay:
        if ok.last - ok.first + 1 != len(events):
            findings.add("P4", f"{len(events)} events were acknowledged as {ok.first} to {ok.last}", operation)
        if operation.expected_version not in {None, ok.first - 1}:
            message = f"the append expected version {operation.expected_version} and was put at {ok.first}"
            findings.add("P6", message, operation)
    for property_id, message, others in _misplaced(log, operation, ok):
        findings.add(property_id, message, operation, *others)
        return


def _misplaced(log: Log, operation: Operation, ok: Ok) -> Iterator[tuple[str, str, list[Operation]]]:
    """The acknowledged events that the log does not have where it should."""
    newest = len(operation.events) - 1
    for index, event in enumerate(operation.events):
        expected = {ok.first + index}
        if ok.replay:
            # The events of a replay may lie apart; it is only told where the first and the last are.
            expected = {end for end, place in ((ok.first, 0), (ok.last, newest)) if place == index}
        place = log.place.get(event.id)
        if place is None:
            yield "P2", f"event {event.id!r} was acknowledged and is not in the log", []
        elif not log.holds(event):
            holder = log.events[place - 1]
            others = [each for each in log.offers[event.id] if holder in each.events and may_have_stored(each)]
            message = f"event {event.id!r} was acknowledged and is in the log with other content"
            yield ("P3" if others else "P2"), message, others[:1]
        elif expected - {place}:
            message = f"event {event.id!r} was acknowledged at {min(expected - {place})} and is at {place}"
            yield ("P3" if ok.replay else "P2"), message, []


def _check_single_storing(log: Log, findings: Findings) -> None:
    """Of all calls that offer an id, one stores it; every other acknowledgement is a replay."""
    storing: dict[str, Operation] = {}
    for operation in filter(_is_certain, log.appends):
        again = [event.id for event in operation.events if event.id in storing]
        if again:
            findings.add("P3", f"event {again[0]!r} was stored by two appends", storing[again[0]], operation)
        storing.update((event.id, operation) for event in operation.events)


def _check_whole(log: Log, covers: dict[int, list[Cover]], findings: Findings) -> None:
    for events, operations in _groups(log):
        present = [event for event in events if log.holds(event)]
        if not present or _is_in_place(log, events):
            continue
        certain = [operation for operation in operations if _is_certain(operation)]
        # Without an acknowledgement the batch may have stored nothing, if others explain all of it that is there.
        if certain or not all(log.place[event.id] in covers for event in present):
            places = ", ".join(f"{event.id!r} at {log.place[event.id]}" for event in present[:4])
            message = f"of a batch of {len(events)} the log has {len(present)}, not one behind the other: {places}"
            findings.add("P4", message, (certain or operations)[0])


def _report_unexplained(log: Log, event: RecordedEvent, position: int, findings: Findings) -> None:
    """An event of the log that no append can have put there; a scattered batch is reported as a whole."""
    offers: Iterable[Operation] = [each for each in log.offers.get(event.id, ()) if event in each.events]
    offers = [operation for operation in offers if may_have_stored(operation)]
    if any(_is_in_place(log, operation.events) for operation in offers):
        message = f"event {event.id!r} is at {position}, where no append of it expected to be"
        findings.add("P6", message, *offers[:1])
    elif not offers:
        property_id, message, evidence = log.blame(event, "P2")
        message = message or f"event {event.id!r}, at {position}, was never offered with this content"
        findings.add(property_id, message, *(evidence or log.offers.get(event.id, ())[:1]))
