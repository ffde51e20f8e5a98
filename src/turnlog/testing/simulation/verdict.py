"""The end of a run: the store against the model, row by row and read by read, and the history against its rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Final, TypeAlias

from turnlog.errors import TurnlogError
from turnlog.log.event_filter import EventFilter
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.protocol import SessionRepository
from turnlog.storage.sql import SqlRepository
from turnlog.storage.sql.drivers.sqlite import SqliteDriver, SqliteOptions
from turnlog.testing.history import FinalLog, LogEntry, check_history
from turnlog.testing.simulation.drawing import COPIES, LASTING, MORTAL, Words
from turnlog.testing.simulation.files import FileWorld
from turnlog.testing.simulation.operations import Refusal, answer_of, recorded
from turnlog.testing.simulation.world import World

#: Position and version of each event of a log.
Places: TypeAlias = Sequence[tuple[int, int]]


def faults_of(world: World, store: SqlRepository, places_of: Callable[[str], Places]) -> Iterator[str]:
    """What is wrong when all is quiet; nothing if the store has converged with the model and the history is right.

    ``places_of`` reads the rows of a log past the ``store``: positions and version told by different tables (P1).
    """
    for program in world.programs:
        if program.driver is not None and program.open_transactions():
            yield f"{program.name} has left a transaction open"
    yield from _differences(world, store)
    final = {session: _final_log(places_of(session), session, store) for session in LASTING}
    for violation in check_history(world.calling.history, final):
        yield str(violation)


def faults_of_file(world: FileWorld) -> Iterator[str]:
    """``faults_of``, and what SQLite itself finds in the file."""
    path = world.file.path
    yield from _damage(path)
    driver = SqliteDriver(SqliteOptions(path=path))
    with SqlRepository(driver, world.clock, token_counter=EstimatedTokens()) as store:
        yield from faults_of(world, store, lambda session: _places(path, session))


def _damage(path: str) -> Iterator[str]:
    with closing(sqlite3.connect(path)) as connection:
        for pragma in ("integrity_check", "foreign_key_check"):
            found = connection.execute(f"PRAGMA {pragma}").fetchall()
            if found not in ([("ok",)], []):
                yield f"{pragma}: {found}"


def _differences(world: World, store: SqlRepository) -> Iterator[str]:
    model = world.shared.oracle.at(world.clock())
    for session in LASTING + MORTAL + COPIES:
        for name, ask in _QUESTIONS.items():
            answer, expected = _asked(store, ask, session), _asked(model, ask, session)
            if answer != expected:
                yield f"in the end, {name} of {session}: {answer}, the model says {expected}"
    listed, expected = answer_of(store.list(principal="p")), answer_of(model.list(principal="p"))
    if listed != expected:
        yield f"in the end, the list: {listed}, the model says {expected}"


def _asked(store: SessionRepository, ask: Callable[[SessionRepository, str], Any], session: str) -> Any:
    try:
        return answer_of(ask(store, session))
    except TurnlogError as refusal:
        return Refusal.of(refusal)


_VIEW: Final = EventFilter(active_view=True)
_LAST_TURNS: Final = EventFilter.last(2).merge(EventFilter.active())
_Ask: TypeAlias = Callable[[SessionRepository, str], Any]
_QUESTIONS: Mapping[str, _Ask] = {
    "session": lambda store, session: store.find(session),
    "events": lambda store, session: store.events(session),
    "view": lambda store, session: store.events(session, _VIEW),
    "last turns": lambda store, session: store.events(session, _LAST_TURNS),
    "batches": lambda store, session: [len(batch) for batch in store.iter_batches(session)],
    "tally": lambda store, session: store.tally(session),
    "tally in words": lambda store, session: store.tally(session, Words()),
}


#: Bound is the session's id.
PLACES: Final = (
    "SELECT e.position, s.version FROM session s JOIN event e ON e.session_key = s.key"
    " WHERE s.id = ? ORDER BY e.position"
)


def _places(path: str, session: str) -> Places:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(PLACES, (session,)).fetchall()


def _final_log(places: Places, session: str, store: SqlRepository) -> FinalLog:
    entries = (recorded(event) for event in store.events(session))
    placed = tuple(
        LogEntry(entry.id, entry.digest, position) for entry, (position, _) in zip(entries, places, strict=True)
    )
    return FinalLog(places[0][1] if places else 0, placed)
