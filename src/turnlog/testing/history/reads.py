"""What each read and each conflict says about the log at some moment of its call: P4 and P7, and half of P6."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import msgspec

from turnlog.testing.history.batches import Log, Stored, is_replay_of_stored
from turnlog.testing.history.properties import Findings
from turnlog.testing.history.records import Conflict, Operation, RecordedEvent, Seen


class Sighting(msgspec.Struct, frozen=True):
    """A call that saw the log at a version; `at_least`: it shows that version, and there may have been more."""

    operation: Operation
    version: int
    at_least: bool = False


def sightings(log: Log, stored: dict[int, Stored], findings: Findings) -> Iterator[Sighting]:
    """What the calls saw, as far as they agree with the log; those that do not go to the findings."""
    for operation in log.life.operations:
        outcome = operation.outcome
        if isinstance(outcome, Seen):
            fault, sighting = _read(log, operation, outcome)
            if fault is not None:
                findings.add(fault.property_id, fault.message, operation, *fault.evidence)
            elif sighting is not None and not sighting.at_least and _is_inner(stored, sighting.version):
                message = f"the read shows half of a batch, up to {sighting.version}"
                findings.add("P4", message, operation, stored[sighting.version].opened)
            elif sighting is not None:
                yield sighting
        elif isinstance(outcome, Conflict) and _is_justifiable(log, stored, operation, outcome, findings):
            yield Sighting(operation, outcome.actual)


class _Fault(msgspec.Struct, frozen=True):
    property_id: str
    message: str
    evidence: tuple[Operation, ...] = ()


def _is_inner(stored: dict[int, Stored], version: int) -> bool:
    return version in stored and stored[version].is_inner


def _is_justifiable(
    log: Log, stored: dict[int, Stored], operation: Operation, conflict: Conflict, findings: Findings
) -> bool:
    """Whether the log was ever at the version that the conflict names, and that is a reason to refuse."""
    actual, expected = conflict.actual, operation.expected_version
    if expected is None or actual == expected:
        findings.add("P6", f"a conflict at version {actual} where {expected} was expected", operation)
    elif not 0 <= actual <= len(log.events) or _is_inner(stored, actual):
        findings.add("P6", f"a conflict at version {actual}, at which the log never was", operation)
    elif is_replay_of_stored(log, operation, actual):
        findings.add("P3", "a conflict for a batch that was stored before: it is a replay", operation)
    else:
        return True
    return False


def _read(log: Log, operation: Operation, seen: Seen) -> tuple[_Fault | None, Sighting | None]:
    if operation.window == "filtered":
        return _filtered(log, operation, seen)
    version, fault = _version_of(log, operation, seen)
    if fault is not None or version is None:
        return fault, None
    first = version - len(seen.events) + 1
    if operation.window == "whole" and first != 1:
        fault = _Fault("P7", f"{len(seen.events)} events as the whole log at version {version}")
        return _first_difference(log, seen.events, 1) or fault, None
    if not 0 <= version <= len(log.events) or first < 1:
        fault = _Fault("P7", f"{len(seen.events)} events up to version {version}; the log has {len(log.events)}")
        return _first_difference(log, seen.events, max(first, 1)) or fault, None
    fault = _first_difference(log, seen.events, first)
    if fault is None and seen.positions not in {None, tuple(range(first, version + 1))}:
        fault = _Fault("P7", f"the positions are not {first} to {version}")
    least = version if operation.window == "whole" else min(operation.window, version)
    if fault is None and len(seen.events) < least:
        fault = _Fault("P7", f"{len(seen.events)} events where {least} were due at version {version}")
    return fault, Sighting(operation, version)


def _version_of(log: Log, operation: Operation, seen: Seen) -> tuple[int | None, _Fault | None]:
    """The version that a read of the whole log, or of its end, was made at; None if it tells nothing."""
    if seen.version is not None:
        return seen.version, None
    if operation.window == "whole":
        return len(seen.events), None
    if not seen.events:
        return (None if operation.window == 0 else 0), None
    last = seen.events[-1]
    if last.id not in log.place:
        return None, _blamed(log, last, f"the read shows event {last.id!r}, which the log does not have")
    return log.place[last.id], None


def _filtered(log: Log, operation: Operation, seen: Seen) -> tuple[_Fault | None, Sighting | None]:
    positions = seen.positions or ()
    if any(later <= earlier for earlier, later in pairwise(positions)):
        return _Fault("P7", "the positions do not rise"), None
    for event, position in zip(seen.events, positions, strict=True):
        if log.event_at(position) != event:
            return _blamed(log, event, f"the read shows event {event.id!r} at {position}, where it is not"), None
    newest = positions[-1] if positions else 0
    if seen.version is None:
        return None, Sighting(operation, newest, at_least=True)
    if not newest <= seen.version <= len(log.events):
        return _Fault("P7", f"events up to {newest} at version {seen.version}; the log has {len(log.events)}"), None
    return None, Sighting(operation, seen.version)


def _first_difference(log: Log, events: tuple[RecordedEvent, ...], first: int) -> _Fault | None:
    if list(events) == log.events[first - 1 : first - 1 + len(events)]:
        return None
    for position, event in enumerate(events, first):
        if log.event_at(position) != event:
            return _blamed(log, event, f"the read shows event {event.id!r} as number {position}, where it is not")
    return None


def _blamed(log: Log, event: RecordedEvent, message: str) -> _Fault:
    if log.holds(event):
        return _Fault("P7", message)
    property_id, reason, evidence = log.blame(event, "P7")
    return _Fault(property_id, reason or message, tuple(evidence))
