"""Calling a user's function, sync or async, from either colour."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from turnlog.errors import InvalidValueError

A = TypeVar("A")
T = TypeVar("T")


async def call_async(function: Callable[[A], T | Awaitable[T]], argument: A) -> T:
    """Await an async function; run any other in a thread, with the caller's context variables: nothing blocks."""
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
    result = function(argument) if is_async else await asyncio.to_thread(function, argument)
    return cast("T", await result if inspect.isawaitable(result) else result)


def call_sync(function: Callable[[A], T | Awaitable[T]], argument: A) -> T:
    """Call a function here; an async one has no loop to run in."""
    result = function(argument)
    if inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()
        raise InvalidValueError(f"{function!r} is async: use it with the async service")
    return result
