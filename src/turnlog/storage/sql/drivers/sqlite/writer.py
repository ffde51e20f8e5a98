"""Group commit: transactions that wait for the file share one commit, each with an outcome of its own (R-14)."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar, cast

from turnlog.errors import StoreBusyError, StoreError, TurnlogError
from turnlog.storage.protocol import AppendResult
from turnlog.storage.sql.driver import CommitFailedError, UniqueViolationError, run_plan
from turnlog.storage.sql.plans.plan import PlanFactory
from turnlog.storage.sql.plans.sessions import Removed
from turnlog.storage.sql.statements import Rows, Statement

T = TypeVar("T")

#: The most jobs of one commit: the first of them waits for the last.
_MOST_TOGETHER = 256
#: A plan is made anew after a unique violation, and looks before it writes; it cannot run into the key again.
_MOST_ATTEMPTS = 3


class Transaction:
    """What the writer asks of a connection; the one seam between it and the engine.

    ``abandon`` lets go of a connection whose state is not known, with all that it has not committed; the next statement
    is executed on a sound one.
    """

    def __init__(self, execute: Callable[[Statement], Rows], abandon: Callable[[], None]) -> None:
        self.execute = execute
        self.abandon = abandon

    def begin(self) -> None:
        """Take the file's write lock."""
        self.execute(Statement("BEGIN IMMEDIATE"))

    def mark(self) -> None:
        """Begin a part that can be undone alone."""
        self.execute(Statement("SAVEPOINT job"))

    def keep(self) -> None:
        """End the part."""
        self.execute(Statement("RELEASE job"))

    def undo(self) -> None:
        """Undo the part."""
        self.execute(Statement("ROLLBACK TO job"))
        self.execute(Statement("RELEASE job"))

    def commit(self) -> None:
        """Make everything since ``begin`` durable."""
        self.execute(Statement("COMMIT"))

    def rollback(self) -> None:
        """Undo everything since ``begin``; fails if there is no transaction any more."""
        self.execute(Statement("ROLLBACK"))


class Job(Generic[T]):
    """One plan to run, and what came of it. The outcome is there once ``is_done``.

    ``doubt`` is there when a shared commit in which it may have had an effect has given no answer.
    """

    def __init__(self, make: PlanFactory[T]) -> None:
        self.make = make
        self.is_done = False
        self.result: T | None = None
        self.error: BaseException | None = None
        self.doubt: CommitFailedError | None = None

    def outcome(self) -> T:
        """Return or raise what came of it."""
        if self.error is not None:
            raise self.error
        return cast("T", self.result)  # done without an error: the plan's own result


