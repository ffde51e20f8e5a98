"""Three stores that must not differ: in memory, SQLite, PostgreSQL. Every question goes to all of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

from turnlog.errors import TurnlogError
from turnlog.log.events import SessionEvent
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.opening import open_store
from turnlog.storage.protocol import SessionRepository
from turnlog.testing.clocks import FixedClock
from turnlog.testing.contract import INDEXED_METADATA
from turnlog.testing.contract.exactness import exactly
from turnlog.testing.simulation.operations import Refusal

Ask: TypeAlias = Callable[[SessionRepository], Any]


class Trio:
    """One store of each kind, with one clock, each with the same in it."""

    def __init__(self, stores: Sequence[SessionRepository], clock: FixedClock) -> None:
        self.stores = tuple(stores)
        self.clock = clock

    def agree(self, ask: Ask) -> Any:
        """What all of them answer: the same in every field and type, or the same error."""
        first, *others = (told(store, ask) for store in self.stores)
        for other in others:
            assert other == first
        return first

    def clear(self) -> None:
        """Delete every session."""
        for store in self.stores:
            while page := store.list(limit=500).sessions:
                for session in page:
                    store.delete(session.id)
            self.clock.set(datetime.max.replace(tzinfo=self.clock.now.tzinfo))
            store.delete_expired(self.clock.now)
            self.clock.set(FixedClock().now)


def told(store: SessionRepository, ask: Ask) -> Any:
    """The answer as it is compared."""
    try:
        answer = ask(store)
    except TurnlogError as error:
        return Refusal.of(error)
    return exactly(list(answer) if isinstance(answer, Iterator) else answer)


@contextmanager
def trio(url: str, folder: Path) -> Generator[Trio]:
    """The three stores, open; the PostgreSQL database is the one at ``url``."""
    clock = FixedClock()
    with ExitStack() as stack:
        urls = ("memory:", f"sqlite:{folder / 'compared.db'}", url)
        stores = [
            stack.enter_context(
                open_store(each, clock=clock, indexed_metadata=INDEXED_METADATA, token_counter=EstimatedTokens())
            )
            for each in urls
        ]
        yield Trio(stores, clock)


#: What both engines keep of a session and of its events, but for keys, which count on their own.
SESSION_COLUMNS: Final = (
    "id, created_at, expires_at, time_to_live, version, turn, turns, kinds, boundary, base, opening, lease_token,"
    " lease_until, token_counter"
)
EVENT_COLUMNS: Final = "position, event_id, timestamp, kind, batch, e.turn, format, tokens, type, branch, run_id, body"
_SELECT_SESSION: Final = f"SELECT {SESSION_COLUMNS} FROM session WHERE id = 's'"  # noqa: S608 - constants
_SELECT_EVENTS: Final = f"SELECT {EVENT_COLUMNS} FROM event e JOIN session s ON s.key = e.session_key WHERE s.id = 's'"  # noqa: S608 - the same
SELECTS: Final = (_SELECT_SESSION, f"{_SELECT_EVENTS} ORDER BY position")


def size_of(batches: Sequence[Sequence[SessionEvent]]) -> int:
    """How many events there are in all."""
    return sum(map(len, batches))


def tally_of(store: SessionRepository) -> tuple[int, ...] | None:
    """The sums, without the name that each store gives the log."""
    tally = store.tally("s")
    return None if tally is None else (tally.version, tally.boundary, tally.turns, tally.tokens)
