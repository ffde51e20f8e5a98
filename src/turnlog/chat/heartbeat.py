"""Renewing the lease of a turn for as long as a model or a tool takes (H-11)."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, Final

from turnlog.errors import TurnInterruptedError

_log: Final = logging.getLogger("turnlog.chat")


def _warn(error: Exception) -> None:
    _log.warning("renewing a turn failed: %s", error)


class AsyncHeartbeat:
    """Renews a turn's lease while a model or a tool takes its time (H-11)."""

    def __init__(self, renew: Callable[[], Coroutine[Any, Any, None]], seconds: float) -> None:
        self._task = asyncio.create_task(self._beat(renew, seconds))

    async def _beat(self, renew: Callable[[], Coroutine[Any, Any, None]], seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await renew()
            except TurnInterruptedError as error:
                _warn(error)  # the turn's next append says so
                return
            except Exception as error:  # noqa: BLE001 - it may work the next time
                _warn(error)

    async def stop(self) -> None:
        """Beat no more."""
        self._task.cancel()


class Heartbeat:
    """The same for threads: one thread of the process beats for all turns, and ends when there is none."""

    def __init__(self, renew: Callable[[], None], seconds: float) -> None:
        self.renew = renew
        self.seconds = seconds
        self.is_stopped = False
        _beats.add(self)

    def stop(self) -> None:
        """Beat no more."""
        self.is_stopped = True


class _Beats:
    """The thread that beats. It looks once in a while, as a lease is renewed long before it ends."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, weakref.ref[Heartbeat]]] = []
        self._numbers = itertools.count()
        self._is_running = False

    def add(self, beat: Heartbeat) -> None:
        with self._changed:
            self._put(beat)
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name="turnlog-leases", daemon=True).start()
            elif self._due[0][2]() is beat:  # earlier than all that the thread waits for
                self._changed.notify()

    def _put(self, beat: Heartbeat) -> None:
        heapq.heappush(self._due, (time.monotonic() + beat.seconds, next(self._numbers), weakref.ref(beat)))

    def _next(self) -> Heartbeat | None:
        """The next that is due, waited for; None, and nothing runs any more, when none is left."""
        with self._changed:
            while self._due:
                due, _, held = self._due[0]
                beat = held()
                if beat is None or beat.is_stopped:
                    heapq.heappop(self._due)
                elif (left := due - time.monotonic()) > 0:
                    del beat
                    self._changed.wait(left)
                else:
                    heapq.heappop(self._due)
                    return beat
            self._is_running = False
            return None

    def _run(self) -> None:
        while (beat := self._next()) is not None:
            try:
                beat.renew()
            except TurnInterruptedError as error:
                _warn(error)
                continue
            except Exception as error:  # noqa: BLE001 - one turn's trouble must not stop the others' beats
                _warn(error)
            with self._changed:
                self._put(beat)
            del beat


_beats = _Beats()


def _renew_beats() -> None:
    global _beats  # noqa: PLW0603 - the thread stayed with the parent
    _beats = _Beats()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_beats)
