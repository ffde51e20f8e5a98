"""Processes that write until they are killed: ``python -m tests.concurrency.victim`` forks one whenever it is told to.

The parent has everything imported and no store open, so that a victim costs a few milliseconds. A victim says what was
acknowledged after the append has returned, in one write to the pipe: what the test hears was committed before.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from itertools import count
from typing import Any

from msgspec import Struct

from tests.concurrency.stores import opened
from turnlog.log.event_filter import EventFilter
from turnlog.log.events import SessionEvent
from turnlog.storage.protocol import SessionRepository
from turnlog.testing import factories

COMMON = "common"
#: Every so many batches one goes to the session that all victims share, and one is a compaction.
_COMMON_EVERY, _COMPACTION_EVERY = 5, 4
#: The batch that a victim which does wrong does wrong: it has several events.
_AT_FAULT = 3


class Batch(Struct, frozen=True):
    """What a victim appends next: known in advance from its session, its number, and the version it finds."""

    session: str
    events: tuple[SessionEvent, ...]


def batch(own: str, number: int, version: int) -> Batch:
    """Batch ``number`` of a victim whose own session is at ``version``: some events, or a boundary and a summary.

    Ids say to which batch an event belongs, where in it, and how large it is.
    """
    if number % _COMMON_EVERY == 0:
        session, events = COMMON, factories.conversation(1, session_id=COMMON)
    elif number % _COMPACTION_EVERY == 0 and version > 2:
        session, events = own, factories.summary(version + 1, [(version, version)], session_id=own)
    else:
        session, events = own, factories.turn(1, session_id=own)[: 1 + number % 4]
    placed = (event.replace(id=f"{own}/{number}/{index}/{len(events)}") for index, event in enumerate(events))
    return Batch(session, tuple(placed))


def write(url: str, own: str, number: int, version: int, fault: str = "") -> None:
    """Append batches from ``number`` on without end; the first may have been stored by who was killed before.

    ``fault`` names a way to do it wrong: then it waits to be killed at the worst moment.
    """
    with opened(url) as store:
        say(alive=own)
        for step in count(number):
            made = batch(own, step, version)
            if fault and step == _AT_FAULT:
                commit_wrongly(store, made, fault, own)
            result = store.append(made.session, made.events)
            first = result.events[0].position or 0
            if made.session == own:
                version = result.events[-1].position or 0
            # While it reads, the other victims can write: SQLite hands its lock to whoever happens to ask next.
            store.events(own, EventFilter.last(20))
            store.events(own, EventFilter.active())
            say(own=own, number=step, session=made.session, first=first, size=len(made.events), version=version)


def commit_wrongly(store: SessionRepository, made: Batch, fault: str, own: str) -> None:
    """Acknowledge before the commit, or commit a batch in parts, and wait."""
    if fault == "acknowledged early":
        first = store.version(made.session) + 1
        say(own=own, number=_AT_FAULT, session=made.session, first=first, size=len(made.events), version=0)
    else:
        store.append(made.session, made.events[:1])
    say(waiting=own)
    signal.pause()


def say(**message: Any) -> None:
    """One line in one write: whole or absent, whenever the process dies."""
    os.write(sys.stdout.fileno(), json.dumps(message).encode() + b"\n")


def main() -> None:
    """Fork a victim, or kill one and wait until it is gone, as each line says."""
    say(ready=True)
    for line in sys.stdin:
        order = json.loads(line)
        if "kill" in order:
            os.kill(order["kill"], signal.SIGKILL)
            os.waitpid(order["kill"], 0)
            say(killed=order["kill"])
        else:
            child = os.fork()
            if not child:
                try:
                    write(**order)
                finally:
                    os._exit(1)
            say(born=child, own=order["own"])


if __name__ == "__main__":
    main()
