"""How rough a run is: the rates of everything that can go wrong, drawn for each seed, most of them zero in many."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Final, Self

from msgspec import Struct

from turnlog.testing.driver_faults import FAULTS
from turnlog.testing.simulation.process import Killed, Order

_STATEMENT_FAULTS: Final = tuple(fault for fault in FAULTS.values() if not fault.only_commits)
_COMMIT_FAULTS: Final = tuple(fault for fault in FAULTS.values() if fault.only_commits)
_TICK: Final = timedelta(microseconds=1)
#: Seconds that the clock moves by: within a lease and beyond it, beyond a session's life, and back.
_MOVES: Final = (0.000001, 1, 5, 12, 25, 70, -10, -100)


class Weather(Struct, frozen=True):
    """Probabilities, of each step unless said otherwise.

    ``fault``: the statement fails. ``lost``: of a commit, that it gives no answer. ``crash``: some process is lost.
    ``clock``: the time is another. ``timeout``: of somebody who waits for the file, that he gives up. ``sticky``: that
    the one who ran goes on.
    """

    fault: float = 0.0
    lost: float = 0.0
    crash: float = 0.0
    clock: float = 0.0
    timeout: float = 0.0
    sticky: float = 0.5

    @classmethod
    def drawn(cls, random: Random) -> Self:
        """The weather of a seed."""

        def rate(most: float) -> float:
            return random.uniform(0, most) if random.random() < 0.6 else 0.0

        return cls(rate(0.04), rate(0.5), rate(0.02), rate(0.15), rate(0.04), random.uniform(0, 0.95))

    def order(self, random: Random, sql: str) -> Order:
        """What befalls the statement, or None."""
        if sql == "COMMIT" and random.random() < self.lost:
            return Killed(takes_effect=True) if random.random() < 0.15 else random.choice(_COMMIT_FAULTS)
        if random.random() < self.fault:
            return random.choice(_STATEMENT_FAULTS)
        return None

    def time_after(self, random: Random, now: datetime, edges: Sequence[datetime]) -> datetime:
        """What the clock shows next: mostly what it shows; else later, earlier, or right on one of the edges."""
        if random.random() >= self.clock:
            return now
        if edges and random.random() < 0.4:
            return random.choice(edges) - random.choice((timedelta(), _TICK))
        return now + timedelta(seconds=random.choice(_MOVES))
