"""Counting the reads under way, so that a fork can wait for them."""

from __future__ import annotations

import threading


class Reads:
    """Entered by each read for as long as it lasts."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._under_way = 0
        self._is_paused = False

    def __enter__(self) -> None:
        with self._changed:
            while self._is_paused:
                self._changed.wait()
            self._under_way += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._under_way -= 1
            if self._is_paused:
                self._changed.notify_all()

    def pause(self, seconds: float) -> bool:
        """Let no read begin, and wait at most so long for those under way; whether they have all ended."""
        with self._changed:
            self._is_paused = True
            return self._changed.wait_for(lambda: not self._under_way, seconds)

    def resume(self) -> None:
        """Let reads begin again."""
        with self._changed:
            self._is_paused = False
            self._changed.notify_all()
