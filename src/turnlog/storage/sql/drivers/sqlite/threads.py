"""Threads that work for tasks: a call goes to one, and the task awaits what comes of it.

``concurrent.futures`` would do, at twice the price: a pool makes a future with a lock for each call, goes on with its
bookkeeping after the task has been woken, which then waits for the interpreter's lock, and hands work to the thread
that has waited longest, whose connection knows least of what is being read.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator
from contextlib import suppress
from contextvars import Context
from queue import SimpleQueue
from typing import Any, Generic, TypeAlias, TypeVar, cast

T = TypeVar("T")

#: Threads that read for tasks. A search in one of them keeps no other read waiting.
_MOST_READERS = 4


class Hop(Generic[T]):
    """A call that a thread makes for the task that awaits it. It is not undone when the task is cancelled.

    It is what ``asyncio.isfuture`` takes for a future, without the turn of the loop that lies between a future's result
    and its task: the loop hears from the thread, and goes on with the task at once. All but ``make`` and ``tell``
    happens in the loop's thread. One task awaits it, once, and before it goes on to anything else.
    """

    #: Set by whoever awaits, as in any future of asyncio's.
    _asyncio_future_blocking = False

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._loop = asyncio.get_running_loop()
        self._is_over = False
        self._waiting: tuple[Callable[[Hop[T]], object], Context] | None = None
        self._result: T | None = None
        self._error: BaseException | None = None
        self._cancellation: asyncio.CancelledError | None = None

    def make(self) -> None:
        """Make the call, in the thread."""
        try:
            self._result = self._call()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the task is to see it
            self._error = error

    def tell(self) -> None:
        """Have the task's loop go on with the task."""
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._end)

    def run(self) -> None:
        """Make the call and tell the task."""
        self.make()
        self.tell()

    def _end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._go_on()

    def _go_on(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            callback, context = waiting
            context.run(callback, self)

    def __await__(self) -> Generator[Hop[T], None, T]:
        if not self._is_over:
            self._asyncio_future_blocking = True
            yield self
        return self.result()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The loop of the task."""
        return self._loop

    def add_done_callback(self, callback: Callable[[Hop[T]], object], *, context: Context) -> None:
        """Called by the task that begins to wait."""
        self._waiting = callback, context

    def cancel(self, msg: object = None) -> bool:
        """Called when the task that waits is cancelled; False if the outcome was there first."""
        if self._is_over:
            return False
        self._is_over = True
        self._cancellation = asyncio.CancelledError() if msg is None else asyncio.CancelledError(msg)
        self._loop.call_soon(self._go_on)
        return True

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits any more."""
        return self._cancellation is not None

    def result(self) -> T:
        """What came of the call, given or raised."""
        if self._cancellation is not None:
            raise self._cancellation
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # its traceback holds this object
        return cast("T", self._result)


_Work: TypeAlias = Callable[[], None]


class Worker:
    """One thread that does what it is given, in order, each of which must not raise.

    It starts with the first work and ends with ``close``, at the latest with the process, after all that was given.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, work: _Work) -> None:
        """Give it something to do. Not to be called by two threads at once, nor after ``close``."""
        if self._thread is None:
            self._thread = threading.Thread(target=_work_off, args=(self._work,), name=self._name, daemon=True)
            self._thread.start()
            self._end = weakref.finalize(self, _end, self._work, self._thread)
        self._work.put(work)

    def close(self) -> None:
        """Wait until all is done, and end the thread."""
        if self._thread is not None:
            self._end()


def _work_off(queue: SimpleQueue[_Work | None]) -> None:
    while (work := queue.get()) is not None:
        work()
        del work  # nothing of it is kept while the thread waits


def _end(queue: SimpleQueue[_Work | None], thread: threading.Thread) -> None:
    queue.put(None)
    if thread is not threading.current_thread():  # a store that its own last work lets go of
        thread.join()


class Readers:
    """A few workers; the one that read last reads next, and what finds all busy waits for the first that is done."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._workers: list[Worker] = []
        self._idle: list[Worker] = []
        self._waiting: deque[Hop[Any]] = deque()

    def submit(self, hop: Hop[Any]) -> None:
        """Have a thread make the call, unless the task is cancelled before it begins."""
        with self._lock:
            if self._idle:
                worker = self._idle.pop()
            elif len(self._workers) < _MOST_READERS:
                worker = Worker(f"turnlog-reader-{len(self._workers)}")
                self._workers.append(worker)
            else:
                self._waiting.append(hop)
                return
        worker.submit(lambda: self._read(worker, hop))

    def _read(self, worker: Worker, hop: Hop[Any]) -> None:
        current: Hop[Any] | None = hop
        while current is not None:
            if not current.is_cancelled:
                current.make()
            # Decided before the task hears of the outcome, so that its next read comes to this thread.
            following = self._next(worker)
            current.tell()
            current = following

    def _next(self, worker: Worker) -> Hop[Any] | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._idle.append(worker)
            return None

    def close(self) -> None:
        """End the threads, after the reads that were submitted: while one waits, every thread goes on."""
        for worker in self._workers:
            worker.close()
