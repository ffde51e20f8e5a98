"""What a worker process does: ``python -m tests.postgres.worker ROLE ARGUMENTS``; see ``tests.concurrency``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, Final

from tests.concurrency.worker import hear, say
from tests.postgres.releases import next_release
from turnlog.errors import TurnlogError
from turnlog.storage.sql.drivers.postgres import PostgresOptions
from turnlog.storage.sql.drivers.postgres.migrating import migrate


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


ROLES: Final[dict[str, Callable[..., Any]]] = {"migrate": run_migrating}

if __name__ == "__main__":
    ROLES[sys.argv[1]](**json.loads(sys.argv[2]))
