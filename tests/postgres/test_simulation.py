"""Seeded runs on a server: callers stop before each statement, and the seed decides who goes on and what befalls whom.

The programs, their plans and drivers, the server and its locks are real; simulated is the order of things, and the loss
of connections, answers and whole programs. The history checker has the verdict (P1 to P9, P11, R-3, R-4, R-6, R-14).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any, Final

import pytest

from tests.concurrency.stores import assert_clean, final_logs, violations
from tests.postgres.states import Database
from tests.postgres.stepping import Program
from tests.postgres.test_interleavings import fresh, no_lock
from turnlog.errors import (
    AppendOutcomeUnknownError,
    BrokenInvariantError,
    ConflictError,
    SessionNotFoundError,
    StoreError,
)
from turnlog.log.events import SessionEvent
from turnlog.storage.protocol import AppendResult, SessionRepository
from turnlog.storage.sql import statements as sql
from turnlog.testing import factories
from turnlog.testing.history import HistoryRecorder, Seen, recorded_event
from turnlog.testing.history.recorder import Call
from turnlog.testing.races import Workload, race
from turnlog.testing.simulation.stage import Actor, Stage

pytestmark = [pytest.mark.store, pytest.mark.slow, pytest.mark.timeout(300)]

SESSIONS: Final = ("a", "b")
#: This one comes and goes (P11).
MORTAL: Final = "m"
#: A run that gets on takes no more steps.
_MOST_STEPS: Final = 5_000


def live_and_let_die(store: SessionRepository, recorder: HistoryRecorder, name: str, random: Random) -> None:
    """Make the mortal session, append to it, read it, delete it, in any order, and record what comes of it."""
    own = recorder.worker(name)
    for number in range(random.randint(3, 8)):
        batch = [
            factories.user(0, f"{name} {number} {n}", id=f"{name}-{number}-{n}", session_id=MORTAL)
            for n in range(random.randint(1, 3))
        ]
        match random.choice(("create", "append", "append", "read", "delete")):
            case "create":
                with own.create(MORTAL) as call:
                    noted(call, lambda: store.create(factories.session(MORTAL)))
            case "append":
                with own.append(MORTAL, map(recorded_event, batch)) as call:
                    noted(call, partial(store.append, MORTAL, batch))
            case "read":
                with own.read(MORTAL) as call:
                    noted(call, partial(store.events, MORTAL))
            case _:
                with own.delete(MORTAL) as call:
                    noted(call, partial(store.delete, MORTAL))


def noted(call: Call, ask: Callable[[], Any]) -> None:
    """Make the call and note how it ended; an empty log may be none at all, which is told by nothing."""
    try:
        answer = ask()
    except SessionNotFoundError:
        call.absent()
    except (AppendOutcomeUnknownError, StoreError) as error:
        call.unknown(repr(error))
    except ConflictError as error:
        call.failed(repr(error))
    else:
        match answer:
            case AppendResult():
                positions = [event.position or 0 for event in answer.events]
                call.ok(positions[0], positions[-1], replay=answer.is_replay)
            case []:
                call.failed("empty")
            case list():
                found: list[SessionEvent] = answer
                call.ended(Seen(tuple(map(recorded_event, found)), positions=tuple(e.position or 0 for e in found)))
            case False:
                call.absent()
            case _:
                call.done()


class World:
    """One run. ``befallen`` counts what was lost in it."""

    def __init__(self, database: Database, programs: list[Program], seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - repeatable on purpose
        self._stage = Stage()
        self._database = database
        self._programs = programs
        self._actors: dict[Actor, Program] = {}
        self._recorder = HistoryRecorder()
        self._started = 0
        self._sticky = self._random.random() * 0.9
        self._rate = self._random.choice((0.0, 0.01, 0.05))
        self.befallen = 0

    def run(self) -> None:
        """To the end, and judge it."""
        for session in (*SESSIONS, MORTAL):
            self._programs[0].store.delete(session)
        for session in SESSIONS:
            self._programs[0].store.create(factories.session(session))
        for program in self._programs:
            program.stage = self._stage
            self._start(program)
        last: Actor | None = None
        for _ in range(_MOST_STEPS):
            able = self._able()
            if not able:
                break
            last = last if last in able and self._random.random() < self._sticky else self._random.choice(able)
            self._let_go_on(last)
        for program in self._programs:
            program.stage = None
        assert all(actor.state == "done" for actor in self._actors), f"nobody can go on: {list(self._actors)}"
        assert not self._database.open_transactions()
        assert_clean(violations(self._recorder, final_logs(self._programs[0].store, (*SESSIONS, MORTAL))))

    def _start(self, program: Program) -> None:
        number = self._started
        self._started += 1
        appends = self._random.randint(2, 5)
        seed, is_mortal = self._random.randrange(10**6), self._random.random() < 0.5
        work = Workload(worker=number, workers=8, sessions=SESSIONS, appends=appends, reads=0.5, seed=seed)

        def body() -> None:
            if is_mortal:
                live_and_let_die(program.store, self._recorder, f"mortal-{number}", Random(seed))  # noqa: S311 - repeatable
            else:
                race(program.store, self._recorder, work)

        self._actors[self._stage.start(str(number), body)] = program

    def _able(self) -> list[Actor]:
        waiting = (actor for actor in self._actors if actor.state != "done")
        return [actor for actor in waiting if actor.state == "ready" or actor.may_go_on()]

    def _let_go_on(self, actor: Actor) -> None:
        chance = self._random.random()
        is_due = actor.state == "ready" and actor.at != "begin"
        if not is_due or chance >= self._rate:
            self._stage.resume(actor)
            return
        self.befallen += 1
        match self._random.randrange(3):
            case 0:
                self._lose(actor)
            case 1:
                self._stage.resume(actor, "lost before")
            case _:
                self._stage.resume(actor, "answer lost")

    def _lose(self, actor: Actor) -> None:
        """The program is gone, and another comes in its place."""
        program = self._actors[actor]
        program.die()
        self._stage.kill(actor)
        program.stage = None
        program.store.close()
        program.revive()
        program.stage = self._stage
        if self._started < 8:
            self._start(program)


@pytest.fixture(scope="module")
def made(admin_url: str) -> Iterator[tuple[Database, list[Program]]]:
    with fresh(admin_url, programs=3) as both:
        yield both


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnlog.storage.sql.drivers.postgres._sync._pause", lambda _: 0.0)


def runs(made: tuple[Database, list[Program]], seeds: range) -> int:
    befallen = 0
    for seed in seeds:
        world = World(*made, seed)
        try:
            world.run()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        befallen += world.befallen
    return befallen


@pytest.mark.usefixtures("quick")
def test_the_store_is_right_whatever_befalls_it(made: tuple[Database, list[Program]]) -> None:
    assert runs(made, range(50)) > 10, "the weather is too mild to tell anything"


@pytest.mark.soak
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("first", range(100, 1_100, 100))
def test_the_store_is_right_whatever_befalls_it_for_long(made: tuple[Database, list[Program]], first: int) -> None:
    runs(made, range(first, first + 100))


@pytest.mark.usefixtures("quick")
def test_the_simulation_bites(admin_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its nets (lock, version check, unique keys) the store is wrong, and some seed shows it."""
    no_lock(monkeypatch)
    whole = sql.move_and_add

    def unchecked(count: int) -> str:
        return whole(count).replace(" AND version = ?", " AND CAST(? AS BIGINT) >= 0")

    monkeypatch.setattr(sql, "move_and_add", unchecked)
    with fresh(admin_url, programs=3) as (database, programs):
        for key in ("event_pkey", "event_session_key_event_id_key"):
            database.connection.execute(f"ALTER TABLE event DROP CONSTRAINT {key}".encode())
        with pytest.raises((AssertionError, BrokenInvariantError)):
            runs((database, programs), range(40))
