"""Writes that share a commit, and databases in memory: each call that fails leaves the truth behind (R-14)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final, cast

import pytest

from tests.faults.operations import WRITES, Operation, clock, outcome, prepare
from tests.faults.stores import Dump, copied, dump, is_locked
from turnlog import open_store
from turnlog.errors import AppendOutcomeUnknownError, StoreError, TurnlogError, VersionConflictError
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.sql import SqlRepository
from turnlog.storage.sql.driver import CommitFailedError
from turnlog.storage.sql.drivers.sqlite import SqliteDriver, SqliteOptions
from turnlog.storage.sql.drivers.sqlite.database import SqliteDatabase
from turnlog.storage.sql.plans import appending, sessions
from turnlog.storage.sql.plans.plan import StoreSettings
from turnlog.testing import factories
from turnlog.testing.driver_faults import FAULTS, NthCall, watched

_SETTINGS: Final = StoreSettings(("principal_name",), EstimatedTokens())
_NOW: Final = clock()()


def group() -> list[Any]:
    """The plans of four writes: two that fit, one that is refused, and a deletion."""
    first, other, second = (factories.user(12),), (factories.user(15),), (factories.user(20), factories.user(21))
    return [
        lambda attempt: appending.append("s", first, None, None, _SETTINGS, _NOW, look_first=attempt > 0),
        lambda attempt: appending.append("s", other, 3, None, _SETTINGS, _NOW, look_first=attempt > 0),
        lambda attempt: appending.append("s", second, 12, None, _SETTINGS, _NOW, look_first=attempt > 0),
        lambda _: sessions.delete("held", _NOW),
    ]


def run_group(database: SqliteDatabase, makes: Sequence[Any] | None = None) -> list[Any]:
    """Queue all, complete the first: it leads the others. Each job's result or error."""
    jobs = [database.submit(make) for make in makes or group()]
    told: list[Any] = []
    for job in jobs:
        try:
            told.append(database.complete(job))
        except TurnlogError as error:
            told.append(error)
    return told


def opened(path: Path, fault: NthCall) -> SqliteDatabase:
    """The fault strikes from now on: opening is tested elsewhere."""
    fault.heal()
    database = SqliteDatabase(SqliteOptions(path=str(path), busy_timeout=0), watched(fault))
    fault.arm()
    return database


@pytest.mark.parametrize("kind", FAULTS)
def test_each_write_of_a_failing_group_is_decided_anew(kind: str, template: Path, folder: Path) -> None:
    path = folder / f"group {kind}.db"
    for number in count(1):
        fault = NthCall(number, FAULTS[kind])
        database = opened(copied(template, path), fault)
        told = run_group(database)
        fault.heal()
        assert not is_locked(path)
        state = dump(path)
        positions = {row[1] for row in state["event"]}
        judge(told, state, positions, fault)
        database.close()
        if not fault.struck:
            assert number > (1 if FAULTS[kind].only_commits else 10)
            break


def judge(told: list[Any], state: Dump, positions: set[int], fault: NthCall) -> None:
    """What each job was told is the truth; one fault makes at most one of them fail for certain."""
    first, refused, second, deleted = told
    assert isinstance(refused, (VersionConflictError, StoreError)), refused
    if not isinstance(first, StoreError):
        assert 12 in positions
    if not isinstance(second, (StoreError, VersionConflictError)):
        assert {13, 14} <= positions
    if isinstance(first, StoreError) and not isinstance(first, CommitFailedError):
        assert 12 not in positions or fault.struck == ["BEGIN IMMEDIATE"]
    if deleted is True:
        assert "held" not in {row[1] for row in state["session"]}
    failed = [each for each in told if isinstance(each, StoreError) and not isinstance(each, CommitFailedError)]
    if fault.struck and fault.struck[0] != "BEGIN IMMEDIATE":
        assert len(failed) <= 1, "one failing write has failed its neighbours"


def test_a_group_whose_commit_is_undone_is_stored_all_the_same(template: Path, folder: Path) -> None:
    path = folder / "undone.db"
    fault = NthCall(1, FAULTS["commit undone"])
    database = opened(copied(template, path), fault)
    first, refused, second, deleted = run_group(database)
    assert fault.struck == ["COMMIT"]
    database.close()
    assert (first.version, second.version, deleted) == (12, 14, True)
    assert isinstance(refused, VersionConflictError)


def test_a_lost_answer_to_a_shared_commit_is_in_doubt_and_never_a_refusal(template: Path, folder: Path) -> None:
    path = folder / "lost.db"
    fault = NthCall(1, FAULTS["commit answer lost"])
    database = opened(copied(template, path), fault)
    first, refused, second, deleted = run_group(database)
    database.close()
    # What was stored was stored: an append is then settled by its ids, a deletion that finds nothing is in doubt.
    assert isinstance(first, CommitFailedError)
    assert cast("Any", first.decided).version == 12
    assert isinstance(second, CommitFailedError)
    assert isinstance(refused, VersionConflictError)
    assert isinstance(deleted, CommitFailedError)
    assert {12, 13, 14} <= {row[1] for row in dump(path)["event"]}


def test_a_sweep_whose_answer_is_lost_is_not_told_what_another_one_removed(folder: Path) -> None:
    """It removes as many when it is made anew: others. Found by the simulation, seed 55189."""
    path = folder / "swept.db"
    with open_store(str(path), clock=clock()) as store:
        for number in range(4):
            store.create(factories.session(f"s{number}", expires_at=_NOW))
    database = opened(path, NthCall(1, FAULTS["commit answer lost"]))
    told = run_group(database, [lambda _: sessions.delete_expired(_NOW, _NOW, 1)] * 2)
    database.close()
    assert [type(each) for each in told] == [CommitFailedError, CommitFailedError]
    assert dump(path)["session"] == []


@pytest.mark.parametrize("operation", WRITES, ids=str)
async def test_a_database_in_memory_outlives_its_errors(operation: Operation) -> None:
    """Its one connection holds the data, so it is kept whatever it has suffered."""
    for kind, fault_kind in FAULTS.items():
        if fault_kind.then == "die":
            continue
        for number in count(1):
            fault = NthCall(number, fault_kind)
            fault.heal()
            driver = SqliteDriver(SqliteOptions(path=":memory:"), watched(fault))
            store = SqlRepository(driver, clock(), token_counter=EstimatedTokens())
            prepare(store)
            before = contents(store)
            fault.arm()
            came_of_it = await outcome(store, operation)
            fault.heal()
            certain = not isinstance(came_of_it, (CommitFailedError, AppendOutcomeUnknownError))
            if isinstance(came_of_it, StoreError) and certain and not operation.takes_steps:
                assert contents(store) == before, (kind, number)
            again = await outcome(store, operation)
            assert not isinstance(again, StoreError), (kind, number, again)
            store.close()
            if not fault.struck:
                break


def contents(store: SqlRepository) -> Any:
    found = store.list().sessions
    return [(session, list(store.iter_batches(session.id))) for session in found]
