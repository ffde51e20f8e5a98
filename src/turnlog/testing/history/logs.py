"""The logs that a history ended with: as its last reads show them, or from a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from turnlog.testing.history.recorder import HistoryFormatError
from turnlog.testing.history.records import FOREVER, Absent, FinalLog, Operation, Seen


def final_logs(operations: Iterable[Operation]) -> dict[str, FinalLog]:
    """The log of each session as its last whole read shows it.

    Raises:
        ValueError: a session has no whole read that was called after everything else had come back.
    """
    last: dict[str, Operation] = {}
    quiet_since: dict[str, int] = {}
    for operation in sorted(operations, key=lambda each: each.invoked_ns):
        if operation.kind == "read" and operation.window == "whole" and isinstance(operation.outcome, Seen | Absent):
            last[operation.session] = operation
        elif operation.ended_ns != FOREVER:
            quiet_since[operation.session] = max(quiet_since.get(operation.session, 0), operation.ended_ns)
        else:
            quiet_since.setdefault(operation.session, 0)
    for session, ended in quiet_since.items():
        if session not in last or last[session].invoked_ns < ended:
            raise ValueError(f"no read of the whole session {session!r} after its last call: give the final logs")
    return {session: _shown(read) for session, read in last.items()}


def _shown(read: Operation) -> FinalLog:
    return FinalLog.of(read.outcome.events, read.outcome.version) if isinstance(read.outcome, Seen) else FinalLog()


def load_final_logs(path: Path) -> dict[str, FinalLog]:
    """Final logs from a JSON file, by session: `{"s": {"version": 1, "entries": [{"id", "digest", "position"}]}}`.

    Raises:
        HistoryFormatError: the file holds something else.
        OSError: it cannot be read.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, FinalLog])
    except msgspec.DecodeError as error:
        raise HistoryFormatError(f"{path}: {error}") from error
