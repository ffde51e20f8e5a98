"""Whether a history has the properties of `PROPERTIES`, in n log n time: the store's answers carry the order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from turnlog.testing.history.batches import Log, match_batches
from turnlog.testing.history.lives import Life, Straddling, split_lives
from turnlog.testing.history.order import check_order
from turnlog.testing.history.properties import Findings, Violation
from turnlog.testing.history.reads import sightings
from turnlog.testing.history.records import Done, FinalLog, Operation, RecordedEvent, Seen, Unknown


def check_history(operations: Iterable[Operation], final_log: Mapping[str, FinalLog]) -> list[Violation]:
    """The properties that the history lacks; none of them if the list is empty.

    Args:
        operations: all calls made on the sessions, in any order. An event that no recorded append offered counts as
            foreign, so set-up is recorded too; and who records deletes records creates.
        final_log: the log of each session after the last call. A session that is not in it is gone: its log is empty.

    Sessions are independent. For one that is never deleted the answer is exact, provided that a retry offers the batch
    it retries, the same events in the same order: there is a violation if and only if the history is not linearizable.
    Otherwise it is sound: what is reported is wrong, but not everything wrong is found.
    """
    sessions: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in operations:
        sessions[operation.session].append(operation)
    violations: list[Violation] = []
    for session in sorted(sessions.keys() | final_log.keys()):
        findings = Findings(session)
        lives, straddling = split_lives(sessions[session], final_log.get(session, FinalLog()))
        for life in lives:
            _check_life(life, findings)
        for read in straddling:
            _check_straddling(read, findings)
        violations += findings.violations
    return violations


def _check_life(life: Life, findings: Findings) -> None:
    _check_creation(life, findings)
    if not _check_positions(life, findings):
        return
    log = Log(life)
    if len(log.place) < len(log.events):
        twice = next(event for position, event in enumerate(log.events, 1) if log.place[event.id] != position)
        findings.add("P3", f"event {twice.id!r} is in the log twice", *log.offers[twice.id][:2])
    stored = match_batches(log, findings)
    check_order(log, stored, sightings(log, stored, findings), findings)


def _check_positions(life: Life, findings: Findings) -> bool:
    """P1; False if the positions make no order that the rest could be judged by."""
    positions = [entry.position for entry in life.log.entries]
    for due, position in enumerate(positions, 1):
        if position != due:
            findings.add("P1", f"position {position} where {due} is due")
            if due == 1 and life.follows_delete:
                findings.add("P11", f"the session was deleted and made again, and begins at {position}")
            return False
    if life.log.version != len(positions):
        findings.add("P1", f"the session says version {life.log.version}, and the last position is {len(positions)}")
    return True


def _check_creation(life: Life, findings: Findings) -> None:
    creates = [operation for operation in life.operations if operation.kind == "create"]
    done = [operation for operation in creates if isinstance(operation.outcome, Done)]
    if len(done) > 1:
        findings.add("P11", "two creates made the same session", *done[:2])
    possible = done or [operation for operation in creates if isinstance(operation.outcome, Unknown)]
    if life.follows_delete and life.log.entries and not possible:
        findings.add("P11", "the session was deleted and has events, and nobody made it again")


def _check_straddling(straddling: Straddling, findings: Findings) -> None:
    outcome = straddling.read.outcome
    if isinstance(outcome, Seen) and not any(
        _may_show(life, outcome.events) for life in (straddling.before, straddling.after)
    ):
        findings.add("P11", "a read during a delete shows neither the old log nor the new one", straddling.read)


def _may_show(life: Life, events: tuple[RecordedEvent, ...]) -> bool:
    known = [RecordedEvent(entry.id, entry.digest) for entry in life.log.entries]
    if not life.is_last:
        # The log may have been longer than is known.
        events = events[: len(known)]
    return list(events) == known[: len(events)]
