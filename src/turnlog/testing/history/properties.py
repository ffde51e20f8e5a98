"""The properties that a history must have, each in a line or two, and what is said of one that it lacks."""

from __future__ import annotations

from typing import Final

import msgspec

from turnlog.testing.history.records import Operation

PROPERTIES: Final[dict[str, str]] = {
    "P1": "the positions of the final log are 1 to its version, without a gap or a repeat",
    "P2": "every acknowledged event is in the final log, at the acknowledged position, with the content offered; "
    "nothing else is",
    "P3": "no id is stored twice: a retried batch is a replay at the positions of the first time, and an id is never "
    "accepted again with other content",
    "P4": "a batch is whole and contiguous wherever any of it is seen; one that failed or was refused is seen nowhere",
    "P5": "real time: if one append returned before another was called, its positions are lower",
    "P6": "an append that expected version e begins at e + 1; a conflict is justified: at some moment of the call the "
    "log was at the version it names, and that is not e",
    "P7": "a read is an exact part of the final log, its first events or a window ending at its version: no hole, "
    "nothing from the future, nothing that was lost later",
    "P8": "a read is fresh: it shows all that was acknowledged or shown to anybody before it was called",
    "P9": "a process never reads less than it read before, nor less than it wrote",
    "P11": "a session begins with one create and ends as a whole with a delete: nothing of it is seen afterwards, and "
    "one made again under the same id begins at 1 and shares nothing",
}
"""P1 to P8 together say that the session is linearizable. P9 follows from them and is told apart because a store that
reads from replicas may promise it without P8."""


class Violation(msgspec.Struct, frozen=True):
    """A property that the history lacks: its id, the session, what is wrong, and the calls that suffice to show it."""

    property_id: str
    session: str
    message: str
    evidence: tuple[Operation, ...] = ()

    def __str__(self) -> str:
        """The message, and a line for each call."""
        lines = [f"{self.property_id} in session {self.session!r}: {self.message}"]
        return "\n".join(lines + [f"    {operation}" for operation in self.evidence])


class Findings:
    """The violations found so far in one session."""

    def __init__(self, session: str) -> None:
        self.violations: list[Violation] = []
        self._session = session

    def add(self, property_id: str, message: str, *evidence: Operation) -> None:
        """One more; evidence that is the same call twice is given once."""
        distinct = tuple({id(operation): operation for operation in evidence}.values())
        self.violations.append(Violation(property_id, self._session, message, distinct))
