"""How a stream's deltas reach the caller while the call goes on elsewhere, for threads and for tasks (H-7, H-13).

The call runs in a thread or task of its own. Where it needs the model, it hands the open stream over, and whoever
iterates reads the deltas there, at their own pace; the call waits for the whole reply. So no session work runs where
deltas arrive, and nothing is buffered.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator
from concurrent.futures import Executor, Future
from contextlib import aclosing, closing, suppress
from contextvars import copy_context
from types import AsyncGeneratorType, TracebackType
from typing import Any, Self, cast

from turnlog.chat.handover import AsyncHandover, Handover, StreamAbandonedError, read_deltas, read_deltas_async
from turnlog.chat.request import ChatResult
from turnlog.errors import InvalidReplyError
from turnlog.models.protocol import Delta


class ChatStream:
    """Deltas of a reply as they come; then ``result``, once everything is stored. Use it in a ``with`` block.

    Leaving the block before the end abandons the call: the log stays valid, and the reply is not stored (H-7).
    """

    def __init__(self, run: Callable[[Handover], ChatResult], executor: Executor | None) -> None:
        self._call = _CallInThread(run, executor)
        self._deltas = self._call.deltas()

    def __iter__(self) -> Iterator[Delta]:
        return self

    def __next__(self) -> Delta:
        return next(self._deltas)

    def __enter__(self) -> Self:
        _ = self._call.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def result(self) -> ChatResult:
        """What the call gave; reads the stream to its end first, where that has not been done."""
        for _ in self._deltas:
            pass
        return _result_of(self._call.start())

    def close(self) -> None:
        """End the call, if it has not ended; waits until what it is storing is stored.

        Another thread may be reading: it stops at the next delta, with :class:`InvalidReplyError`.
        """
        with suppress(ValueError):  # the generator is running, in that other thread
            self._deltas.close()
        self._call.handover.leave()
        if self._call.outcome is not None:
            with suppress(StreamAbandonedError, Exception):
                self._call.outcome.result()


class _CallInThread:
    """The call behind a stream. It knows nothing of the stream: one that is dropped unfinished ends the call."""

    def __init__(self, run: Callable[[Handover], ChatResult], executor: Executor | None) -> None:
        self.handover = Handover()
        self.outcome: Future[ChatResult] | None = None
        self._context = copy_context()
        self._run = run
        self._executor = executor

    def start(self) -> Future[ChatResult]:
        """Begin the call, unless it has begun."""
        if self.outcome is None:
            if self.handover.is_left:
                raise _left()
            outcome: Future[ChatResult] = Future()
            if self._executor is None:
                threading.Thread(target=self._work, args=(outcome,), name="turnlog-stream", daemon=True).start()
            else:
                submitted = self._executor.submit(self._work, outcome)
                submitted.add_done_callback(lambda done: self._give_up(outcome) if done.cancelled() else None)
            self.outcome = outcome
        return self.outcome

    def deltas(self) -> Generator[Delta, None, None]:
        """Every delta of the call; whoever takes them reads the model's stream."""
        outcome = self.start()
        try:
            while (opened := self.handover.next()) is not None:
                with closing(read_deltas(*opened)) as deltas:
                    for delta in deltas:
                        if self.handover.is_left:
                            raise _left()
                        yield delta
        except GeneratorExit:
            self.handover.leave()
            raise
        _ = _result_of(outcome)

    def _work(self, outcome: Future[ChatResult]) -> None:
        try:
            outcome.set_result(self._context.run(self._run, self.handover))
        except BaseException as error:  # noqa: BLE001 - raised where the caller reads
            outcome.set_exception(error)
        finally:
            self.handover.end()

    def _give_up(self, outcome: Future[ChatResult]) -> None:
        """The executor was shut down before the call's turn came."""
        outcome.set_exception(_left())
        self.handover.end()


def _result_of(outcome: Future[ChatResult]) -> ChatResult:
    try:
        return outcome.result()
    except StreamAbandonedError as abandoned:
        raise _left() from abandoned


class AsyncChatStream:
    """:class:`ChatStream` for tasks: ``async with client.stream(…) as stream: async for delta in stream: …``."""

    def __init__(
        self, run: Callable[[AsyncHandover], Coroutine[Any, Any, ChatResult]], executor: Executor | None
    ) -> None:
        del executor
        self._call = _CallInTask(run)
        self._deltas = self._call.deltas()

    def __aiter__(self) -> AsyncIterator[Delta]:
        return self

    async def __anext__(self) -> Delta:
        return await anext(self._deltas)

    async def __aenter__(self) -> Self:
        _ = self._call.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def result(self) -> ChatResult:
        """What the call gave; reads the stream to its end first, where that has not been done."""
        async for _ in self._deltas:
            pass
        return await _given(self._call.start())

    async def close(self) -> None:
        """End the call, if it has not ended; waits until what it is storing is stored.

        Another task may be reading: it stops at the next delta, with :class:`InvalidReplyError`.
        """
        if not cast("AsyncGeneratorType[Delta, None]", self._deltas).ag_running:
            await self._deltas.aclose()
        await self._call.end()


class _CallInTask:
    """The call behind a stream. It knows nothing of the stream: one that is dropped unfinished ends the call."""

    def __init__(self, run: Callable[[AsyncHandover], Coroutine[Any, Any, ChatResult]]) -> None:
        self._handover = AsyncHandover()
        self._outcome: asyncio.Task[ChatResult | StreamAbandonedError] | None = None
        self._run = run
        self._is_reading = False

    def start(self) -> asyncio.Task[ChatResult | StreamAbandonedError]:
        """Begin the call, unless it has begun."""
        if self._outcome is None:
            if self._handover.is_left:
                raise _left()
            self._outcome = asyncio.create_task(self._work())
        return self._outcome

    async def deltas(self) -> AsyncGenerator[Delta, None]:
        """Every delta of the call; whoever takes them reads the model's stream."""
        outcome = self.start()
        try:
            while (opened := await self._handover.next()) is not None:
                self._is_reading = True
                async with aclosing(read_deltas_async(*opened)) as deltas:
                    async for delta in deltas:
                        if self._handover.is_left:
                            raise _left()
                        yield delta
                self._is_reading = False
        except GeneratorExit:
            self._handover.leave()
            raise
        _ = await _given(outcome)

    async def end(self) -> None:
        """Nobody reads any more: end the call, and wait until it has ended."""
        self._handover.leave()
        if self._outcome is None:
            return
        if not self._outcome.done():
            if not self._is_reading:  # then the call knows already; else it may be in the middle of tools
                self._outcome.cancel()
            await asyncio.wait((self._outcome,))
        if not self._outcome.cancelled():
            self._outcome.exception()  # it has been seen

    async def _work(self) -> ChatResult | StreamAbandonedError:
        try:
            return await self._run(self._handover)
        except StreamAbandonedError as abandoned:
            return abandoned  # a task that raises what is no Exception would stop the loop
        finally:
            self._handover.end()


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
