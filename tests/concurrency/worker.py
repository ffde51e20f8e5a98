"""What a worker process does: ``python -m tests.concurrency.worker ROLE ARGUMENTS``; its other end is ``processes``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, Final

import msgspec

from tests.concurrency.nets import without_nets
from tests.concurrency.stores import opened
from turnlog import SessionService
from turnlog.compaction import SummarizingCompactionStrategy, SummaryRequest, WindowCompactionStrategy
from turnlog.errors import SessionAlreadyExistsError, TurnlogError
from turnlog.storage.changes import SessionChange
from turnlog.testing import factories
from turnlog.testing.history import HistoryRecorder
from turnlog.testing.races import Workload, race


def say(message: Any) -> None:
    """Say something to the test."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def hear() -> Any:
    """What the test says; None when it says no more."""
    line = sys.stdin.readline()
    return json.loads(line) if line else None


def run_race(url: str, history: str, workload: dict[str, Any]) -> None:
    """Race as soon as the test says so, and say how it went."""
    with opened(url) as store, HistoryRecorder(history) as recorder:
        say("ready")
        hear()
        report = race(store, recorder, msgspec.convert(workload, Workload))
    say(msgspec.to_builtins(report))


def run_race_without_nets(url: str, history: str, workload: dict[str, Any]) -> None:
    """The same without lock, version check and unique keys, in step with the other workers."""

    def meet() -> None:
        say("meet")
        hear()

    with without_nets(meet):
        run_race(url, history, workload)


def run_opening(name: str) -> None:
    """Open each store that is named, the first who does or not, and use it."""
    say("ready")
    while url := hear():
        try:
            with opened(url) as store:
                store.create(factories.session(name))
                store.append(name, [factories.user(1, session_id=name)])
            say("ok")
        except (TurnlogError, OSError) as error:
            say(repr(error))


def run_creating(url: str, name: str) -> None:
    """Create each session that is named, unless somebody else has."""
    with opened(url) as store:
        say("ready")
        while session_id := hear():
            try:
                store.create(factories.session(session_id, metadata={"creator": name}))
                say("won")
            except SessionAlreadyExistsError:
                say("lost")


def run_updating(url: str, session_id: str, name: str, updates: int) -> None:
    """Set keys of its own one after the other, unsetting every second again, each in an update of its own."""
    with opened(url) as store:
        say("ready")
        hear()
        for number in range(updates):
            store.update(session_id, SessionChange(set={f"{name}-{number}": number}))
            if number % 2:
                store.update(session_id, SessionChange(unset=[f"{name}-{number}"]))
        say("done")


def run_compacting(url: str, session_id: str) -> None:
    """Compact when told to, in step with the others while the summary is being made; then say how it went."""

    def summarize(_request: SummaryRequest) -> str:
        say("meet")
        hear()
        return "What was said."

    with SessionService(opened(url)) as service:
        strategy = SummarizingCompactionStrategy(summarize, WindowCompactionStrategy(last_turns=1))
        say("ready")
        while hear():
            result = service.compact(session_id, strategy)
            say({"landed": not result.is_unchanged, "reason": result.reason, "version": service.version(session_id)})


ROLES: Final[dict[str, Callable[..., None]]] = {
    "race": run_race,
    "race-without-nets": run_race_without_nets,
    "open": run_opening,
    "create": run_creating,
    "update": run_updating,
    "compact": run_compacting,
}

if __name__ == "__main__":
    ROLES[sys.argv[1]](**json.loads(sys.argv[2]))
