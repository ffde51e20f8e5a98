"""Seeded runs on a server, its own locks between the programs, judged by the model (R-3, R-4, R-6, R-7, R-14, H-11)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import pytest

from tests.postgres.simulating import MOST_PROGRAMS, simulate
from tests.postgres.states import Database
from tests.postgres.stepping import Program, fresh
from tests.postgres.test_interleavings import no_lock
from tests.simulation import test_mutants as mutants
from turnlog.log.events import SessionEvent
from turnlog.storage.protocol import AppendResult
from turnlog.storage.sql.plans import appending, at_once, finding
from turnlog.storage.sql.plans.plan import Plan
from turnlog.testing.simulation import SimulationError

pytestmark = [pytest.mark.store, pytest.mark.slow, pytest.mark.timeout(300)]

Made: TypeAlias = tuple[Database, list[Program]]

_CHUNK: Final = 20


@pytest.fixture(scope="module")
def made(admin_url: str) -> Iterator[Made]:
    with fresh(admin_url, MOST_PROGRAMS) as both:
        yield both


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnlog.storage.sql.drivers.postgres._sync._pause", lambda _: 0.0)


def run(made: Made, seeds: range) -> int:
    """How much has befallen the programs."""
    return sum(simulate(seed, *made).faults for seed in seeds)


@pytest.mark.parametrize("first", range(0, 120, _CHUNK))
def test_the_store_is_right_whatever_befalls_it(made: Made, first: int) -> None:
    assert run(made, range(first, first + _CHUNK)) > _CHUNK, "the weather is too mild to tell anything"


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1_000, 11_000, 100))
def test_the_store_is_right_whatever_befalls_it_for_long(made: Made, first: int) -> None:
    run(made, range(first, first + 100))


def versions_unchecked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(appending, "check_version", lambda *_: None)


def replays_unchecked(patch: pytest.MonkeyPatch) -> None:
    """What is stored already is refused instead of told again."""
    patch.setattr(appending, "is_replay", lambda *_: False)


def lost_commits_taken_for_stored(patch: pytest.MonkeyPatch) -> None:
    def settle(*given: Any) -> Plan[AppendResult]:
        yield from ()
        batch: tuple[SessionEvent, ...] = given[2]
        placed = tuple(event.at(position) for position, event in enumerate(batch, 1))
        return AppendResult(placed, len(placed), is_replay=True)

    patch.setattr(finding, "settle", settle)


def sessions_do_not_slide(patch: pytest.MonkeyPatch) -> None:
    """Neither by the plan nor by the statement that does without."""
    mutants.sessions_do_not_slide(patch)
    for name in ("APPEND_USER", "APPEND_OTHER", "APPEND_OWN"):
        whole = getattr(at_once, name)
        stays = whole.replace("ELSE GREATEST(s.expires_at, given.now + s.time_to_live)", "ELSE s.expires_at")
        assert stays != whole
        patch.setattr(at_once, name, stays)


#: Each with a seed to begin with, so that it does not take long.
MUTANTS: Final[tuple[tuple[Callable[[pytest.MonkeyPatch], Any], int], ...]] = (
    (no_lock, 5),
    (versions_unchecked, 0),
    (replays_unchecked, 0),
    (mutants.replay_by_id_only, 16),
    (lost_commits_taken_for_stored, 0),
    (sessions_do_not_slide, 50),
    (mutants.expiry_left_to_the_sweep, 5),
    (mutants.leases_without_tokens, 0),
)


@pytest.mark.parametrize(("mutate", "first"), MUTANTS, ids=[mutate.__name__ for mutate, _ in MUTANTS])
def test_some_seed_fails(
    mutate: Callable[[pytest.MonkeyPatch], None], first: int, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    with pytest.raises(SimulationError, match=r"python -m tests\.postgres\.simulating --times 50 --seed \d+$"):
        run(made, range(first, first + 100))
