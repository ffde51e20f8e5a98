"""Record what was asked of a store and what it answered, then decide whether the answers can all be true.

A test gives each of its workers a `HistoryRecorder`, which writes down every call before it is made, and its outcome
when it is there::

    recorder = HistoryRecorder("worker-3.jsonl", process="worker-3")
    with recorder.append("session", [recorded_event(event)], expected_version=7) as call:
        try:
            result = store.append("session", [event], expected_version=7)
            call.ok(result.events[0].position, result.events[-1].position, replay=result.is_replay)
        except VersionConflictError as conflict:
            call.conflict(conflict.actual)

Afterwards `check_history(load_history("worker-3.jsonl", …), {"session": FinalLog.of(…)})` lists the properties that the
history lacks, each with the calls that show it; `PROPERTIES` says what they are. `python -m turnlog.testing.history`
does the same with recorded files.
"""

from __future__ import annotations

from turnlog.testing.history.checker import check_history
from turnlog.testing.history.logs import final_logs, load_final_logs
from turnlog.testing.history.properties import PROPERTIES, Violation
from turnlog.testing.history.recorder import Call, HistoryFormatError, HistoryRecorder, load_history, recorded_event
from turnlog.testing.history.records import (
    Absent,
    Conflict,
    Done,
    Failed,
    FinalLog,
    Kind,
    LogEntry,
    Ok,
    Operation,
    Outcome,
    RecordedEvent,
    Seen,
    Unknown,
    Window,
    content_digest,
)

__all__ = [
    "PROPERTIES",
    "Absent",
    "Call",
    "Conflict",
    "Done",
    "Failed",
    "FinalLog",
    "HistoryFormatError",
    "HistoryRecorder",
    "Kind",
    "LogEntry",
    "Ok",
    "Operation",
    "Outcome",
    "RecordedEvent",
    "Seen",
    "Unknown",
    "Violation",
    "Window",
    "check_history",
    "content_digest",
    "final_logs",
    "load_final_logs",
    "load_history",
    "recorded_event",
]
