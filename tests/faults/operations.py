"""Every operation of a store as one call on a prepared store, for the tests in which that call fails."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from inspect import isawaitable
from typing import Any, Final, TypeAlias

from msgspec import Struct

from turnlog.errors import TurnlogError
from turnlog.log.event_filter import EventFilter
from turnlog.log.events import SessionEvent
from turnlog.log.queries import EventQuery
from turnlog.storage.changes import SessionChange
from turnlog.storage.protocol import Turn
from turnlog.storage.sql import AsyncSqlRepository, SqlRepository
from turnlog.testing import factories
from turnlog.testing.clocks import START, FixedClock

AnyRepository: TypeAlias = SqlRepository | AsyncSqlRepository


class Words(Struct, frozen=True):
    """A counter that is not the store's."""

    name: str = "words"

    def count(self, text: str) -> int:
        return len(text.split())


NOW: Final = START + timedelta(hours=1)
HOUR: Final = timedelta(hours=1)


def clock() -> FixedClock:
    return FixedClock(NOW)


def prepare(store: SqlRepository) -> None:
    """What every operation finds: logs, a view, an index, a held turn, and sessions that have expired."""
    made = factories.session(principal="p", metadata={"team": "red"}, expires_at=NOW + HOUR, time_to_live=HOUR)
    store.create(made)
    for batch in log():
        store.append("s", batch)
    for name in ("old-1", "old-2"):
        store.create(factories.session(name, principal="p", expires_at=START))
    store.create(factories.session("held", principal="p"))
    store.take_turn("held", Turn("holder"))


def log() -> list[list[SessionEvent]]:
    """The batches of session ``s``: eleven events, the last three a compaction."""
    first, second = factories.conversation(2)[:4], factories.conversation(2)[4:]
    return [first, second, factories.summary(9, kept=[(5, 8)])]


def batch(first: int, **fields: Any) -> list[SessionEvent]:
    return [factories.user(first, **fields), factories.assistant(first + 1, **fields)]


class Operation(Struct, frozen=True):
    """A call on a store of either colour; ``takes_steps``: it takes several transactions, each with an effect."""

    name: str
    call: Callable[[AnyRepository], Any]
    is_append: bool = False
    takes_steps: bool = False

    def __str__(self) -> str:
        return self.name


def _append(name: str, events: list[SessionEvent], session: str = "s", **conditions: Any) -> Operation:
    return Operation(f"append {name}", lambda store: store.append(session, events, **conditions), is_append=True)


_LATE: Final = EventFilter(since=START + timedelta(seconds=3), keyword="question")
_RESTORED: Final = [[event.replace(session_id="copy") for event in batch] for batch in log()[:2]]

WRITES: Final = (
    Operation("create", lambda store: store.create(factories.session("new", principal="p"))),
    Operation("create over remains", lambda store: store.create(factories.session("old-1", principal="p"))),
    Operation("update", lambda store: store.update("s", SessionChange(set={"a": 1}, principal="q"))),
    Operation("delete", lambda store: store.delete("s")),
    Operation("delete_expired", lambda store: store.delete_expired(NOW, batch_size=1), takes_steps=True),
    _append("one", [factories.user(12)]),
    _append("batch", batch(12), expected_version=11),
    _append("boundary", factories.summary(12, kept=[(10, 11)]), expected_version=11),
    _append("with turn", batch(12), turn=Turn("mine", take=True)),
    _append("replay", log()[1], expected_version=0),
    _append("refused", batch(12), expected_version=3),
    _append("held", batch(12, session_id="held"), "held"),
    Operation("restore", lambda store: store.restore(factories.session("copy"), iter(_RESTORED))),
    Operation("restore more", lambda store: store.restore(factories.session(), iter([*log(), batch(12)]))),
    Operation("fork", lambda store: store.fork("s", factories.session("fork", principal="p"), at=6)),
    Operation("take_turn", lambda store: store.take_turn("s", Turn("mine"))),
    Operation("renew_turn", lambda store: store.renew_turn("held", Turn("holder", lease=HOUR))),
    Operation("release_turn", lambda store: store.release_turn("held", "holder")),
    Operation("fill_index", lambda store: store.fill_index("team")),
    Operation("tally by another counter", lambda store: store.tally("s", Words())),
)

READS: Final = (
    Operation("find", lambda store: store.find("s")),
    Operation("list", lambda store: store.list(principal="p")),
    Operation("find_by_metadata", lambda store: store.find_by_metadata("principal_name", "p")),
    Operation("events", lambda store: store.events("s")),
    Operation("events of the view", lambda store: store.events("s", EventFilter.active())),
    Operation("events as of", lambda store: store.events("s", EventFilter.active(), as_of=6)),
    Operation("events by text and time", lambda store: store.events("s", _LATE)),
    Operation("newest events", lambda store: store.events("s", EventFilter.last(2).merge(EventFilter.active()))),
    Operation("iter_events", lambda store: store.iter_events("s", batch_size=3)),
    Operation("iter_batches", lambda store: store.iter_batches("s")),
    Operation("find_events", lambda store: store.find_events("s", event_ids=["e1", "e7"])),
    Operation("find_events of a run", lambda store: store.find_events("s", run_id="r")),
    Operation("count", lambda store: store.count("s", EventFilter.real_only())),
    Operation("search", lambda store: store.search("s", EventQuery.keyword("question"))),
    Operation("version", lambda store: store.version("s")),
    Operation("tally", lambda store: store.tally("s")),
)


async def outcome(store: AnyRepository, operation: Operation) -> Any:
    """What came of the operation: its value, or the error of ours that it raised; any other error goes on."""
    try:
        answer = operation.call(store)
        if isinstance(answer, AsyncIterator):
            return [found async for found in answer]
        if isinstance(answer, Iterator):
            return list(answer)
        return await answer if isawaitable(answer) else answer
    except TurnlogError as error:
        return error
