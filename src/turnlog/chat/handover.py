"""How a call, which runs in a thread or task of its own, has the model's stream read by whoever wants its deltas."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeAlias

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
