"""The one step that differs between threads and tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def shielded(work: Coroutine[Any, Any, T]) -> T:
    """Finish the work even if the caller is cancelled: a write is whole or absent, never abandoned half-way."""
    return await asyncio.shield(asyncio.ensure_future(work))


def done(work: T) -> T:
    """In a thread the work is done already."""
    return work
