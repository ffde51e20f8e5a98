"""The end of a run: the file against the model, row by row and read by read, and the history against the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
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
from turnlog.testing.simulation.operations import Refusal, answer_of, recorded
from turnlog.testing.simulation.world import World


def faults_of(world: World) -> Iterator[str]:
    """What is wrong when all is quiet; nothing if the store has converged with the model and the history is right."""
    for program in world.programs:
        if program.process is not None and program.process.open_transactions():
            yield f"{program.name} has left a transaction open"
    yield from _damage(world.path)
    driver = SqliteDriver(SqliteOptions(path=world.path))
    with SqlRepository(driver, world.clock, token_counter=EstimatedTokens()) as store:
        yield from _differences(world, store)
        final = {session: _final_log(world.path, session, store) for session in LASTING}
    yield from _violations(world, final)


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
    listed, expected = store.list(principal="p").sessions, model.list(principal="p").sessions
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


def _final_log(path: str, session: str, store: SqlRepository) -> FinalLog:
    """The log as its rows are: positions and version told by different tables (P1)."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT e.position, s.version FROM session s JOIN event e ON e.session_key = s.key"
            " WHERE s.id = ? ORDER BY e.position",
            (session,),
        ).fetchall()
    entries = (recorded(event) for event in store.events(session))
    placed = tuple(LogEntry(entry.id, entry.digest, row[0]) for entry, row in zip(entries, rows, strict=True))
    return FinalLog(rows[0][1] if rows else 0, placed)


def _violations(world: World, final: Mapping[str, FinalLog]) -> Iterator[str]:
    for violation in check_history(world.history, final):
        yield str(violation)
