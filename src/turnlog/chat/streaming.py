"""How a stream's deltas reach the caller while the call goes on elsewhere, for threads and for tasks (H-7, H-13).

The call runs in a thread or task of its own. Where it needs the model, it hands the open stream over, and whoever
iterates reads the deltas there, at their own pace; the call waits for the whole reply. So no session work runs where
deltas arrive, and nothing is buffered.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator
from concurrent.futures import Executor, Future
from contextlib import aclosing, closing, suppress
from contextvars import copy_context
from types import AsyncGeneratorType, TracebackType
from typing import Any, Self, TypeAlias, cast

from turnlog.chat.request import ChatResult
from turnlog.errors import InvalidReplyError
from turnlog.models.protocol import Delta, Reply, StreamItem


class StreamAbandonedError(BaseException):
    """Ends the call behind a stream that its caller has left; ``text`` is what the model had said.

    It is no ``Exception``, so that an advisor which retries what fails does not take it for a failure.
    """

    def __init__(self, text: str) -> None:
        super().__init__("the stream was left before it had ended")
        self.text = text


_Opened: TypeAlias = tuple[Callable[[], Iterator[StreamItem]], Future[Reply]]
_AsyncOpened: TypeAlias = tuple[Callable[[], AsyncIterator[StreamItem]], asyncio.Future[Reply]]


class Handover:
    """Between the call's thread and the caller's."""

    def __init__(self) -> None:
        self._opened: queue.SimpleQueue[_Opened | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_left = False

    def reply_of(self, open_stream: Callable[[], Iterator[StreamItem]]) -> Reply:
        """For the call: have the stream read by the caller, and return the reply at its end."""
        reply: Future[Reply] = Future()
        with self._lock:
            if self._is_left:
                raise StreamAbandonedError("")
            self._opened.put((open_stream, reply))
        return reply.result()

    def end(self) -> None:
        """For the call: it is over."""
        self._opened.put(None)

    def next(self) -> _Opened | None:
        """For the caller: the next stream to read, None at the end."""
        return self._opened.get()

    def leave(self) -> None:
        """For the caller: nobody reads any more; whoever still does in another thread comes to the end."""
        with self._lock:
            self._is_left = True
        while (opened := self._next_now()) is not None:
            opened[1].set_exception(StreamAbandonedError(""))
        self._opened.put(None)

    @property
    def is_left(self) -> bool:
        """Whether nobody is to read any more."""
        return self._is_left

    def _next_now(self) -> _Opened | None:
        with suppress(queue.Empty):
            return self._opened.get_nowait()
        return None


class ChatStream:
    """Deltas of a reply as they come; then ``result``, once everything is stored. Use it in a ``with`` block.

    Leaving the block before the end abandons the call: the log stays valid, and the reply is not stored (H-7).
    """

    def __init__(self, run: Callable[[Handover], ChatResult], executor: Executor | None) -> None:
        self._handover = Handover()
        self._context = copy_context()
        self._run = run
        self._executor = executor
        self._outcome: Future[ChatResult] | None = None
        self._deltas = self._read()

    def __iter__(self) -> Iterator[Delta]:
        return self

    def __next__(self) -> Delta:
        return next(self._deltas)

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def result(self) -> ChatResult:
        """What the call gave; reads the stream to its end first, where that has not been done."""
        for _ in self._deltas:
            pass
        return _result_of(self._start())

    def close(self) -> None:
        """End the call, if it has not ended; waits until what it is storing is stored.

        Another thread may be reading: it stops at the next delta, with :class:`InvalidReplyError`.
        """
        with suppress(ValueError):  # the generator is running, in that other thread
            self._deltas.close()
        self._handover.leave()
        if self._outcome is not None:
            with suppress(StreamAbandonedError, Exception):
                self._outcome.result()

    def _start(self) -> Future[ChatResult]:
        if self._outcome is None:
            if self._handover.is_left:
                raise _left()
            outcome: Future[ChatResult] = Future()
            if self._executor is None:
                threading.Thread(target=self._work, args=(outcome,), name="turnlog-stream", daemon=True).start()
            else:
                submitted = self._executor.submit(self._work, outcome)
                submitted.add_done_callback(lambda done: self._give_up(outcome) if done.cancelled() else None)
            self._outcome = outcome
        return self._outcome

    def _give_up(self, outcome: Future[ChatResult]) -> None:
        """The executor was shut down before the call's turn came."""
        outcome.set_exception(_left())
        self._handover.end()

    def _work(self, outcome: Future[ChatResult]) -> None:
        try:
            outcome.set_result(self._context.run(self._run, self._handover))
        except BaseException as error:  # noqa: BLE001 - raised where the caller reads
            outcome.set_exception(error)
        finally:
            self._handover.end()

    def _read(self) -> Generator[Delta, None, None]:
        outcome = self._start()
        while (opened := self._handover.next()) is not None:
            with closing(read_deltas(*opened)) as deltas:
                for delta in deltas:
                    if self._handover.is_left:
                        raise _left()
                    yield delta
        _ = _result_of(outcome)


def _result_of(outcome: Future[ChatResult]) -> ChatResult:
    try:
        return outcome.result()
    except StreamAbandonedError as abandoned:
        raise _left() from abandoned


