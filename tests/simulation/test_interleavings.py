"""Two calls at once, in every order of their statements, ended and crashed: as if one had followed the other (R-6)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.faults.operations import NOW, batch, clock, log
from tests.faults.stores import Dump, copied, dump
from tests.simulation.test_mutants import no_lock
from turnlog.errors import BrokenInvariantError, TurnlogError
from turnlog.log.event_filter import EventFilter
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.changes import SessionChange
from turnlog.storage.protocol import Turn
from turnlog.storage.sql import SqlRepository
from turnlog.storage.sql import statements as sql
from turnlog.storage.sql.drivers.sqlite import SqliteDriver, SqliteOptions
from turnlog.testing import factories
from turnlog.testing.simulation.exploring import CRASHED, Ending, StoreCall, explore
from turnlog.testing.simulation.operations import Refusal, answer_of


class Pair(NamedTuple):
    name: str
    first: StoreCall
    second: StoreCall


def append(first: int, count: int = 1, session: str = "s", **conditions: Any) -> StoreCall:
    events = [factories.user(n, session_id=session) for n in range(first, first + count)]
    return lambda store: store.append(session, events, **conditions)


def clear(store: SqlRepository) -> Any:
    return store.append("s", [factories.boundary(12, (), strategy="clear")], expected_version=11)


def read_twice(store: SqlRepository) -> Any:
    return [answer_of(store.events("s", EventFilter.active())), store.version("s")]


PAIRS: Final = (
    Pair("append x append", append(12), append(20, 2)),
    Pair("append x append, both expecting", append(12, expected_version=11), append(20, expected_version=11)),
    Pair("append x the same append", append(12, 2), append(12, 2)),
    Pair("append x part of the same", append(12, 2), append(12, 1)),
    Pair("append x clear", append(12), clear),
    Pair("append x delete", append(12), lambda store: store.delete("s")),
    Pair("append x sweep", append(1, session="old-1"), lambda store: store.delete_expired(NOW)),
    Pair("append x fork", append(12), lambda store: store.fork("s", factories.session("fork"))),
    Pair("append x take_turn", append(12), lambda store: store.take_turn("s", Turn("mine"))),
    Pair("append x update", append(12), lambda store: store.update("s", SessionChange(set={"a": 1}))),
    Pair(
        "create x create",
        lambda store: store.create(factories.session("new", metadata={"by": 1})),
        lambda store: store.create(factories.session("new", metadata={"by": 2})),
    ),
    Pair(
        "create over remains x sweep",
        lambda store: store.create(factories.session("old-1", metadata={"by": 1})),
        lambda store: store.delete_expired(NOW),
    ),
    Pair(
        "update x update",
        lambda store: store.update("s", SessionChange(set={"a": 1})),
        lambda store: store.update("s", SessionChange(set={"b": 2}, principal="q")),
    ),
    Pair(
        "take_turn x take_turn",
        lambda store: store.take_turn("s", Turn("mine")),
        lambda store: store.take_turn("s", Turn("yours")),
    ),
    Pair(
        "restore x append",
        lambda store: store.restore(factories.session("s"), iter([*log(), batch(30)])),
        append(12),
    ),
)


class Serial(NamedTuple):
    """What the calls come to one after the other."""

    told: tuple[Any, ...]
    state: Dump


def serials(pair: Pair, template: Path, path: Path) -> list[Serial]:
    """Both orders; and each call without the other, which is told to have crashed."""
    found: list[Serial] = []
    for order in ((0, 1), (1, 0), (0,), (1,)):
        told: list[Any] = [CRASHED, CRASHED]
        copied(template, path)
        for index in order:
            told[index] = told_by(path, pair[index + 1])
        found.append(Serial(tuple(told), dump(path)))
    return found


def told_by(path: Path, call: Any) -> Any:
    driver = SqliteDriver(SqliteOptions(path=str(path), synchronous="OFF", unsafe=True))
    with SqlRepository(driver, clock(), token_counter=EstimatedTokens()) as store:
        try:
            return plain(call(store))
        except TurnlogError as error:
            return plain(error)


def plain(told: Any) -> Any:
    return Refusal.of(told) if isinstance(told, TurnlogError) else answer_of(told)


def is_serial(ending: Ending, state: Dump, serial: list[Serial]) -> bool:
    """Whether the state and what was told agree with some order; a crashed call may have taken effect or not."""
    told = tuple(map(plain, ending.told))
    return any(
        state == each.state and all(mine in (theirs, CRASHED) for mine, theirs in zip(told, each.told, strict=True))
        for each in serial
    )


def check(pair: Pair, template: Path, path: Path, *, crashes: bool) -> int:
    serial = serials(pair, template, path)
    count = 0
    for ending in explore(lambda: copied(template, path), pair[1:], clock(), crashes=crashes):
        count += 1
        state = dump(path)
        assert is_serial(ending, state, serial), (ending.schedule, ending.told)
        if CRASHED in ending.told:
            again_after_a_crash(pair, ending, path, serial)
    return count


def again_after_a_crash(pair: Pair, ending: Ending, path: Path, serial: list[Serial]) -> None:
    """Made again, the call that was lost ends as if it had been made once, or is told that it was."""
    lost = ending.told.index(CRASHED)
    told_by(path, pair[lost + 1])
    assert dump(path) in [each.state for each in serial[:2]], ending.schedule


@pytest.mark.slow
@pytest.mark.timeout(300)  # thousands of runs, and the machine may be busy
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_every_interleaving_is_an_order(pair: Pair, template: Path, folder: Path) -> None:
    assert check(pair, template, folder / "interleaved.db", crashes=False) > 10


@pytest.mark.slow
@pytest.mark.timeout(300)  # the same
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_so_is_every_interleaving_with_a_crash_anywhere(pair: Pair, template: Path, folder: Path) -> None:
    assert check(pair, template, folder / "interleaved.db", crashes=True) > 50


def test_a_read_is_one_snapshot_in_every_interleaving_with_an_append(template: Path, folder: Path) -> None:
    path = folder / "interleaved.db"
    seen = {
        len(answer_of(ending.told[1]))
        for ending in explore(lambda: copied(template, path), (append(12, 3), lambda store: store.events("s")), clock())
    }
    assert seen == {11, 14}


@pytest.mark.parametrize("name", ["update x update", "take_turn x take_turn", "append x the same append"])
def test_without_the_lock_some_interleaving_is_no_order(
    name: str, template: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = next(pair for pair in PAIRS if pair.name == name)
    path = folder / "interleaved.db"
    serial = serials(pair, template, path)
    no_lock(monkeypatch)
    assert not all(
        is_serial(ending, dump(path), serial) for ending in explore(lambda: copied(template, path), pair[1:], clock())
    )


@pytest.mark.parametrize("checks_version", [True, False])
def test_where_the_lock_does_not_hold_the_version_check_keeps_the_log_whole(
    template: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, *, checks_version: bool
) -> None:
    """R-14: checked inside the write, never read and then trusted. The unique keys, the second net, are taken away."""
    path = folder / "interleaved.db"
    bare = without_unique_keys(copied(template, folder / "bare.db"))
    no_lock(monkeypatch)
    if not checks_version:
        monkeypatch.setattr(sql, "MOVE_HEAD", sql.MOVE_HEAD.replace("AND version = ?", "AND ? IS NOT NULL"))
    broken = refused = 0
    for ending in explore(lambda: copied(bare, path), (append(12), append(20, 2)), clock()):
        positions = [row[0] for row in rows_of(path)]
        broken += positions != list(range(1, len(positions) + 1))
        refused += any(isinstance(told, BrokenInvariantError) for told in ending.told)
    assert (broken == 0, refused > 0) == (checks_version, checks_version)


def without_unique_keys(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        text: str = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'event'").fetchone()[0]
        head, _, _ = text.partition("PRIMARY KEY (session_key, position)")
        connection.execute("ALTER TABLE event RENAME TO event_before")
        connection.execute(f"{head.rstrip().removesuffix(',')})")
        connection.execute("INSERT INTO event SELECT * FROM event_before")
        connection.execute("DROP TABLE event_before")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def rows_of(path: Path) -> list[tuple[int]]:
    query = "SELECT position FROM event WHERE session_key = (SELECT key FROM session WHERE id = 's') ORDER BY position"
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()
