"""Who is in the middle of a turn in this process: what a sub-agent joins, and others wait for (H-11, H-12)."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Hashable
from contextvars import ContextVar
from time import monotonic
from typing import Final
from weakref import WeakValueDictionary

from turnlog.errors import InvalidValueError, SessionBusyError


class HeldTurn:
    """A turn on a session, shared by the call that began it and all that join it."""

    def __init__(self, store: object, session_id: str, token: str) -> None:
        self.store = store
        self.session_id = session_id
        self.token = token
        #: Whether the store has been told; the first append of any of the calls does it.
        self.is_taken = False
        self.is_over = False


class ActiveCall:
    """A call in progress, as the calls that its tools make see it."""

    def __init__(self, turn: HeldTurn, branch: str | None, caller: ActiveCall | None) -> None:
        self.turn = turn
        self.branch = branch
        self.caller = caller

    def joined_by(self, store: object, session_id: str, branch: str | None) -> HeldTurn | None:
        """The turn that a call on this session made from inside here belongs to.

        A turn that is over is none: what it has left running begins a turn of its own. A branch that one of the
        callers is on cannot be waited for: it would wait for us.
        """
        call: ActiveCall | None = self
        while call is not None:
            turn = call.turn
            if turn.store is store and turn.session_id == session_id and not turn.is_over:
                self._check_branch(turn, branch)
                return turn
            call = call.caller
        return None

    def _check_branch(self, turn: HeldTurn, branch: str | None) -> None:
        call: ActiveCall | None = self
        while call is not None:
            if call.turn is turn and call.branch == branch:
                place = "root" if branch is None else repr(branch)
                raise InvalidValueError(
                    f"a call on session {turn.session_id!r} is made from inside a call on the same branch ({place}): "
                    f"give it a branch of its own by branch=, or another session"
                )
            call = call.caller


#: The innermost call of this context. Tools and whatever they start see it.
ACTIVE: Final[ContextVar[ActiveCall | None]] = ContextVar("turnlog_active_call", default=None)


class _ThreadLock:
    def __init__(self) -> None:
        self.lock = threading.Lock()


class _TaskLock:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()


_thread_locks: WeakValueDictionary[Hashable, _ThreadLock] = WeakValueDictionary()
_task_locks: WeakValueDictionary[Hashable, _TaskLock] = WeakValueDictionary()
_finding = threading.Lock()


class Place:
    """A session, or a branch of one inside a turn, that one call at a time is on; for threads.

    Whoever comes later waits in order, at most ``seconds``, then gets :class:`SessionBusyError`.
    """

    def __init__(self, store: object, session_id: str, branch: str | None, token: str | None, seconds: float) -> None:
        with _finding:
            key = (id(store), session_id, branch, token)
            self._held = _thread_locks.setdefault(key, _ThreadLock())
        self._session_id = session_id
        self._seconds = seconds

    def enter(self) -> None:
        """Wait until it is free."""
        if not self._held.lock.acquire(timeout=self._seconds):
            raise SessionBusyError(self._session_id)

    def leave(self) -> None:
        """Let the next one in."""
        self._held.lock.release()


class AsyncPlace:
    """The same for tasks of one event loop; those of another meet at the session's lease."""

    def __init__(self, store: object, session_id: str, branch: str | None, token: str | None, seconds: float) -> None:
        with _finding:
            key = (id(store), session_id, branch, token, id(asyncio.get_running_loop()))
            self._held = _task_locks.setdefault(key, _TaskLock())
        self._session_id = session_id
        self._seconds = seconds

    async def enter(self) -> None:
        """Wait until it is free."""
        if not self._held.lock.locked():
            await self._held.lock.acquire()
            return
        try:
            async with asyncio.timeout(self._seconds):
                await self._held.lock.acquire()
        except TimeoutError as error:
            raise SessionBusyError(self._session_id) from error

    async def leave(self) -> None:
        """Let the next one in."""
        self._held.lock.release()


class Patience:
    """How much longer a call waits for a turn that somebody else holds."""

    def __init__(self, seconds: float) -> None:
        self._end = monotonic() + seconds
        self._pause = 0.005

    def next_pause(self) -> float | None:
        """The seconds to wait before the next attempt, a little more each time; None when the time is up."""
        pause = self._pause
        self._pause = min(2 * pause, 0.1)
        return None if monotonic() + pause > self._end else pause


def _forget_locks() -> None:
    """In a forked child: whoever held a lock has stayed with the parent."""
    global _finding  # noqa: PLW0603 - a lock that may be held cannot be emptied
    _finding = threading.Lock()
    _thread_locks.clear()
    _task_locks.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)
