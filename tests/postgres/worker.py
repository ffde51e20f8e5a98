"""What a worker process does: ``python -m tests.postgres.worker ROLE ARGUMENTS``; see ``tests.concurrency``."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import msgspec

from tests.concurrency.stores import opened, opened_async
from tests.concurrency.worker import hear, say
from tests.postgres.releases import next_release
from turnlog.errors import TurnlogError
from turnlog.storage.sql.drivers.postgres import PostgresOptions
from turnlog.storage.sql.drivers.postgres.migrating import migrate
from turnlog.testing.history import HistoryRecorder
from turnlog.testing.races import RaceReport, Workload, race, race_in_task


def run_migrating(url: str, step: str | None = None) -> None:
    """Migrate as soon as the test says so, to the next release if there is a ``step`` to it."""
    say("ready")
    hear()
    try:
        if step is None:
            taken = migrate(PostgresOptions(conninfo=url))
        else:
            with next_release(step):
                taken = migrate(PostgresOptions(conninfo=url))
    except TurnlogError as error:
        say(repr(error))
    else:
        say([migration.number for migration in taken])


def run_crowd(url: str, history: str, workloads: list[dict[str, Any]]) -> None:
    """Half of the workloads in threads, half in tasks of one loop, on one store of each colour."""
    raced = msgspec.convert(workloads, list[Workload])
    in_threads, in_tasks = raced[::2], raced[1::2]
    with opened(url) as store, HistoryRecorder(history) as recorder, ThreadPoolExecutor(len(in_threads) + 1) as pool:
        say("ready")
        hear()
        tasks = pool.submit(lambda: asyncio.run(race_tasks(url, recorder, in_tasks)))
        reports = list(pool.map(partial(race, store, recorder), in_threads)) + tasks.result()
    say(msgspec.to_builtins(reports))


async def race_tasks(url: str, recorder: HistoryRecorder, workloads: list[Workload]) -> list[RaceReport]:
    async with opened_async(url) as store:
        return await asyncio.gather(*(race_in_task(store, recorder, workload) for workload in workloads))


ROLES: Final[dict[str, Callable[..., Any]]] = {"crowd": run_crowd, "migrate": run_migrating}

if __name__ == "__main__":
    ROLES[sys.argv[1]](**json.loads(sys.argv[2]))
