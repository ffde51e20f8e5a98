"""Clocks for tests: aware UTC, moved by the test and by nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from turnlog.log.events import as_utc

#: When time begins in tests, unless they say otherwise.
START: Final = datetime(2026, 1, 1, tzinfo=UTC)


class FixedClock:
    """Shows the same moment until the test moves it."""

    def __init__(self, now: datetime = START) -> None:
        self.now = as_utc(now, "now")

    def __call__(self) -> datetime:
        """The moment it shows: what a store asks it for."""
        return self.now

    def advance(self, by: timedelta | float) -> datetime:
        """Move by a duration, or by that many seconds (back, where it is negative); return the new moment."""
        self.now += by if isinstance(by, timedelta) else timedelta(seconds=by)
        return self.now

    def set(self, moment: datetime) -> None:
        """Show ``moment`` from now on."""
        self.now = as_utc(moment, "moment")


class SteppedClock:
    """Moves on by ``step`` (default: a second) after each reading: no two readings are equal."""

    def __init__(self, now: datetime = START, step: timedelta | None = None) -> None:
        self._clock = FixedClock(now)
        self.step = timedelta(seconds=1) if step is None else step

    def __call__(self) -> datetime:
        """The moment it shows; the next reading is one step later."""
        shown = self._clock.now
        self._clock.advance(self.step)
        return shown

    def advance(self, by: timedelta | float) -> datetime:
        """Move as :meth:`FixedClock.advance` does; return what the next reading will show."""
        return self._clock.advance(by)