class GroupWriter:
    """Runs jobs on one connection. Whoever comes first leads: it runs all that wait, in one transaction."""

    def __init__(self, transaction: Transaction, after_commit: Callable[[], None]) -> None:
        self._transaction = transaction
        self._after_commit = after_commit
        self._waiting: deque[Job[Any]] = deque()
        self._lock = threading.Lock()
        self._leader: int | None = None

    def submit(self, make: PlanFactory[T]) -> Job[T]:
        """Put a plan in the queue; some ``complete`` will run it."""
        job = Job(make)
        self._waiting.append(job)
        return job

    def complete(self, job: Job[T]) -> T:
        """Wait until the job is done, doing it and its neighbours here if nobody else does; return its outcome."""
        if self._leader == threading.get_ident():
            # A restore's batches are read inside its transaction; waiting for ourselves would never end.
            self._waiting.remove(job)
            raise StoreError("a write was begun while this thread's own write is running: batches must not write")
        with self._lock:
            self._leader = threading.get_ident()
            try:
                while not job.is_done:
                    self._run_group()
            finally:
                self._leader = None
        return job.outcome()

    @contextmanager
    def alone(self) -> Generator[None, None, None]:
        """No job runs inside the block; those under way are waited for."""
        if self._leader == threading.get_ident():
            raise StoreError("the store cannot be closed while this thread's own write is running")
        with self._lock:
            yield

    def pause(self, seconds: float) -> bool:
        """Let no job begin, and wait at most so long for those under way; False, and nothing changed, if in vain."""
        return self._leader != threading.get_ident() and self._lock.acquire(timeout=seconds)

    def resume(self) -> None:
        """Let jobs begin again."""
        self._lock.release()

    def _run_group(self) -> None:
        group: list[Job[Any]] = []
        try:
            while self._waiting and len(group) < _MOST_TOGETHER:
                # Taken from the queue last: an interruption in between leaves no job that is in neither.
                job = self._waiting[0]
                if not job.is_done:
                    group.append(job)
                self._waiting.popleft()
            if len(group) == 1 or not self._commit_together(group):
                for job in group:
                    self._commit_alone(job)
        except BaseException as interruption:
            # A KeyboardInterrupt, at any moment: nobody may wait for an outcome that never comes, or be told a wrong
            # one.
            self._roll_back()
            cause = StoreError(f"the writer was interrupted: {interruption!r}")
            self._finish(group, CommitFailedError(cause, None))
            raise

    def _commit_together(self, group: list[Job[Any]]) -> bool:
        """Run all in one transaction; False, with nothing stored, if that did not work out."""
        outcomes: list[tuple[Any, BaseException | None]] = []
        try:
            self._begin()
        except StoreError as error:
            self._finish(group, error)  # none has run, and each has waited for the lock as long as it may
            return True
        try:
            outcomes.extend(self._part(job) for job in group)
        except StoreError:
            self._roll_back()
            return False
        try:
            self._commit(outcomes)
        except CommitFailedError as lost:
            for job, (result, refusal) in zip(group, outcomes, strict=True):
                if refusal is None and not _is_replay(result):
                    job.doubt = CommitFailedError(lost.cause, result)
            return False
        except StoreError:
            return False
        # Only now: no outcome, conflict and replay included, is given before the commit.
        for job, (result, refusal) in zip(group, outcomes, strict=True):
            job.result, job.error, job.is_done = result, refusal, True
        self._after_commit()
        return True

    @staticmethod
    def _finish(group: list[Job[Any]], error: BaseException) -> None:
        for job in group:
            if not job.is_done:
                job.error, job.is_done = error, True

    def _part(self, job: Job[Any]) -> tuple[Any, BaseException | None]:
        """Run one job of a group in a part of its own; its refusal is its own, a failing engine is everybody's."""
        for attempt in range(_MOST_ATTEMPTS):
            self._transaction.mark()
            try:
                result = run_plan(job.make(attempt), self._transaction.execute)
            except UniqueViolationError:
                self._transaction.undo()
            except StoreError:
                raise
            except Exception as error:  # noqa: BLE001 - the job's own: refused by a rule, or raised by what it reads
                self._transaction.undo()
                return None, error
            else:
                self._transaction.keep()
                return result, None
        return None, StoreError("a unique key was violated again after looking first")

    def _commit_alone(self, job: Job[Any]) -> None:
        try:
            job.result = self._alone(job)
            if job.doubt is not None and _may_have_met(job.doubt.decided, job.result):
                raise job.doubt
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this job's outcome
            # Accepted in a commit whose answer is lost, and refused now: it may have met its own effect.
            job.error = job.doubt or error
        job.is_done = True

    def _alone(self, job: Job[T]) -> T:
        for attempt in range(_MOST_ATTEMPTS):
            self._begin()
            try:
                result = run_plan(job.make(attempt), self._transaction.execute)
            except UniqueViolationError:
                self._roll_back()
                continue
            except Exception:
                self._roll_back()
                raise
            self._commit(result)
            self._after_commit()
            return result
        raise StoreError("a unique key was violated again after looking first")

    def _begin(self) -> None:
        try:
            self._transaction.begin()
        except StoreBusyError:
            raise
        except StoreError:
            # What the connection suffers from, or is still in the middle of, must not be the next job's trouble.
            self._transaction.abandon()
            raise

    def _commit(self, decided: object) -> None:
        try:
            self._transaction.commit()
        except StoreError as error:
            if self._roll_back():
                raise  # the transaction was still open: nothing of it is stored
            raise CommitFailedError(error, decided) from error

    def _roll_back(self) -> bool:
        """Undo everything since ``begin``; False if there was no transaction to undo, or no way to."""
        try:
            self._transaction.rollback()
        except TurnlogError:
            # The engine has rolled back by itself (a full disk), or the connection is of no use: closed, it holds no
            # lock.
            self._transaction.abandon()
            return False
        return True


def _is_replay(result: object) -> bool:
    return isinstance(result, AppendResult) and result.is_replay


def _may_have_met(before: object, now: object) -> bool:
    """Whether a plan made anew may have found its own effect, as a delete that finds nothing any more."""
    if isinstance(before, Removed):
        return before > 0  # what this one removed is gone, and would be missing from the count
    return _is_replay(now) if isinstance(now, AppendResult) else now != before
