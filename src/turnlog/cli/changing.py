"""``fork``, ``rewind``, ``clear``, ``delete`` and ``sweep``: what changes a store."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from turnlog.cli.escaping import printable
from turnlog.cli.options import JsonOption, SessionArgument, StoreOption, YesOption, read_duration, read_time
from turnlog.cli.stores import existing_service
from turnlog.cli.terminal import print_json, print_line, say
from turnlog.errors import InvalidValueError, SessionNotFoundError

AtOption = Annotated[
    int | None, typer.Option("--at", metavar="VERSION", help="Copy up to this version.", show_default=False)
]


def fork(
    session: SessionArgument,
    new_session: Annotated[
        str | None, typer.Argument(metavar="NEW", help="The new session's id; one is made if none is given.")
    ] = None,
    at: AtOption = None,
    store: StoreOption = None,
) -> None:
    """Copy a session, up to a version of it, into a new one."""
    with existing_service(store) as service:
        target = service.fork(session, new_session, at=at)
        print_line(f"{target.id}: {service.version(target.id):,} events from {session}")


def rewind(
    session: SessionArgument,
    version: Annotated[int, typer.Argument(metavar="VERSION", help="The version whose view comes back.", min=0)],
    store: StoreOption = None,
) -> None:
    """Make the view what it was at a version. The log stays: this can be rewound too."""
    with existing_service(store) as service:
        boundary = service.rewind(session, version)
        print_line(
            f"{session}: rewound, version {boundary.position}; to undo it: rewind to {(boundary.position or 1) - 1}"
        )


def clear(session: SessionArgument, store: StoreOption = None) -> None:
    """Empty the view, but for the stored system message. The log stays: this can be rewound."""
    with existing_service(store) as service:
        boundary = service.clear(session)
        print_line(
            f"{session}: cleared, version {boundary.position}; to undo it: rewind to {(boundary.position or 1) - 1}"
        )


def delete(
    sessions: Annotated[list[str], typer.Argument(metavar="SESSION...", help="The sessions' ids.")],
    yes: YesOption = False,
    store: StoreOption = None,
) -> None:
    """Remove sessions and their logs for good."""
    with existing_service(store) as service:
        missing = [session for session in sessions if service.find(session) is None]
        if missing:
            raise SessionNotFoundError(missing[0])
        if not yes:
            _confirm(f"Remove {', '.join(sessions)} for good?")
        for session in sessions:
            if service.delete(session):
                print_line(f"{session}: deleted")


def is_asked_at_a_terminal() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty()


def _confirm(question: str) -> None:
    if not is_asked_at_a_terminal():
        raise InvalidValueError("deleting is for good: say --yes where nobody can be asked")
    sys.stderr.write(f"{printable(question)} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        say("nothing was deleted")
        sys.exit(1)


def sweep(
    every: Annotated[
        str | None,
        typer.Option("--every", metavar="DURATION", help="Go on, at this distance: 60, 5m, 1h.", show_default=False),
    ] = None,
    before: Annotated[
        str | None,
        typer.Option("--before", metavar="TIME", help="Only what expired up to this time.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Remove the sessions that have expired. They are gone for readers already; this frees their room."""
    pause = None if every is None else read_duration(every)
    end = read_time(before, "--before")
    with existing_service(store) as service:
        if pause is not None:
            say(f"sweeping every {pause}; stop with Ctrl-C")
        while True:
            removed = service.delete_expired(end)
            if as_json:
                print_json({"removed": removed, "at": service.repository.clock()})
            elif removed or pause is None:
                print_line(f"{removed:,} expired sessions removed")
            if pause is None:
                return
            sys.stdout.flush()
            time.sleep(pause.total_seconds())
