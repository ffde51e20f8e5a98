"""The simulation bites: with one safeguard taken out of the store, some seed shows it (R-3, R-4, R-6, R-14, H-11)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest

from turnlog.log.events import SessionEvent
from turnlog.storage.rules import Lease
from turnlog.storage.sql import rows
from turnlog.storage.sql import statements as sql
from turnlog.storage.sql.drivers.sqlite.database import SqliteDatabase
from turnlog.storage.sql.drivers.sqlite.writer import GroupWriter, Job, Transaction
from turnlog.storage.sql.plans import appending, finding
from turnlog.storage.sql.plans.plan import Plan
from turnlog.storage.sql.statements import Rows, Statement
from turnlog.testing.simulation import SimulationError, simulate
from turnlog.testing.simulation.__main__ import main

#: As many seeds as a fault may hide from.
_SEEDS: Final = range(150)


def first_failure() -> SimulationError | None:
    for seed in _SEEDS:
        try:
            simulate(seed)
        except SimulationError as error:
            return error
    return None


def no_lock(patch: pytest.MonkeyPatch) -> None:
    """The lock is taken when the first row is written: what was read before may have changed."""
    execute = SqliteDatabase._execute_writing
    late: set[int] = set()

    def execute_late(self: SqliteDatabase, statement: Statement) -> Rows:
        if statement.sql == "BEGIN IMMEDIATE":
            late.add(id(self))
            return []
        if id(self) in late and statement.sql.startswith(("INSERT", "UPDATE", "DELETE", "SAVEPOINT", "COMMIT")):
            late.discard(id(self))
            execute(self, Statement("BEGIN IMMEDIATE"))
        return execute(self, statement)

    patch.setattr(SqliteDatabase, "_execute_writing", execute_late)


def outcomes_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    """The jobs of a group are told what came of them before it is durable."""
    part = GroupWriter._part
    alone = GroupWriter._commit_alone

    def tell(self: GroupWriter, job: Job[Any]) -> tuple[Any, BaseException | None]:
        job.result, job.error = part(self, job)
        job.is_done = True
        return job.result, job.error

    patch.setattr(GroupWriter, "_part", tell)
    patch.setattr(GroupWriter, "_commit_alone", lambda self, job: None if job.is_done else alone(self, job))


def replay_by_id_only(patch: pytest.MonkeyPatch) -> None:
    def is_replay(batch: Sequence[SessionEvent], stored: dict[str, SessionEvent]) -> bool:
        return all(event.id in stored for event in batch)

    patch.setattr(appending, "is_replay", is_replay)


def partial_replays_accepted(patch: pytest.MonkeyPatch) -> None:
    """A batch of which something is stored is taken for stored."""

    def is_replay(batch: Sequence[SessionEvent], stored: dict[str, SessionEvent]) -> bool:
        for event in batch:
            stored.setdefault(event.id, event.at(1))
        return True

    patch.setattr(appending, "is_replay", lambda batch, stored: bool(stored) and is_replay(batch, stored))


def refused_parts_kept(patch: pytest.MonkeyPatch) -> None:
    """What a refused job of a group has written stays in the group's transaction."""
    patch.setattr(Transaction, "undo", Transaction.keep)


def lost_answers_taken_for_failures(patch: pytest.MonkeyPatch) -> None:
    """A commit that gives an error is taken for one that had no effect."""

    def settle(*_: Any) -> Plan[None]:
        yield from ()

    patch.setattr(finding, "settle", settle)


def sessions_do_not_slide(patch: pytest.MonkeyPatch) -> None:
    def slid_expiry(expires_at: Any, *_: Any) -> Any:
        return expires_at

    patch.setattr(appending, "slid_expiry", slid_expiry)


def expiry_left_to_the_sweep(patch: pytest.MonkeyPatch) -> None:
    """An expired session is there until it is swept."""
    patch.setattr(rows.Head, "is_gone", lambda *_: False)


def leases_without_tokens(patch: pytest.MonkeyPatch) -> None:
    """Who holds the turn is not asked."""

    def lease_after(_: str, lease: Lease, turn: Any, now: Any, *_rest: Any) -> Lease:
        return lease if turn is None else Lease(turn.token, now + turn.lease)

    patch.setattr(appending, "lease_after", lease_after)


def stale_transactions_left_open(patch: pytest.MonkeyPatch) -> None:
    """A connection that could not be rolled back goes on being used."""
    patch.setattr(SqliteDatabase, "_abandon_writing", lambda *_: None)


def sweeps_take_what_is_held(patch: pytest.MonkeyPatch) -> None:
    held = sql.REMOVE_EXPIRED.replace("lease_until <= ?", "? IS NOT NULL")
    assert held != sql.REMOVE_EXPIRED
    patch.setattr(sql, "REMOVE_EXPIRED", held)


MUTANTS: Final[tuple[Callable[[pytest.MonkeyPatch], None], ...]] = (
    no_lock,
    outcomes_before_the_commit,
    replay_by_id_only,
    partial_replays_accepted,
    refused_parts_kept,
    lost_answers_taken_for_failures,
    sessions_do_not_slide,
    expiry_left_to_the_sweep,
    leases_without_tokens,
    stale_transactions_left_open,
    sweeps_take_what_is_held,
)


@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda mutate: mutate.__name__)
def test_some_seed_fails(mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    assert first_failure() is not None


def test_a_failing_seed_is_repeated_by_the_command_that_it_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replay_by_id_only(monkeypatch)
    failure = first_failure()
    assert failure is not None
    command = str(failure).rpartition("python -m turnlog.testing.simulation ")[2]
    assert main(command.split()) == 1
    assert capsys.readouterr().out == f"{failure}\n"
