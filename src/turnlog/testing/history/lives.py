"""A session that is deleted and made again has several lives, each with a log of its own: which call was in which.

A call that ended before a delete was called belongs to a life before it, one that was called after the delete returned
to a life after it. One that overlaps a delete may belong to either, so it counts in both with all that it proves taken
away: its append may be there or not. A delete of unknown outcome overlaps everything after it.

Only the last life has the final log. That of an earlier one is put together from its longest read of the whole log and
the acknowledgements that follow on it; what lies beyond is not checked.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from turnlog.testing.history.records import (
    FOREVER,
    Conflict,
    Done,
    Failed,
    FinalLog,
    Ok,
    Operation,
    RecordedEvent,
    Seen,
    Unknown,
)


class Life(msgspec.Struct, frozen=True):
    """One life of a session.

    Args:
        number: 0 for the first.
        log: what it held at its end.
        operations: the calls that were in it, and, proving nothing, those that may have been.
        first_offered: for each id, the first life that an append certainly offered it in.
        is_last: the log is the final one, known to its end.
        follows_delete: an acknowledged delete came before it.
    """

    number: int
    log: FinalLog
    operations: tuple[Operation, ...]
    first_offered: Mapping[str, int]
    is_last: bool = True
    follows_delete: bool = False

    def is_earlier(self, event_id: str) -> bool:
        """Whether the id was offered in an earlier life, with an acknowledged delete since."""
        return self.follows_delete and self.first_offered.get(event_id, self.number) < self.number


class Straddling(msgspec.Struct, frozen=True):
    """A read of the whole log that overlapped one delete, and the two lives whose log it may show."""

    read: Operation
    before: Life
    after: Life


class _Barrier(msgspec.Struct, frozen=True):
    """Deletes that overlap, as one: when the first was called, when the last returned, how many there are."""

    start: int
    end: int
    deletes: int


def split_lives(operations: Sequence[Operation], final: FinalLog) -> tuple[list[Life], list[Straddling]]:
    """The lives of a session, oldest first, and the reads that lie between two of them."""
    barriers = _barriers(operations)
    if not barriers:
        return [Life(0, final, tuple(operations), {})], []
    starts, ends = [barrier.start for barrier in barriers], [barrier.end for barrier in barriers]
    certain: list[list[Operation]] = [[] for _ in range(len(barriers) + 1)]
    possible: list[list[Operation]] = [[] for _ in range(len(barriers) + 1)]
    between: list[tuple[int, Operation]] = []
    for operation in operations:
        oldest, newest = bisect_left(ends, operation.invoked_ns), bisect_right(starts, operation.ended_ns)
        if oldest == newest:
            certain[oldest].append(operation)
            continue
        for number in range(oldest, newest + 1):
            possible[number].extend(_proving_nothing(operation))
        if newest == oldest + 1 and barriers[oldest].deletes == 1 and _is_whole_read(operation):
            between.append((oldest, operation))
    lives = _lives(certain, possible, final, forever=ends[-1] == FOREVER)
    return lives, [Straddling(read, lives[number], lives[number + 1]) for number, read in between]


def _barriers(operations: Iterable[Operation]) -> list[_Barrier]:
    deletes = (each for each in operations if each.kind == "delete" and isinstance(each.outcome, Done | Unknown))
    barriers: list[_Barrier] = []
    for delete in sorted(deletes, key=lambda operation: operation.invoked_ns):
        if barriers and delete.invoked_ns <= barriers[-1].end:
            last = barriers.pop()
            barriers.append(_Barrier(last.start, max(last.end, delete.ended_ns), last.deletes + 1))
        else:
            barriers.append(_Barrier(delete.invoked_ns, delete.ended_ns, 1))
    return barriers


def _proving_nothing(operation: Operation) -> Iterable[Operation]:
    """The call with what it proves about one life taken away, for it may have been in another."""
    match operation.kind, operation.outcome:
        case ("append", Ok()) | ("create", Done()):
            yield msgspec.structs.replace(operation, outcome=Unknown("overlaps a delete"))
        case ("append" | "create", Unknown()):
            yield operation
        case ("append", _):
            yield msgspec.structs.replace(operation, outcome=Failed("overlaps a delete"))
        case _:
            pass


def _lives(
    certain: Sequence[Sequence[Operation]],
    possible: Sequence[Sequence[Operation]],
    final: FinalLog,
    *,
    forever: bool,
) -> list[Life]:
    offered: dict[str, int] = {}
    for number, operations in enumerate(certain):
        for operation in operations:
            for event in operation.events:
                offered.setdefault(event.id, number)
    lives: list[Life] = []
    for number in range(len(certain) - 1):
        log = FinalLog.of(_known_log(certain[number]))
        ids = {entry.id for entry in log.entries}
        known = (each for operation in certain[number] for each in _within(operation, log, ids))
        lives.append(Life(number, log, (*known, *possible[number]), offered, is_last=False, follows_delete=number > 0))
    last = (*certain[-1], *possible[-1])
    if forever:
        # The last delete may never have happened, and then the final log is the one from before it.
        before = (*certain[-2], *possible[-2])
        last += tuple(each for operation in before for each in _proving_nothing(operation))
    return [*lives, Life(len(lives), final, last, offered, follows_delete=not forever)]


def _known_log(operations: Iterable[Operation]) -> tuple[RecordedEvent, ...]:
    """The longest read of the whole log, and the acknowledged batches that follow on it without a gap."""
    longest: tuple[RecordedEvent, ...] = ()
    acknowledged: dict[int, tuple[RecordedEvent, ...]] = {}
    for operation in operations:
        outcome = operation.outcome
        if isinstance(outcome, Seen) and _is_whole_read(operation) and len(outcome.events) > len(longest):
            longest = outcome.events
        elif isinstance(outcome, Ok) and not outcome.replay:
            acknowledged[outcome.first] = operation.events
    known = list(longest)
    while batch := acknowledged.get(len(known) + 1):
        known.extend(batch)
    return tuple(known)


def _within(operation: Operation, log: FinalLog, ids: AbstractSet[str]) -> Iterable[Operation]:
    """The call as far as a log known only in part can judge it."""
    match operation.outcome:
        case Ok(first, last, replay) if max(first, last) > log.version or (replay and not _are_known(operation, ids)):
            yield msgspec.structs.replace(operation, outcome=Unknown("beyond what is known of the log"))
        case Conflict(actual) if actual > log.version:
            yield msgspec.structs.replace(operation, outcome=Failed("beyond what is known of the log"))
        case Seen() as seen if _reaches(operation, seen, log):
            pass
        case _:
            yield operation


def _are_known(operation: Operation, ids: AbstractSet[str]) -> bool:
    """Whether all events of a replay are known; they may lie anywhere."""
    return all(event.id in ids for event in operation.events)


def _reaches(operation: Operation, seen: Seen, log: FinalLog) -> bool:
    """Whether the read shows, or may show, more than is known."""
    if max((seen.version or 0, *(seen.positions or ()))) > log.version:
        return True
    return operation.window != "whole" and seen.version is None and seen.positions is None


def _is_whole_read(operation: Operation) -> bool:
    return operation.window == "whole" and isinstance(operation.outcome, Seen)
