"""Calls on a store that fail when they are told to, in either colour: what becomes of a caller whose n-th call fails?

    for calls in each_call(CallFault()):
        store = with_faults(open_store("memory:"), calls)
        with suppress(StoreUnavailableError):
            scenario(store)
        check(store)

runs the scenario with its first call failing, then its second, and so on, and at last undisturbed.
``turnlog.testing.driver_faults`` does the same below a SQLite store, statement by statement.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import count
from typing import Any, Final, Self, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import StoreUnavailableError
from turnlog.storage.protocol import SessionRepository

S = TypeVar("S")

#: What can fail: every method of a store but ``close``.
OPERATIONS: Final = frozenset(
    name
    for name, member in vars(SessionRepository).items()
    if inspect.isfunction(member) and not name.startswith("_") and name != "close"
)


def unavailable() -> BaseException:
    """The error that a fault raises unless it is given another."""
    return StoreUnavailableError("injected: the store cannot be reached")


class CallFault(Struct, frozen=True, kw_only=True):
    """One call that fails: the ``number``-th, from 1, of ``operation`` or of all; with ``lasting`` all from then on.

    With ``takes_effect`` the call is made and its answer is lost; an iteration then breaks off behind its first list.
    """

    operation: str | None = None
    number: int = 1
    error: Callable[[], BaseException] = unavailable
    takes_effect: bool = False
    lasting: bool = False

    def __post_init__(self) -> None:
        if self.operation is not None and self.operation not in OPERATIONS:
            raise ValueError(f"{self.operation!r} is no operation of a store: {', '.join(sorted(OPERATIONS))}")


class FaultyCalls:
    """Counts calls and has some of them fail. ``made`` lists all, ``struck`` those that failed, both by operation."""

    def __init__(self, *faults: CallFault) -> None:
        self.made: list[str] = []
        self.struck: list[str] = []
        self._faults = faults
        self._is_healed = False
        self._lock = threading.Lock()

    def due(self, operation: str) -> CallFault | None:
        """Count a call; return the fault that strikes it, if one does."""
        with self._lock:
            self.made.append(operation)
            for fault in () if self._is_healed else self._faults:
                calls = len(self.made) if fault.operation is None else self.made.count(fault.operation)
                concerned = fault.operation in (None, operation)
                if concerned and (calls == fault.number or (fault.lasting and calls > fault.number)):
                    self.struck.append(operation)
                    return fault
            return None

    def heal(self) -> None:
        """Let every call succeed from now on; counting goes on."""
        self._is_healed = True


def each_call(fault: CallFault) -> Iterator[FaultyCalls]:
    """One for the first call that ``fault`` concerns, one for the second…; the last one strikes nothing."""
    for number in count(1):
        calls = FaultyCalls(replace(fault, number=number))
        yield calls
        if not calls.struck:
            return


def with_faults(store: S, calls: FaultyCalls) -> S:
    """``store``, sync or async, whose calls fail as ``calls`` has it. Everything else about it is the store's own."""
    return cast("S", _FaultyStore(store, calls))


class _FaultyStore:
    def __init__(self, store: Any, calls: FaultyCalls) -> None:
        self._store = store
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._store, name)
        if name not in OPERATIONS:
            return value

        def call(*arguments: Any, **options: Any) -> Any:
            fault = self._calls.due(name)
            if fault is None:
                return value(*arguments, **options)
            if not fault.takes_effect:
                raise fault.error()
            return _answer_lost(value(*arguments, **options), fault)

        return call

    def __enter__(self) -> Self:
        self._store.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._store.__exit__(*error)

    async def __aenter__(self) -> Self:
        await self._store.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._store.__aexit__(*error)


def _answer_lost(answer: Any, fault: CallFault) -> Any:
    """What the caller gets of an answer that is lost: an error, at once or where it would have had the answer."""
    if hasattr(answer, "__anext__"):
        return _broken_off_async(answer, fault)
    if hasattr(answer, "__next__"):
        return _broken_off(answer, fault)
    if inspect.isawaitable(answer):
        return _awaited(answer, fault)
    raise fault.error()


async def _awaited(answer: Awaitable[Any], fault: CallFault) -> Any:
    await answer
    raise fault.error()


def _broken_off(batches: Iterator[Any], fault: CallFault) -> Iterator[Any]:
    for batch in batches:
        yield batch
        break
    raise fault.error()


async def _broken_off_async(batches: AsyncIterator[Any], fault: CallFault) -> AsyncIterator[Any]:
    async for batch in batches:
        yield batch
        break
    raise fault.error()
