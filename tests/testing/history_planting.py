"""A correct history to plant a fault in."""

from __future__ import annotations

from random import Random

import msgspec

from tests.testing.history_generation import SESSION, History
from turnlog.testing.history import (
    FinalLog,
    Kind,
    Ok,
    Operation,
    Outcome,
    RecordedEvent,
    Seen,
    Window,
)


class Planting:
    """A correct history of one session, to be spoilt in one place."""

    def __init__(self, random: Random, history: History) -> None:
        self.random = random
        self.operations, self.final = history
        self.events = [RecordedEvent(entry.id, entry.digest) for entry in self.final.entries]
        self.end = max(operation.returned_ns or 0 for operation in self.operations) + 10

    def set_events(self) -> None:
        self.final = FinalLog.of(self.events)

    def change(self, old: Operation, outcome: Outcome) -> None:
        """Another outcome for one call."""
        self.operations[self.operations.index(old)] = msgspec.structs.replace(old, outcome=outcome)

    def move(self, old: Operation, invoked_ns: int, returned_ns: int) -> None:
        """Another time for one call."""
        moved = msgspec.structs.replace(old, invoked_ns=invoked_ns, returned_ns=returned_ns)
        self.operations[self.operations.index(old)] = moved

    def add_read(self, version: int, at: int, process: str = "reader", window: Window = "whole") -> None:
        """A read of the log as it was at a version."""
        self.add("read", at, Seen(tuple(self.events[:version]), version), process=process, window=window)

    def add(
        self,
        kind: Kind,
        at: int,
        outcome: Outcome,
        *,
        process: str = "other",
        events: tuple[RecordedEvent, ...] = (),
        expected_version: int | None = None,
        window: Window = "whole",
    ) -> None:
        """One more call, over in a moment."""
        new = Operation(
            process=process,
            kind=kind,
            session=SESSION,
            invoked_ns=at,
            returned_ns=at,
            outcome=outcome,
            events=events,
            expected_version=expected_version,
            window=window,
        )
        self.operations.append(new)

    def stored(self, *, least: int = 1, once: bool = False) -> tuple[Operation, Ok]:
        """An acknowledged append of at least so many events; `once`: nobody offered them again."""
        offered = [operation.events for operation in self.operations]
        choices = [
            (operation, operation.outcome)
            for operation in self.operations
            if isinstance(operation.outcome, Ok)
            and not operation.outcome.replay
            and len(operation.events) >= least
            and not (once and offered.count(operation.events) > 1)
        ]
        return self.random.choice(choices)

    def answered(self, kind: type[Outcome], *, replay: bool = False, window: Window | None = None) -> Operation:
        """A call with such an outcome."""
        return self.random.choice(
            [
                operation
                for operation in self.operations
                if isinstance(operation.outcome, kind)
                and (not replay or getattr(operation.outcome, "replay", False))
                and (window is None or operation.window == window)
                and (not isinstance(operation.outcome, Seen) or len(operation.outcome.events) > 3)
            ]
        )
