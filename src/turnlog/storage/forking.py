"""What open stores do when their process forks (H-13).

In the child no thread lives but the one that forked: a lock that another held stays locked, and what another was
changing stays half changed. SQLite moreover keeps its file locks per process, so a connection that is open across a
fork makes every later one in the child believe in locks that the child does not have: the parent may then remove the
write-ahead log under it. So each store comes to rest before the fork, without an open file, and goes on after it on
both sides.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, Protocol

#: How many seconds a fork waits for what is under way. What lasts longer goes on undisturbed, and the child cannot use
#: the store that was busy.
LONGEST_WAIT: Final = 10.0


class Forkable(Protocol):
    """A store as a fork sees it. The three are called by the thread that forks, in this order."""

    def before_fork(self, seconds: float) -> None:
        """Come to rest: wait for what is under way, at most so long, and begin nothing new."""
        ...

    def after_fork_in_parent(self) -> None:
        """Go on."""
        ...

    def after_fork_in_child(self) -> None:
        """Go on, in a process without any other thread."""
        ...


class _Stores:
    """The stores that are told of forks."""

    def __init__(self) -> None:
        self.open: weakref.WeakSet[Forkable] = weakref.WeakSet()
        self.at_rest: list[Forkable] = []
        # Held while a store is opened or closed, and by the thread that forks: a fork sees no store half open.
        self.lock = threading.RLock()
        self.is_locked = False

    def before_fork(self) -> None:
        deadline = time.monotonic() + LONGEST_WAIT
        self.is_locked = self.lock.acquire(timeout=LONGEST_WAIT)
        for store in list(self.open):
            # Noted first: whatever interrupts the waiting, the store is told to go on.
            self.at_rest.append(store)
            store.before_fork(max(0.0, deadline - time.monotonic()))

    def after_fork_in_parent(self) -> None:
        while self.at_rest:
            self.at_rest.pop().after_fork_in_parent()
        if self.is_locked:
            self.is_locked = False
            self.lock.release()

    def after_fork_in_child(self) -> None:
        self.lock, self.is_locked = threading.RLock(), False
        while self.at_rest:
            self.at_rest.pop().after_fork_in_child()


_stores = _Stores()


@contextmanager
def opening() -> Generator[Callable[[Forkable], None], None, None]:
    """No fork happens inside the block, which opens a store and hands it over, to be told of forks while it lives."""
    with _stores.lock:
        yield _stores.open.add


def watch(store: Forkable) -> None:
    """Tell the store of forks from now on, for as long as it lives."""
    with opening() as hand_over:
        hand_over(store)


def unwatch(store: Forkable) -> None:
    """Tell it no more."""
    with _stores.lock:
        _stores.open.discard(store)


class ForkSafeLock:
    """A lock of threads that no child finds held: ``current`` is waited for before a fork, and new in the child."""

    def __init__(self) -> None:
        self.current = threading.RLock()
        self._is_held = False
        watch(self)

    def before_fork(self, seconds: float) -> None:
        """See :class:`Forkable`."""
        self._is_held = self.current.acquire(timeout=seconds)

    def after_fork_in_parent(self) -> None:
        """See :class:`Forkable`."""
        if self._is_held:
            self.current.release()

    def after_fork_in_child(self) -> None:
        """See :class:`Forkable`."""
        self.current = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_stores.before_fork,
        after_in_parent=_stores.after_fork_in_parent,
        after_in_child=_stores.after_fork_in_child,
    )
