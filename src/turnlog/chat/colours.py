"""What threads and tasks do each in their own way: finish a write, run tools side by side, go on behind a call."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import FIRST_EXCEPTION, Executor, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar, get_type_hints

from turnlog.chat.advisor import SCOPES
from turnlog.chat.request import ChatResult
from turnlog.chat.tools import Tool, ToolFunction, tools_by_name
from turnlog.errors import InvalidValueError, ToolDefinitionError
from turnlog.log.messages import ToolResult
from turnlog.models.protocol import Reply

T = TypeVar("T")


async def shielded(work: Coroutine[Any, Any, T]) -> T:
    """Finish the work, a cancelled caller with it, however often: nothing is abandoned half-way (H-13)."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):  # the caller is being cancelled already
                await asyncio.wait((task,))
        if not task.cancelled():
            task.exception()  # it has been seen; the caller raises that it was cancelled
        raise


def done(work: T) -> T:
    """In a thread the work is done already."""
    return work


def check_fitting_async(model: object, advisors: Sequence[object]) -> None:
    """Refuse what is certainly made for threads, when the client is made."""
    if inspect.isgeneratorfunction(getattr(model, "stream", None)):
        raise InvalidValueError(f"{type(model).__name__} is a model for threads: use it with ChatClient")
    for advisor in advisors:
        if any(_returns_at_once(getattr(advisor, scope, None)) for scope in SCOPES):
            raise InvalidValueError(f"{type(advisor).__name__} is an advisor for threads: use it with ChatClient")


def _returns_at_once(around: object) -> bool:
    """Whether it says so: a plain function may as well return something to await."""
    if around is None or inspect.iscoroutinefunction(around):
        return False
    with suppress(Exception):  # hints may name what is imported for the checkers alone
        return get_type_hints(around).get("return") in {ChatResult, Reply, ToolResult}
    return False


def check_fitting_sync(model: object, advisors: Sequence[object]) -> None:
    """Refuse what is certainly made for tasks, when the client is made."""
    scopes = ((model, "generate", "model"), *((each, scope, "advisor") for each in advisors for scope in SCOPES))
    for part, name, what in scopes:
        if inspect.iscoroutinefunction(getattr(part, name, None)):
            raise InvalidValueError(f"{type(part).__name__} is an async {what}: use it with AsyncChatClient")


async def call_tool_async(
    function: Callable[..., Any], arguments: dict[str, Any], executor: Executor | None = None
) -> Any:
    """Await an async function; run any other in a thread of the executor, with the context variables of the caller."""
    if inspect.iscoroutinefunction(function):
        return await function(**arguments)
    work = functools.partial(copy_context().run, function, **arguments)
    returned = await asyncio.get_running_loop().run_in_executor(executor, work)
    return await returned if inspect.isawaitable(returned) else returned


def call_tool_sync(function: Callable[..., Any], arguments: dict[str, Any], executor: Executor | None = None) -> Any:
    """Call a function, here; what it returns to be awaited has no loop to run in."""
    del executor
    returned = function(**arguments)
    if inspect.iscoroutine(returned):
        returned.close()
        name = getattr(function, "__name__", type(function).__name__)
        raise ToolDefinitionError(name, "it returns a coroutine: use it with AsyncChatClient")
    return returned


def usable_async(functions: Sequence[ToolFunction | Tool]) -> tuple[Tool, ...]:
    """The tools of these functions, sync or async."""
    return tuple(tools_by_name(functions).values())


def usable_sync(functions: Sequence[ToolFunction | Tool]) -> tuple[Tool, ...]:
    """The tools of these functions; an async one has no loop to run in, and is refused."""
    tools = tuple(tools_by_name(functions).values())
    for each in tools:
        if each.is_async:
            raise ToolDefinitionError(each.spec.name, "it is async: use it with AsyncChatClient")
    return tools


async def side_by_side_async(calls: Sequence[Callable[[], Awaitable[T]]], most: int) -> list[T]:
    """What all calls give, in their order, at most so many at a time; when one raises, the others are cancelled."""
    if len(calls) == 1:
        return [await calls[0]()]
    free = asyncio.Semaphore(most)

    async def limited(call: Callable[[], Awaitable[T]]) -> T:
        async with free:
            return await call()

    tasks = [asyncio.ensure_future(limited(call)) for call in calls]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        raise


def side_by_side(calls: Sequence[Callable[[], T]], most: int) -> list[T]:
    """The same in threads, each with the context variables of the caller; one that runs is waited for."""
    if len(calls) == 1:
        return [calls[0]()]
    with ThreadPoolExecutor(min(most, len(calls)), "turnlog-tool") as pool:
        running = [pool.submit(copy_context().run, call) for call in calls]
        wait(running, return_when=FIRST_EXCEPTION)
        for each in running:
            each.cancel()  # where one has failed, those behind it that have not begun
        return [each.result() for each in running]


class Background:
    """Work that goes on after a call has returned, with the caller's context variables; for threads (C-8, H-13)."""

    def __init__(self, executor: Executor | None) -> None:
        self._executor = executor
        self._own: Executor | None = None
        self._process = 0
        self._running: set[Future[Any]] = set()
        self._lock = threading.Lock()

    def start(self, work: Callable[[], object]) -> None:
        """Begin it. What it raises must be its own concern."""
        context = copy_context()
        with self._lock:
            future = self._threads().submit(context.run, work)
            self._running.add(future)
        future.add_done_callback(self._ended)

    def _threads(self) -> Executor:
        if self._executor is not None:
            return self._executor
        if self._own is None or self._process != os.getpid():  # the threads stayed with the parent, and what they ran
            self._own, self._process = ThreadPoolExecutor(4, "turnlog-compaction"), os.getpid()
            self._running = set()
        return self._own

    def _ended(self, future: Future[Any]) -> None:
        with self._lock:
            self._running.discard(future)

    def wait(self, seconds: float) -> bool:
        """Wait, at most so long, until nothing runs; whether that is so."""
        with self._lock:
            running = list(self._running)
        return not wait(running, seconds).not_done


class AsyncBackground:
    """The same for tasks, which need no executor."""

    def __init__(self, executor: Executor | None) -> None:
        del executor
        self._running: set[asyncio.Task[object]] = set()

    async def start(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Begin it. What it raises must be its own concern."""
        task = asyncio.create_task(work())
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def wait(self, seconds: float) -> bool:
        """Wait, at most so long, until nothing runs; whether that is so."""
        if not self._running:
            return True
        _, pending = await asyncio.wait(tuple(self._running), timeout=seconds)
        return not pending
