"""One file with a log of 1,000 events and one of 100,000, that end alike."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reading_cost.metering import LONG, SHORT, Meter, open_metered
from turnlog.log.events import EventMetadata, EventType, SessionEvent
from turnlog.log.messages import AssistantMessage, Message, SystemMessage, UserMessage
from turnlog.log.view import Boundary
from turnlog.storage.sql import SqlRepository
from turnlog.testing import factories

LENGTHS = {SHORT: 1_000, LONG: 100_000}
#: The end of both logs: turns with branches and own types, a compaction, and turns after it.
TAIL = 60


class Metered:
    """A store, the meter of its connections, and the file."""

    def __init__(self, store: SqlRepository, meter: Meter, path: Path) -> None:
        self.store, self.meter, self.path = store, meter, path


@pytest.fixture(scope="session")
def metered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metered]:
    meter = Meter()
    path: Path = tmp_path_factory.mktemp("reading-cost") / "logs.db"
    with open_metered(path, meter) as store:
        for session, length in LENGTHS.items():
            made = factories.session(session, principal="p")
            store.restore(made, batches(session, length))
        for number in range(40):
            store.create(factories.session(f"other-{number}", principal="p" if number < 20 else "q"))
        yield Metered(store, meter, path)


def batches(session: str, length: int) -> Iterator[list[SessionEvent]]:
    """Plain turns, with something of every kind at the log's beginning; then the tail."""
    head = length - TAIL
    for position in range(1, head + 1):
        yield [plain(session, position)]
    yield from tail(session, head)


def plain(session: str, position: int) -> SessionEvent:
    message: Message = UserMessage("question") if position % 2 else AssistantMessage("answer")
    if position == 1:
        message = SystemMessage("rules")
    if position in {4, 5}:
        return event(session, position, None, type=factories.PROGRESS, payload={}, branch=(None, "a.b")[position - 4])
    return event(session, position, message, branch={8: "a", 9: "a.b", 10: "c"}.get(position))


def event(session: str, position: int, message: Message | None, **fields: object) -> SessionEvent:
    return factories.event(position, message, session_id=session, **fields)


def tail(session: str, head: int) -> Iterator[list[SessionEvent]]:
    for offset in range(20):
        position = head + 1 + offset
        branch = ("a", "a.b", "c", None)[offset % 4] if offset % 5 == 1 else None
        yield [event(session, position, UserMessage("q") if offset % 4 == 0 else AssistantMessage("a"), branch=branch)]
    boundary = head + 21
    view = ((boundary + 1, boundary + 2), (head + 9, head + 20))
    payload = Boundary(view=view, end=boundary + 2, strategy="summary").payload()
    made = {EventMetadata.SYNTHETIC: True, EventMetadata.BOUNDARY: f"e{boundary}"}
    yield [
        event(session, boundary, None, type=EventType.COMPACTION, payload=payload),
        event(session, boundary + 1, UserMessage("so far?"), metadata=made),
        event(session, boundary + 2, AssistantMessage("this"), metadata=made),
    ]
    for offset in range(TAIL - 23):
        position = head + 24 + offset
        if offset % 9 == 4:
            yield [
                event(session, position, None, type=factories.PROGRESS, payload={}, branch=(None, "a.b")[offset % 2])
            ]
        else:
            yield [event(session, position, UserMessage("q") if offset % 4 == 0 else AssistantMessage("a"))]
