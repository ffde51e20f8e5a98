"""A worker at work on a store: the calls of its workload, recorded."""

from __future__ import annotations

import asyncio

from turnlog.errors import EventContentConflictError, PartialReplayError, TurnlogError, VersionConflictError
from turnlog.log.event_filter import EventFilter
from turnlog.storage.protocol import AsyncSessionRepository
from turnlog.testing.history import (
    Conflict,
    Failed,
    FinalLog,
    HistoryRecorder,
    LogEntry,
    Ok,
    Outcome,
    Seen,
    Unknown,
    recorded_event,
)
from turnlog.testing.races.workload import AppendStep, RaceReport, ReadStep, Step, Workload, report_of, steps

#: A worker that meets so many errors gives up: the race is lost already.
_MOST_ERRORS = 20


async def race_in_task(repository: AsyncSessionRepository, recorder: HistoryRecorder, workload: Workload) -> RaceReport:
    """Run the workload and record every call under the worker's name.

    Errors that no store should give are in the report, and such a call counts as one without an answer.
    """
    own = recorder.worker(workload.name)
    plan = steps(workload)
    step = next(plan)
    ended: list[tuple[Step, Outcome]] = []
    errors = 0
    while errors < _MOST_ERRORS:
        outcome = await _perform(repository, own, step)
        ended.append((step, outcome))
        errors += isinstance(outcome, Unknown)
        await asyncio.sleep(0)  # a store that never waits would run alone
        try:
            step = plan.send(outcome)
        except StopIteration:
            break
    return report_of(ended)


async def _perform(repository: AsyncSessionRepository, recorder: HistoryRecorder, step: Step) -> Outcome:
    if isinstance(step, ReadStep):
        return await _read(repository, recorder, step)
    return await _append(repository, recorder, step)


async def _append(repository: AsyncSessionRepository, recorder: HistoryRecorder, step: AppendStep) -> Outcome:
    events, expected = list(map(recorded_event, step.events)), step.expected_version
    call = recorder.append(step.session, events, expected_version=expected)
    outcome: Outcome
    try:
        result = await repository.append(step.session, step.events, expected_version=expected)
        positions = [event.position or 0 for event in result.events]
        outcome = Ok(positions[0], positions[-1], result.is_replay)
    except VersionConflictError as conflict:
        outcome = Conflict(conflict.actual)
    except (EventContentConflictError, PartialReplayError) as error:
        outcome = Failed(type(error).__name__) if step.sure_to_fail else Unknown(repr(error))
    except TurnlogError as error:
        outcome = Unknown(repr(error))
    call.ended(outcome)
    return outcome


async def _read(repository: AsyncSessionRepository, recorder: HistoryRecorder, step: ReadStep) -> Outcome:
    call = recorder.read(step.session, window=step.window)
    outcome: Outcome
    try:
        if step.filter is None:
            outcome = Seen(version=await repository.version(step.session))
        else:
            events = await repository.events(step.session, step.filter)
            outcome = Seen(tuple(map(recorded_event, events)), positions=tuple(event.position or 0 for event in events))
    except TurnlogError as error:
        outcome = Unknown(repr(error))
    call.ended(outcome)
    return outcome


async def final_log_of(repository: AsyncSessionRepository, session: str) -> FinalLog:
    """The session's log as it is now: the version that the store states, and the events with their positions."""
    events = await repository.events(session, EventFilter.all())
    known = map(recorded_event, events)
    entries = tuple(LogEntry(one.id, one.digest, event.position or 0) for one, event in zip(known, events, strict=True))
    return FinalLog(await repository.version(session), entries)
