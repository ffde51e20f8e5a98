"""The strategies make valid values, and do find the rare shapes that they are there for."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

from hypothesis import Phase, given, settings

from turnlog.log.codec import decode_body, encode_body
from turnlog.log.event_filter import EventFilter
from turnlog.log.events import EventType, SessionEvent
from turnlog.log.messages import AssistantMessage, ToolMessage, UserMessage
from turnlog.log.queries import EventQuery
from turnlog.log.turns import turn_starts
from turnlog.log.view import read_boundary
from turnlog.storage.rules import check_batch, check_boundary
from turnlog.testing import strategies

Log = list[SessionEvent]


@given(strategies.batches())
def test_every_batch_can_be_appended_behind_those_before_it(log: list[Log]) -> None:
    version = 0
    for batch in log:
        check_boundary(check_batch("s", batch), version)
        version += len(batch)
    ids = [event.id for batch in log for event in batch]
    assert ids == [f"e{n}" for n in range(1, version + 1)]


@given(strategies.logs(), strategies.filters())
def test_every_filter_can_be_applied_to_every_log(log: Log, filter_: EventFilter) -> None:
    kept = filter_.apply(log)
    assert all(event in log for event in kept)


@given(strategies.queries())
def test_every_query_is_valid(query: EventQuery) -> None:
    assert query.as_filter().event_types == (query.event_types or {EventType.MESSAGE})


@given(strategies.events())
def test_every_event_can_be_stored(event: SessionEvent) -> None:
    body = decode_body(*encode_body(event))
    assert (body.message, body.payload or None) == (event.message, event.payload or None)


def _starts(log: Log) -> list[SessionEvent]:
    return [event for event, starts in zip(log, turn_starts(log), strict=True) if starts]


def _boundaries(log: Log) -> list[SessionEvent]:
    return [event for event in log if event.is_boundary]


def _cuts_a_turn(log: Log) -> bool:
    """A summary keeps the end of a turn without its start."""
    starts = {event.position for event in _starts(log)}
    for event in _boundaries(log):
        position = event.position or 0
        summary = (position + 1, position + 2)
        view = read_boundary(event.payload, position).view
        behind = view[view.index(summary) + 1 :] if summary in view else ()
        if any(low not in starts for low, _ in behind):
            return True
    return False


def _openings_of_one_run(log: Log) -> bool:
    return any(
        isinstance(event.message, UserMessage) and event.run_id and not starts
        for event, starts in zip(log, turn_starts(log), strict=True)
        if event.branch == log[0].branch
    )


def _unordered_view(log: Log) -> bool:
    views = [read_boundary(event.payload, event.position or 0).view for event in _boundaries(log)]
    return any(list(view) != sorted(view) for view in views)


def _parallel_calls(log: Log) -> bool:
    return any(isinstance(event.message, AssistantMessage) and len(event.message.tool_calls) > 1 for event in log)


def _results_together(log: Log) -> bool:
    return any(isinstance(event.message, ToolMessage) and len(event.message.results) > 1 for event in log)


def _shapes(log: Log) -> Iterator[str]:
    starts, times = _starts(log), [event.timestamp for event in log]
    yield "a base branch that is not root" if any(event.branch for event in starts) else ""
    yield "user messages of one run in a row" if _openings_of_one_run(log) else ""
    yield "a preamble" if starts and starts[0] is not log[0] else ""
    yield "a summary that cuts a turn" if _cuts_a_turn(log) else ""
    yield "a view out of order" if _unordered_view(log) else ""
    yield "an own type" if any(event.type in strategies.OWN_TYPES for event in log) else ""
    yield "two boundaries" if len(_boundaries(log)) > 1 else ""
    yield "parallel calls" if _parallel_calls(log) else ""
    yield "results together" if _results_together(log) else ""
    yield "equal timestamps" if len(set(times)) < len(times) else ""
    yield "times that run back" if sorted(times) != times else ""
    yield "three branches" if len({event.branch for event in log}) > 2 else ""
    yield "eight turns" if len(starts) > 7 else ""
    yield "thirty events" if len(log) > 29 else ""
    yield "nothing" if not log else ""


def test_the_rare_shapes_are_frequent() -> None:
    """Each in at least one of a hundred logs, or a run of the property tests may well miss it."""
    found: Counter[str] = Counter()

    @settings(max_examples=200, derandomize=True, database=None, phases=[Phase.generate], deadline=None)
    @given(strategies.logs())
    def look_at_many(log: Log) -> None:
        found.update(_shapes(log))

    look_at_many()
    del found[""]
    assert len(found) == 15
    assert min(found.values()) >= 2, found


def test_without_hypothesis_the_error_names_the_pip_line() -> None:
    program = """
import sys
sys.modules["hypothesis"] = None
from turnlog.testing import strategies
from turnlog.errors import MissingExtraError
try:
    strategies.logs()
except MissingExtraError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert re.search(r"pip install 'turnlog\[testing\]'", run.stdout)
