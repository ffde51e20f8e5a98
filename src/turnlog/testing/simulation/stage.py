"""Actors in threads of which one runs at a time: each stops where a statement is due, and goes on when told to.

Code that blocks is written for threads, so it runs in threads here too; but the stage hands one baton round, and
whoever directs it decides who goes on. Nothing depends on the operating system's scheduler, so a run can be repeated
exactly.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, NoReturn, TypeAlias

State: TypeAlias = Literal["ready", "waiting", "done"]


class Crash(BaseException):
    """The process that this code runs in is gone: nothing more of it is executed."""


class Actor:
    """One thread of a program. ``at`` is what it does next; while it waits, ``may_go_on`` says until when."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.at = "begin"
        self.state: State = "ready"
        self.may_go_on: Callable[[], bool] = _always
        self.is_killed = False
        self.failure: BaseException | None = None
        self.order: Any = None
        self.baton = threading.Lock()
        self.baton.acquire()

    def __repr__(self) -> str:
        return f"{self.name}: {self.at}"


def _always() -> bool:
    return True


class Stage:
    """Where actors run. One thread directs it; the actors call ``pause`` and ``wait``."""

    def __init__(self) -> None:
        self.current: Actor | None = None
        self._returned = threading.Lock()
        self._returned.acquire()

    def start(self, name: str, body: Callable[[], None]) -> Actor:
        """A new actor, which has yet to begin."""
        actor = Actor(name)
        threading.Thread(target=self._run, args=(actor, body), name=name, daemon=True).start()
        return actor

    def _run(self, actor: Actor, body: Callable[[], None]) -> None:
        actor.baton.acquire()
        try:
            if not actor.is_killed:
                body()
        except Crash:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again where the stage is directed from
            actor.failure = error
        actor.state = "done"
        self._returned.release()

    def resume(self, actor: Actor, order: Any = None) -> None:
        """Let the actor run to its next stop or to its end; ``order`` is what ``pause`` returns to it.

        What it dies of, other than a crash, is raised here.
        """
        actor.order, self.current = order, actor
        actor.baton.release()
        self._returned.acquire()
        self.current = None
        if actor.failure is not None:
            failure, actor.failure = actor.failure, None
            raise failure

    def kill(self, actor: Actor) -> None:
        """End the actor where it stands."""
        actor.is_killed = True
        if actor.state != "done":
            self.resume(actor)

    def crash(self) -> NoReturn:
        """Called by an actor: end it where it stands."""
        if self.current is not None:
            self.current.is_killed = True
        raise Crash

    def pause(self, at: str) -> Any:
        """Called by an actor: stop here, and return the order with which it is resumed."""
        return self._stop(at, "ready", _always)

    def wait(self, at: str, may_go_on: Callable[[], bool]) -> Any:
        """Called by an actor: stop here until ``may_go_on``; the director may resume it earlier, with an order."""
        return self._stop(at, "waiting", may_go_on)

    def _stop(self, at: str, state: State, may_go_on: Callable[[], bool]) -> Any:
        actor = self.current
        if actor is None:  # the director's own thread: nobody to hand the baton to
            return None
        if not actor.is_killed:
            actor.at, actor.state, actor.may_go_on = at, state, may_go_on
            self._returned.release()
            actor.baton.acquire()
            actor.state = "ready"
        if actor.is_killed:
            raise Crash
        return actor.order


class SteppedLock:
    """A lock whose waiters wait on the stage; takes the place of ``threading.Lock`` in what is simulated."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._is_held = False

    def acquire(self, *, timeout: float = -1) -> bool:
        """Wait on the stage until it is free; nobody waits in vain, whatever ``timeout`` says."""
        del timeout
        while self._is_held:
            self._stage.wait("lock", lambda: not self._is_held)
        self._is_held = True
        return True

    def release(self) -> None:
        """Give it back."""
        self._is_held = False

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()
