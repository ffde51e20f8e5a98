"""Two calls at once on a server, in every order of their statements, its own locks between them (R-6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any, Final

import pytest

from tests.faults.operations import Words
from tests.postgres.states import Database
from tests.postgres.stepping import Program, Run, fresh
from tests.simulation.test_interleavings import PAIRS, Pair, Serial, append, is_serial, plain
from turnlog.errors import BrokenInvariantError, SessionNotFoundError, TurnlogError
from turnlog.storage.changes import SessionChange
from turnlog.storage.sql import SqlRepository
from turnlog.storage.sql import statements as sql
from turnlog.storage.sql.drivers.postgres import _sync
from turnlog.storage.sql.drivers.postgres.dialect import for_server
from turnlog.testing import factories
from turnlog.testing.simulation.exploring import CRASHED, Ending, Move, explore_runs
from turnlog.testing.simulation.operations import answer_of

pytestmark = [pytest.mark.store, pytest.mark.slow]

NAMED = ("append x append", "append x clear", "append x delete", "create x create")
ORDINARY = [pair for pair in PAIRS if pair.name in NAMED]
OTHERS = [pair for pair in PAIRS if pair.name not in NAMED]


#: Batches take two steps each, and more when they wait.
BATCHES = Pair("batch x batch", append(12, 2), append(20, 3))


#: An index that is filled while sessions come and change: none of them may be left out of it.
FILLING = (
    Pair(
        "fill_index x create",
        lambda store: store.fill_index("team"),
        lambda store: store.create(factories.session("new", metadata={"team": "blue"})),
    ),
    Pair(
        "fill_index x update",
        lambda store: store.fill_index("team"),
        lambda store: store.update("s", SessionChange(set={"team": "blue"})),
    ),
)


#: More than a call takes.
_MOST_STEPS: Final = 12


@pytest.fixture(scope="module")
def pair_of_programs(admin_url: str) -> Iterator[tuple[Database, list[Program]]]:
    with fresh(admin_url) as made:
        yield made


@pytest.fixture
def prepared(pair_of_programs: tuple[Database, list[Program]]) -> Database:
    return pair_of_programs[0]


@pytest.fixture
def programs(pair_of_programs: tuple[Database, list[Program]]) -> list[Program]:
    return pair_of_programs[1]


def serials(pair: Pair, database: Database, program: Program) -> list[Serial]:
    """Both orders; and each call without the other, which is told to have crashed."""
    found: list[Serial] = []
    for order in ((0, 1), (1, 0), (0,), (1,)):
        told: list[Any] = [CRASHED, CRASHED]
        database.reset()
        for index in order:
            told[index] = told_by(program, pair[index + 1])
        found.append(Serial(tuple(told), database.dump()))
    return found


def told_by(program: Program, call: Any) -> Any:
    try:
        return plain(call(program.store))
    except TurnlogError as error:
        return plain(error)


def endings(pair: tuple[Any, Any], database: Database, programs: list[Program], *, crashes: bool) -> Iterator[Ending]:
    def begin() -> Run:
        database.reset()
        return Run(programs, pair, crashes=crashes)

    return explore_runs(begin)


def ending_of(
    turns: Iterable[tuple[int, int]], pair: tuple[Any, Any], database: Database, programs: list[Program]
) -> Ending:
    """The programs take so many steps each, in turn, or fewer where they have to wait; then both go on to their end."""
    database.reset()
    run, schedule = Run(programs, pair, crashes=False), list[Move]()
    wanted = [Move("step", program) for program, steps in turns for _ in range(steps)]
    for move in wanted:
        if move in run.moves():
            schedule.append(move)
            run.make(move)
    while moves := run.moves():
        run.make(moves[0])
    assert run.has_ended()
    run.end()
    return Ending(tuple(schedule), tuple(run.told))


def check(pair: Pair, database: Database, programs: list[Program], *, crashes: bool) -> int:
    serial = serials(pair, database, programs[0])
    found = 0
    for ending in endings(pair[1:], database, programs, crashes=crashes):
        found += 1
        state = database.dump()
        assert is_serial(ending, state, serial), (ending.schedule, ending.told)
        assert not database.open_transactions()
        if CRASHED in ending.told:
            lost = ending.told.index(CRASHED)
            told_by(programs[0], pair[lost + 1])
            assert database.dump() in [each.state for each in serial[:2]], ending.schedule
    return found


@pytest.mark.parametrize("pair", [BATCHES, *ORDINARY, *FILLING], ids=lambda pair: pair.name)
def test_every_interleaving_is_an_order(pair: Pair, prepared: Database, programs: list[Program]) -> None:
    assert check(pair, prepared, programs, crashes=False) > 5


def test_so_is_every_interleaving_with_a_crash_anywhere(prepared: Database, programs: list[Program]) -> None:
    pair = Pair("batch x append", append(12, 2), append(20))
    assert check(pair, prepared, programs, crashes=True) > 20


@pytest.mark.soak
@pytest.mark.parametrize("crashes", [False, True])
@pytest.mark.parametrize("pair", [BATCHES, *ORDINARY, *FILLING, *OTHERS], ids=lambda pair: pair.name)
def test_every_pair_of_calls(pair: Pair, prepared: Database, programs: list[Program], *, crashes: bool) -> None:
    assert check(pair, prepared, programs, crashes=crashes) > 5


def test_a_read_is_one_snapshot_in_every_interleaving_with_an_append(
    prepared: Database, programs: list[Program]
) -> None:
    pair = (append(12, 3), lambda store: store.events("s"))
    seen = {len(answer_of(ending.told[1])) for ending in endings(pair, prepared, programs, crashes=False)}
    assert seen == {11, 14}


def test_a_restore_into_a_session_that_is_made_meanwhile_is_stored(prepared: Database, programs: list[Program]) -> None:
    pair = Pair(
        "restore x create",
        lambda store: store.restore(factories.session("new"), iter([[factories.user(1, session_id="new")]])),
        lambda store: store.create(factories.session("new")),
    )
    serial = serials(pair, prepared, programs[0])
    for steps in range(_MOST_STEPS):
        ending = ending_of([(0, steps), (1, _MOST_STEPS)], pair[1:], prepared, programs)
        assert is_serial(ending, prepared.dump(), serial), (ending.schedule, ending.told)


def test_an_update_of_a_session_that_is_made_meanwhile_undoes_no_other(
    prepared: Database, programs: list[Program]
) -> None:
    def make_and_update(store: SqlRepository) -> None:
        store.create(factories.session("new"))
        store.update("new", SessionChange(set={"second": 2}))

    pair = (lambda store: store.update("new", SessionChange(set={"first": 1})), make_and_update)
    for made, looked in product(range(5, 8), range(1, 4)):
        ending = ending_of([(0, 2), (1, made), (0, looked), (1, _MOST_STEPS)], pair, prepared, programs)
        kept = programs[0].store.find("new")
        assert kept is not None
        told = {} if isinstance(ending.told[0], SessionNotFoundError) else {"first": 1}
        assert kept.metadata == {**told, "second": 2}, ending.schedule


def test_a_tally_of_a_session_that_is_deleted_meanwhile_is_told(prepared: Database, programs: list[Program]) -> None:
    pair = (lambda store: store.tally("s", Words()), lambda store: store.delete("s"))
    for steps in range(_MOST_STEPS):
        tally, deleted = ending_of([(0, steps), (1, _MOST_STEPS)], pair, prepared, programs).told
        assert deleted
        assert tally is None or tally.version == 11


def test_without_the_lock_some_interleaving_is_no_order(
    prepared: Database, programs: list[Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests bite: without the row's lock, what was read before may have changed."""
    serial = serials(BATCHES, prepared, programs[0])
    no_lock(monkeypatch)
    assert not all(
        is_serial(ending, prepared.dump(), serial) for ending in endings(BATCHES[1:], prepared, programs, crashes=False)
    )


