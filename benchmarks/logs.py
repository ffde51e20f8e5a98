"""Logs of several lengths, alone and beside other sessions, kept twice: in turnlog's hands, and in the floor's."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.floor import Floor, bodies
from benchmarks.lab import Scale, folder
from benchmarks.traffic import events
from turnlog import Session, SessionEvent, SessionRepository, open_store
from turnlog.testing.factories import session

_WARM = "warm"
#: Commits after which both sides have moved their write-ahead log into the file and begin it anew.
_UNTIL_CHECKPOINT = 300
#: A log shorter than this is made anew before each round: what is appended meanwhile would be most of it.
_SHORT = 2_000


class Log:
    """A session ``s`` of ``size`` events beside ``others`` sessions of twenty."""

    def __init__(self, place: Path, size: int, others: int) -> None:
        self.size = size
        self.others = others
        self._place = place
        with open_store(str(place / "pristine.db")) as store:
            fill(store, size, others)
        self._open()

    def _open(self) -> None:
        for name in ("ours", "floor"):
            for left in self._place.glob(f"{name}.db*"):
                left.unlink()
            shutil.copyfile(self._place / "pristine.db", self._place / f"{name}.db")
        self.store = open_store(str(self._place / "ours.db"))
        self.floor = Floor(self._place / "floor.db")
        self._grow()

    def _grow(self) -> None:
        """Let the write-ahead logs reach their size: while a file grows, a flush has to write down its length too."""
        key = self.floor.create(_WARM)
        self.store.create(session(_WARM))
        log = events(_WARM, _UNTIL_CHECKPOINT)
        for event, body in zip(log, bodies(log), strict=True):
            self.store.append(_WARM, (event,))
            self.floor.append(key, body)

    @property
    def name(self) -> str:
        """How long it is, and what is beside it."""
        return f"{self.size:,} events" + (f" beside {self.others:,} sessions" if self.others else "")

    def renew(self) -> None:
        """Undo what was appended to a short log."""
        if self.size < _SHORT:
            self.close()
            self._open()

    def close(self) -> None:
        """Close both sides."""
        self.store.close()
        self.floor.close()


@contextmanager
def logs(scale: Scale) -> Generator[list[Log]]:
    """A log of each length, alone and beside the others."""
    with ExitStack() as stack:
        made: list[Log] = []
        for others in (0, scale.others):
            for size in scale.sizes:
                log = Log(stack.enter_context(folder()), size, others)
                stack.callback(log.close)
                made.append(log)
        yield made


def fill(store: SessionRepository, size: int, others: int) -> None:
    """Write the sessions, one event a batch."""
    restore(store, session("s"), events("s", size))
    for number in range(others):
        name = f"other-{number}"
        restore(store, session(name), events(name, 20, seed=number % 10))


def restore(store: SessionRepository, into: Session, log: list[SessionEvent]) -> None:
    """Write one session, one event a batch."""
    store.restore(into, ([event] for event in log))
