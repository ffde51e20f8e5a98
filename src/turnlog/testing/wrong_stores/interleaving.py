"""Making races happen: the callers of a race wait for one another where a wrong store lets them."""

from __future__ import annotations

import threading
import time
from typing import Any, Final

from turnlog.testing.contract.racing import RACER

#: How long a caller waits for others that never come by, such as readers; once in a store's life.
PATIENCE: Final = 2.0


class Gate:
    """Lets the threads of a race through when all of them that still run have come; all others pass freely."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting = 0
        self._round: int = 0
        self._is_open = False

    def wait(self) -> None:
        """Wait for the other racers."""
        if not threading.current_thread().name.startswith(RACER):
            return
        with self._changed:
            self._waiting += 1
            arrived_in, gives_up_at = self._round, time.monotonic() + PATIENCE
            while self._round == arrived_in and not self._is_open:
                if self._waiting >= _running_racers():
                    self._waiting, self._round = 0, self._round + 1
                elif time.monotonic() > gives_up_at:
                    self._is_open = True
                else:
                    # A racer that ends tells nobody, so look again before long.
                    self._changed.wait(0.002)
            self._changed.notify_all()


def _running_racers() -> int:
    return sum(thread.name.startswith(RACER) for thread in threading.enumerate())


class RacedDict(dict[str, Any]):
    """A dict whose changes all racers decide on before any is made: first the removals, then the writes."""

    def __init__(self) -> None:
        super().__init__()
        self._decided, self._removed = Gate(), Gate()

    def __setitem__(self, key: str, value: Any) -> None:
        self._decided.wait()
        self._removed.wait()
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        self.pop(key)

    def pop(self, key: str, *default: Any) -> Any:
        """Remove and return."""
        self._decided.wait()
        try:
            return super().pop(key, *default)
        finally:
            self._removed.wait()


class Interruption:
    """A place in the middle of a write where readers come in."""

    def __init__(self) -> None:
        self._is_half_done = False
        self._was_read = threading.Event()

    def wait(self, lock: Any) -> None:
        """Give the lock away until another racer has read, or there is none left."""
        if not threading.current_thread().name.startswith(RACER):
            return
        self._was_read.clear()
        self._is_half_done = True
        lock.release()
        while _running_racers() > 1 and not self._was_read.wait(0.002):
            pass
        lock.acquire()
        self._is_half_done = False

    def note_read(self) -> None:
        """Say that a read was made."""
        if self._is_half_done:
            self._was_read.set()