def no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sync, "for_server", lambda text: for_server(text.replace("/*FOR UPDATE*/", "")))


@pytest.mark.parametrize("checks_version", [True, False])
def test_where_the_lock_does_not_hold_the_version_check_keeps_the_log_whole(
    admin_url: str, monkeypatch: pytest.MonkeyPatch, *, checks_version: bool
) -> None:
    """R-14: checked inside the write, never read and then trusted. The unique keys, the second net, are taken away."""
    no_lock(monkeypatch)
    if not checks_version:
        whole = sql.move_and_add
        monkeypatch.setattr(
            sql, "move_and_add", lambda count: whole(count).replace(" AND version = ?", " AND CAST(? AS BIGINT) >= 0")
        )
    broken = refused = 0
    with fresh(admin_url) as (database, programs):
        for key in ("event_pkey", "event_session_key_event_id_key"):
            database.connection.execute(f"ALTER TABLE event DROP CONSTRAINT {key}".encode())
        for ending in endings(BATCHES[1:], database, programs, crashes=False):
            positions = [row[1] for row in database.dump()["event"]]
            broken += sorted(positions) != list(range(1, len(positions) + 1))
            refused += any(isinstance(told, BrokenInvariantError) for told in ending.told)
    assert (broken == 0, refused > 0) == (checks_version, checks_version)
