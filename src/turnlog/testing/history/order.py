"""The order of time against the order of the log: P5, P6, P7, P8, P9 and part of P11.

Because answers carry positions, every call that proves anything has a *rank* in the one order that the log can have
had: no session, its creation, version 0, the first event, version 1, and so on. The history is in order if and only if
no call of a higher rank returned before one of a lower rank was called; one pass up and one down the ranks decide that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, Literal, TypeAlias

import msgspec

from turnlog.testing.history.batches import Log, Stored
from turnlog.testing.history.properties import Findings
from turnlog.testing.history.reads import Sighting
from turnlog.testing.history.records import FOREVER, Absent, Conflict, Done, Ok, Operation

_Role: TypeAlias = Literal["absent", "create", "append", "read", "conflict"]

_ABSENT_RANK: Final = -1
_CREATE_RANK: Final = 0
_NEVER: Final = -FOREVER


class _Mark(msgspec.Struct, frozen=True):
    """Something that took effect after `after` and before `before`, and the calls that say so."""

    rank: int
    role: _Role
    after: int
    before: int
    opened: Operation
    closed: Operation


def check_order(log: Log, stored: dict[int, Stored], seen: Iterable[Sighting], findings: Findings) -> None:
    """Find the calls that contradict the order of the log, for all processes together and for each alone."""
    sighted = [_sighted(each) for each in seen]
    marks = sorted((*_existence(log), *_appends(stored), *sighted), key=_rank)
    reported: set[tuple[str, int]] = set()
    for culprit, late, early in (*_late(marks), *_premature(marks)):
        property_id, message = _judged(late, early)
        keys = {(property_id, id(culprit))}
        if property_id == "P5":
            # Of two appends in the wrong order either may be out of place, and then all between contradict it.
            keys = {("P5", id(late.opened)), ("P5", id(early.closed))}
        if not keys & reported:
            findings.add(property_id, message, late.opened, early.closed)
        reported |= keys
    for own in _by_process(log, stored, sighted).values():
        for _, late, early in _late(sorted(own, key=_rank)):
            if late.role == "read" and ("P9", id(late.opened)) not in reported:
                findings.add("P9", f"{_ended(early)} before {_begun(late)}", late.opened, early.closed)
                reported.add(("P9", id(late.opened)))


_rank = attrgetter("rank")


def _late(marks: Sequence[_Mark]) -> Iterator[tuple[Operation, _Mark, _Mark]]:
    """The marks that began after one of a higher rank was over: with the call to blame, and the earliest such mark."""
    earliest: _Mark | None = None
    earliest_append: _Mark | None = None
    for _, group in groupby(reversed(marks), key=_rank):
        same_rank = list(group)
        for late in same_rank:
            # Of an append and a call that saw it too soon, the latter is to blame; see _premature.
            early = earliest_append if late.role == "append" else earliest
            if early is not None and early.before < late.after:
                yield late.opened, late, early
        for early in same_rank:
            if earliest is None or early.before < earliest.before:
                earliest = early
            if early.role == "append" and (earliest_append is None or early.before < earliest_append.before):
                earliest_append = early


def _premature(marks: Sequence[_Mark]) -> Iterator[tuple[Operation, _Mark, _Mark]]:
    """The calls that were over before something they saw had begun; they are to blame, not the append."""
    latest: _Mark | None = None
    for mark in marks:
        if mark.role == "append":
            if latest is None or latest.after < mark.after:
                latest = mark
        elif latest is not None and mark.before < latest.after:
            yield mark.closed, latest, mark


def _judged(late: _Mark, early: _Mark) -> tuple[str, str]:
    """The property that such a pair breaks, and how."""
    message = f"{_ended(early)} before {_begun(late)}"
    match late.role, early.role:
        case "append", "append":
            return "P5", message
        case "append", "read":
            return "P7", message
        case "create", _:
            return "P11", message
        case ("append", "conflict") | ("conflict", _):
            return "P6", message
        case _:
            return "P8", message


def _ended(mark: _Mark) -> str:
    number = mark.rank // 2
    match mark.role:
        case "append":
            return f"event {number} was acknowledged"
        case "read":
            return f"version {number} was shown"
        case "conflict":
            return f"an append was refused at version {number}"
        case "create":
            return "the session was created"
        case "absent":
            return "the session was not found"


def _begun(mark: _Mark) -> str:
    number = mark.rank // 2
    match mark.role:
        case "append":
            return f"event {number} was offered"
        case "read":
            return f"a read was called that shows version {number}"
        case "conflict":
            return f"an append was called that was refused at version {number}"
        case "create":
            return "the session was to be created"
        case "absent":
            return "a call was made that found no session"


def _append_rank(position: int) -> int:
    return 2 * position


def _version_rank(version: int) -> int:
    return 2 * version + 1


def _appends(stored: dict[int, Stored]) -> Iterator[_Mark]:
    for position, each in stored.items():
        closed = each.closed or each.opened
        yield _Mark(_append_rank(position), "append", each.after, each.before, each.opened, closed)


def _sighted(sighting: Sighting) -> _Mark:
    operation, version = sighting.operation, sighting.version
    role: _Role = "conflict" if isinstance(operation.outcome, Conflict) else "read"
    after = _NEVER if sighting.at_least else operation.invoked_ns
    # A session that does not exist reads as an empty one, so an empty answer does not prove that it exists.
    before = FOREVER if role == "read" and version == 0 else operation.ended_ns
    return _Mark(_version_rank(version), role, after, before, operation, operation)


def _existence(log: Log) -> Iterator[_Mark]:
    created = [each for each in log.life.operations if each.kind == "create" and isinstance(each.outcome, Done)]
    for each in created[:1]:
        yield _Mark(_CREATE_RANK, "create", each.invoked_ns, each.ended_ns, each, each)
    for each in log.life.operations:
        if isinstance(each.outcome, Absent):
            yield _Mark(_ABSENT_RANK, "absent", each.invoked_ns, each.ended_ns, each, each)


def _by_process(log: Log, stored: dict[int, Stored], sighted: Iterable[_Mark]) -> dict[str, list[_Mark]]:
    """What each process saw, and what it was told that it had stored."""
    own: defaultdict[str, list[_Mark]] = defaultdict(list)
    for mark in sighted:
        own[mark.opened.process].append(mark)
    for operation in log.appends:
        if isinstance(operation.outcome, Ok) and operation.events and all(map(log.holds, operation.events)):
            newest = max(log.place[event.id] for event in operation.events)
            if newest in stored:
                own[operation.process].append(
                    _Mark(_append_rank(newest), "append", _NEVER, operation.ended_ns, operation, operation)
                )
    return own