def read_deltas(open_stream: Callable[[], Iterator[StreamItem]], reply: Future[Reply]) -> Generator[Delta, None, None]:
    """Yield what comes, and settle the reply with what the stream ends with, or fails with."""
    said: list[str] = []
    stream = None
    try:
        stream = open_stream()
        for item in stream:
            if isinstance(item, Reply):
                reply.set_result(item)
                return
            said.append(item.text)
            yield item
        reply.set_exception(InvalidReplyError("the model's stream ended without a whole reply"))
    except (GeneratorExit, KeyboardInterrupt):
        reply.set_exception(StreamAbandonedError("".join(said)))
        raise
    except BaseException as error:  # noqa: BLE001 - the call raises it, and with it the caller
        reply.set_exception(error)
    finally:
        close = getattr(stream, "close", None)
        if close is not None:
            close()


class AsyncHandover:
    """Between the call's task and the caller's."""

    def __init__(self) -> None:
        self._opened: asyncio.Queue[_AsyncOpened | None] = asyncio.Queue()
        self._is_left = False

    async def reply_of(self, open_stream: Callable[[], AsyncIterator[StreamItem]]) -> Reply:
        """For the call: have the stream read by the caller, and return the reply at its end."""
        if self._is_left:
            raise StreamAbandonedError("")
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._opened.put_nowait((open_stream, reply))
        return await reply

    def end(self) -> None:
        """For the call: it is over."""
        self._opened.put_nowait(None)

    async def next(self) -> _AsyncOpened | None:
        """For the caller: the next stream to read, None at the end."""
        return await self._opened.get()

    def leave(self) -> None:
        """For the caller: nobody reads any more; whoever still does in another task comes to the end."""
        self._is_left = True
        while not self._opened.empty():
            opened = self._opened.get_nowait()
            if opened is not None:
                settle(opened[1], StreamAbandonedError(""))
        self._opened.put_nowait(None)

    @property
    def is_left(self) -> bool:
        """Whether nobody is to read any more."""
        return self._is_left


class AsyncChatStream:
    """:class:`ChatStream` for tasks: ``async with client.stream(…) as stream: async for delta in stream: …``."""

    def __init__(
        self, run: Callable[[AsyncHandover], Coroutine[Any, Any, ChatResult]], executor: Executor | None
    ) -> None:
        del executor
        self._handover = AsyncHandover()
        self._run = run
        self._outcome: asyncio.Task[ChatResult | StreamAbandonedError] | None = None
        self._is_reading = False
        self._deltas = self._read()

    def __aiter__(self) -> AsyncIterator[Delta]:
        return self

    async def __anext__(self) -> Delta:
        return await anext(self._deltas)

    async def __aenter__(self) -> Self:
        _ = self._start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def result(self) -> ChatResult:
        """What the call gave; reads the stream to its end first, where that has not been done."""
        async for _ in self._deltas:
            pass
        return await _given(self._start())

    async def close(self) -> None:
        """End the call, if it has not ended; waits until what it is storing is stored.

        Another task may be reading: it stops at the next delta, with :class:`InvalidReplyError`.
        """
        if not cast("AsyncGeneratorType[Delta, None]", self._deltas).ag_running:
            await self._deltas.aclose()
        self._handover.leave()
        if self._outcome is None:
            return
        if not self._outcome.done():
            if not self._is_reading:  # then the call knows already; else it may be in the middle of tools
                self._outcome.cancel()
            await asyncio.wait((self._outcome,))
        if not self._outcome.cancelled():
            self._outcome.exception()  # it has been seen

    def _start(self) -> asyncio.Task[ChatResult | StreamAbandonedError]:
        if self._outcome is None:
            if self._handover.is_left:
                raise _left()
            self._outcome = asyncio.create_task(self._work())
        return self._outcome

    async def _work(self) -> ChatResult | StreamAbandonedError:
        try:
            return await self._run(self._handover)
        except StreamAbandonedError as abandoned:
            return abandoned  # a task that raises what is no Exception would stop the loop
        finally:
            self._handover.end()

    async def _read(self) -> AsyncGenerator[Delta, None]:
        outcome = self._start()
        while (opened := await self._handover.next()) is not None:
            self._is_reading = True
            async with aclosing(read_deltas_async(*opened)) as deltas:
                async for delta in deltas:
                    if self._handover.is_left:
                        raise _left()
                    yield delta
            self._is_reading = False
        _ = await _given(outcome)


async def _given(outcome: asyncio.Task[ChatResult | StreamAbandonedError]) -> ChatResult:
    """What the call gave. Waiting for it does not cancel it, and its being cancelled is not ours."""
    await asyncio.wait((outcome,))
    if outcome.cancelled():
        raise _left()
    given = outcome.result()
    if isinstance(given, StreamAbandonedError):
        raise _left() from given
    return given


def _left() -> InvalidReplyError:
    return InvalidReplyError("the stream was left before it had ended: there is no result")


async def read_deltas_async(
    open_stream: Callable[[], AsyncIterator[StreamItem]], reply: asyncio.Future[Reply]
) -> AsyncGenerator[Delta, None]:
    """:func:`read_deltas` for tasks."""
    said: list[str] = []
    stream = None
    try:
        stream = open_stream()
        async for item in stream:
            if isinstance(item, Reply):
                settle(reply, item)
                return
            said.append(item.text)
            yield item
        settle(reply, InvalidReplyError("the model's stream ended without a whole reply"))
    except (GeneratorExit, asyncio.CancelledError):
        settle(reply, StreamAbandonedError("".join(said)))
        raise
    except BaseException as error:  # noqa: BLE001 - the call raises it, and with it the caller
        settle(reply, error)
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()


def settle(reply: asyncio.Future[Reply], outcome: Reply | BaseException) -> None:
    """Give the call what came of the stream, if it still waits."""
    if reply.done():
        return
    if isinstance(outcome, Reply):
        reply.set_result(outcome)
    else:
        reply.set_exception(outcome)
