"""A writing process is killed at a random moment, over and over: what was acknowledged is there, nothing is half there.

Three victims write to one file at any time. After each kill the log of the dead one is compared with what was heard of
it, and another takes its place, beginning with the batch that may or may not have been stored (R-3, R-4, R-14).
"""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from tests.concurrency.processes import WorkerProcess
from tests.concurrency.stores import opened
from tests.concurrency.victim import COMMON
from turnlog.log.event_filter import EventFilter
from turnlog.storage.protocol import SessionRepository
from turnlog.testing import factories

KILLS = 200
AT_ONCE = 3
#: The most acknowledgements that are heard before a kill.
MOST_HEARD = 8


class Victim:
    """What is known of a session that is written to by one victim after the other."""

    def __init__(self, own: str) -> None:
        self.own = own
        self.process = 0
        self.number = 1
        self.version = 0
        self.acknowledged: dict[tuple[str, int], str] = {}

    def hear(self, said: dict[str, Any]) -> None:
        """Something was acknowledged: each event of the batch, at its position."""
        self.number = said["number"] + 1
        self.version = said["version"]
        for index in range(said["size"]):
            event_id = f"{self.own}/{said['number']}/{index}/{said['size']}"
            self.acknowledged[said["session"], said["first"] + index] = event_id


class Killing:
    """The file, those who write to it, and what is heard of them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.path = folder / "killed.db"
        self.url = f"sqlite:{self.path}"
        self.random = random.Random(seed)  # noqa: S311 - which moments, not a secret
        self.victims = {f"victim-{number}": Victim(f"victim-{number}") for number in range(AT_ONCE)}

    def run(self, kills: int) -> None:
        with opened(self.url) as store:
            for session in (COMMON, *self.victims):
                store.create(factories.session(session))
        with WorkerProcess("", module="tests.concurrency.victim") as parent:
            assert parent.hear() == {"ready": True}
            for victim in self.victims.values():
                self.start(parent, victim)
            for _ in range(kills):
                self.kill_one(parent)
            for victim in self.victims.values():
                self.kill(parent, victim)
        self.check_file()

    def start(self, parent: WorkerProcess, victim: Victim, fault: str = "") -> None:
        victim.process = 0
        at = {"number": victim.number, "version": victim.version}
        parent.tell({"url": self.url, "own": victim.own, "fault": fault, **at})
        while not victim.process:
            self.take(parent.hear())

    def take(self, said: dict[str, Any]) -> None:
        if "born" in said:
            self.victims[said["own"]].process = said["born"]
        elif "size" in said:
            self.victims[said["own"]].hear(said)

    def kill_one(self, parent: WorkerProcess) -> None:
        """Hear of a random number of appends, and kill one of the writers in the middle of whatever it is doing."""
        for _ in range(self.random.randrange(MOST_HEARD)):
            self.take(parent.hear())
        victim = self.random.choice(list(self.victims.values()))
        self.kill(parent, victim)
        self.check(victim)
        self.start(parent, victim)

    def kill(self, parent: WorkerProcess, victim: Victim) -> None:
        """Kill it; all that it said comes before the word that it is dead."""
        parent.tell({"kill": victim.process})
        while (said := parent.hear()) != {"killed": victim.process}:
            self.take(said)

    def check(self, victim: Victim) -> None:
        """The dead one's log is whole, though others go on writing to the file."""
        with opened(self.url) as store:
            assert_whole(store, victim.own)
            assert_kept(store, victim)

    def check_file(self) -> None:
        """Nobody writes any more: the file is sound, and can be written to again."""
        with closing(sqlite3.connect(self.path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        with opened(self.url) as store:
            for victim in self.victims.values():
                assert_kept(store, victim)
            for session in (COMMON, *self.victims):
                assert_whole(store, session)
                version = store.version(session)
                again = store.append(session, [factories.user(1, session_id=session)], expected_version=version)
                assert again.version == version + 1


def assert_kept(store: SessionRepository, victim: Victim) -> None:
    """Every acknowledged event is at its position."""
    logs = {session: {event.position: event.id for event in store.events(session)} for session in (victim.own, COMMON)}
    for (session, position), event_id in victim.acknowledged.items():
        assert logs[session].get(position) == event_id, (session, position)


def assert_whole(store: SessionRepository, session: str) -> None:
    """Positions without a gap up to the version of the session's row, every batch whole, a view that can be read."""
    events = store.events(session)
    assert [event.position for event in events] == list(range(1, len(events) + 1))
    assert store.version(session) == len(events)
    parts = [event.id.rsplit("/", 2) for event in events]
    for _, group in groupby(parts, key=lambda part: part[0]):
        members = list(group)
        size = int(members[0][2])
        assert [int(index) for _, index, _ in members] == list(range(size))
    numbers = [batch for batch, index, _ in parts if index == "0"]
    assert len(set(numbers)) == len(numbers)
    store.events(session, EventFilter.active())


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_killed_two_hundred_times(tmp_path: Path) -> None:
    Killing(tmp_path, seed=1).run(KILLS)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_killed_in_many_files(seed: int, tmp_path: Path) -> None:
    Killing(tmp_path, seed).run(5 * KILLS)


@pytest.mark.parametrize("fault", ["acknowledged early", "in parts"])
def test_a_victim_that_does_wrong_is_found_out(fault: str, tmp_path: Path) -> None:
    """Killed between its acknowledgement and its commit, or in the middle of a batch."""
    killing = Killing(tmp_path, seed=1)
    victim = killing.victims["victim-0"]
    with opened(killing.url) as store:
        for session in (COMMON, victim.own):
            store.create(factories.session(session))
    with WorkerProcess("", module="tests.concurrency.victim") as parent:
        assert parent.hear() == {"ready": True}
        killing.start(parent, victim, fault=fault)
        while (said := parent.hear()) != {"waiting": victim.own}:
            killing.take(said)
        killing.kill(parent, victim)
    with pytest.raises(AssertionError):
        killing.check(victim)
