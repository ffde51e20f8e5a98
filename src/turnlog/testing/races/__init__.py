"""Race a store for real: workers that append, retry and read at once, and write down all that they were told.

Each worker runs a :class:`Workload`, in a thread, a task or a process of its own; all share a recorder, or a file that
recorders append to. Afterwards `check_history` decides whether the answers can all be true::

    recorder = HistoryRecorder()
    workloads = [Workload(worker=number, workers=8, sessions=("s",)) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        reports = list(pool.map(partial(race, store, recorder), workloads))
    assert not [error for report in reports for error in report.errors]
    assert not check_history(recorder.operations(), {"s": final_log(store, "s")})
"""

from __future__ import annotations

from turnlog.testing.races._async import final_log_of, race_in_task
from turnlog.testing.races._sync import final_log, race
from turnlog.testing.races.workload import AppendStep, RaceReport, ReadStep, Step, Workload, steps

__all__ = [
    "AppendStep",
    "RaceReport",
    "ReadStep",
    "Step",
    "Workload",
    "final_log",
    "final_log_of",
    "race",
    "race_in_task",
    "steps",
]
