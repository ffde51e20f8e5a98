"""The model that follows a server, on which several transactions are open at once.

What is the order of the calls? A transaction that changes something holds the lock of each row that it goes by from
before it reads it until it has committed (an insert holds its key). So nobody else can change what it has read, and its
place is where it commits: the stage steps the COMMIT by itself, so that this is one moment. One statement that commits
itself has that moment in its end. A transaction that comes to nothing (a refusal, a replay, nothing to delete) either
has such a lock as well, or its last statement found no row; its place is where its plan ends, behind that statement.
A read is where its snapshot is taken, with its first statement. Two exceptions are looked at more closely:

A sweep chooses on the snapshot of its statement, and looks at each row again where it had to wait. What it removes, it
holds until it commits; but a session that can be removed only since it chose is left alone. So its places are one for
each session, and the oracle looks which are gone: all of them must be removable, and none may be left that has been
removable all the time, unchanged.

A statement that waits for the row of a session which has ended finds none, if a new one has been made in its place by
the transaction that it waited for. That answer belongs before that transaction, when it began to wait.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from turnlog.errors import SessionNotFoundError
from turnlog.log.session import Session
from turnlog.testing.clocks import START
from turnlog.testing.simulation.drawing import COPIES, LASTING, MORTAL
from turnlog.testing.simulation.operations import Refusal
from turnlog.testing.simulation.oracle import Call, Decision, Oracle, Untold

_SESSIONS: Final = (*LASTING, *MORTAL, *COPIES)
#: No session has ended by then, so what has ended since is there to be seen.
_BEFORE_ALL: Final = START - timedelta(days=365)


class _Sweep:
    """One that is under way. ``must``: what it could have removed all the time, and how each is known."""

    def __init__(self, before: datetime, now: datetime, must: dict[str, Any]) -> None:
        self.before = before
        self.now = now
        self.must = must

    def narrow(self, removable: dict[str, Any]) -> None:
        """So it stands now."""
        self.must = {each: known for each, known in self.must.items() if removable.get(each) == known}


class ServerOracle(Oracle):
    """The oracle of a server; ``stored_ids`` says of which sessions it has rows."""

    def __init__(self, stored_ids: Callable[[], set[str]]) -> None:
        super().__init__()
        self._stored_ids = stored_ids
        self._sweeps: dict[Call, _Sweep] = {}
        self._moment = 0
        self._sent: dict[Call, int] = {}
        self._replaced: dict[str, int] = {}

    def begins(self, call: Call, now: datetime) -> None:
        """See ``Oracle``."""
        before = call.operation.before
        if before is not None:
            self._sweeps[call] = _Sweep(before, now, self._removable(before, now))

    def sends(self, call: Call) -> None:
        """A statement of the call goes to the server."""
        self._sent[call] = self._moment

    def take_effect(self, decision: Decision) -> None:
        """See ``Oracle``."""
        self._moment += 1
        operation = decision.call.operation
        if operation.before is not None:
            self._sweep(decision, self._sweeps.pop(decision.call))
        elif not self._is_of_the_past(decision):
            before = self._log(operation.session)
            super().take_effect(decision)
            if before and self._log(operation.session) not in ("", before):
                self._replaced[operation.session] = self._moment
        for sweep in self._sweeps.values():
            sweep.narrow(self._removable(sweep.before, sweep.now))

    def _stored(self) -> dict[str, Session]:
        """Every session that the model holds, those that have ended as well."""
        model = self.at(_BEFORE_ALL)
        found = (model.find(session_id) for session_id in _SESSIONS)
        return {session.id: session for session in found if session is not None}

    def _log(self, session_id: str) -> str:
        """What tells the log from one that is made under the same id later; empty where there is none."""
        tally = self.at(_BEFORE_ALL).tally(session_id) if session_id else None
        return "" if tally is None else tally.log

    def _removable(self, before: datetime, now: datetime) -> dict[str, Any]:
        """What a sweep has to remove, and how each is known."""
        stored, end = self._stored(), min(before, now)
        ended = [each for each in stored if stored[each].is_expired(end) and not self.at(now).find(each)]
        return {each: (self._log(each), stored[each]) for each in ended}

    def _sweep(self, decision: Decision, sweep: _Sweep) -> None:
        may = self._removable(sweep.before, decision.now)
        sweep.narrow(may)
        removed = self._stored().keys() - self._stored_ids()
        is_told = decision.outcome in (len(removed), Untold())
        if not (is_told and sweep.must.keys() <= removed <= may.keys()):
            told = f"the store says {decision.outcome}, and has removed {sorted(removed)}"
            must = f"of {sorted(may)} that can be removed, {sorted(sweep.must)} could be all the time"
            self.complain(f"{decision.call.operation}: {told}; {must}")
        for session_id in removed:
            self.at(decision.now).delete(session_id)
        decision.call.effects.append(len(removed))

    def _is_of_the_past(self, decision: Decision) -> bool:
        """Whether it found no session where there is one, which has replaced another since its statement was sent."""
        outcome, call = decision.outcome, decision.call
        if isinstance(outcome, SessionNotFoundError):
            session_id = outcome.session_id
        elif outcome is False:
            session_id = call.operation.session
        else:
            return False
        if self._replaced.get(session_id, 0) <= self._sent[call]:
            return False
        if outcome is False:
            call.effects.append(False)
        else:
            call.refusal = Refusal.of(outcome)
        return True
