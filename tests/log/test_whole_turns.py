"""Windows keep turns whole (F-5): on real conversations and on generated logs, by ``apply`` and by every store."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings

from tests.log.conversations import conversations
from tests.log.readers import Reader
from tests.log.whole_logs import WholeLog, whole_logs
from tests.log.whole_windows import check_window, pairs
from turnlog.log.event_filter import EventFilter
from turnlog.log.events import SessionEvent
from turnlog.log.messages import Message
from turnlog.testing.factories import event

SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def test_every_window_of_every_real_conversation(reader: Reader, data: Path) -> None:
    """Every n from 1 to length + 1: at a turn start or in the preamble, pairs whole, the shortest of n events."""
    count = events = 0
    for _, messages in conversations(data):
        log = [event(place, message) for place, message in enumerate(messages, 1)]
        starts = {place for place, message in enumerate(messages, 1) if message.type.value == "user"}
        written = reader.write([log])
        order = written.read(EventFilter.all())
        assert order == [made.replace(position=place) for place, made in enumerate(log, 1)]
        for n in range(1, len(order) + 2):
            check_window(written.positions(EventFilter.last(n)), order, starts, n)
        count, events = count + 1, events + len(order)
    assert (count, events) == (115, 2888)


def test_the_real_conversations_hold_pairs(data: Path) -> None:
    """What the test above looks for is there: 27 conversations use one call id twice."""
    found = twice = 0
    for _, messages in conversations(data):
        log = [event(place, message) for place, message in enumerate(messages, 1)]
        found += sum(1 for _ in pairs(log))
        ids = _call_ids(messages)
        twice += len(set(ids)) < len(ids)
    assert (found, twice) == (608, 27)


@SHARED
@given(whole_logs())
def test_every_window_over_the_log(reader: Reader, log: WholeLog) -> None:
    """A background compaction inside a turn, a sub-agent, an own type: none of them begins a window."""
    written = reader.write(log.batches)
    for n in range(1, log.version + 2):
        check_window(written.positions(EventFilter.last(n)), log.events, log.starts, n)
        exactly = EventFilter.last(n, whole_turns=False)  # the older generation's count
        assert written.positions(exactly) == list(range(1, log.version + 1))[-n:]


@SHARED
@given(whole_logs())
def test_every_window_over_the_view(reader: Reader, log: WholeLog) -> None:
    """Over the view a summary's shadow prompt begins a window too."""
    written = reader.write(log.batches)
    order = [log.events[position - 1] for position in log.view]
    assert written.positions(EventFilter(active_view=True)) == log.view
    for n in range(1, len(order) + 2):
        got = written.positions(EventFilter(active_view=True, last=n))
        check_window(got, order, log.starts | log.shadow_prompts, n)


@SHARED
@given(whole_logs())
def test_every_window_over_the_messages_of_the_view(reader: Reader, log: WholeLog) -> None:
    """The same for ``active()``, from which prompts are built: own types are no message and are not counted."""
    written = reader.write(log.batches)
    order = [made for made in (log.events[position - 1] for position in log.view) if made.is_message]
    for n in range(1, len(order) + 2):
        got = written.positions(EventFilter.active().replace(last=n))
        check_window(got, order, log.starts | log.shadow_prompts, n)


@given(whole_logs())
def test_windows_grow_with_their_number(log: WholeLog) -> None:
    """A larger n never gives less, and every window holds those of smaller n."""
    for active_view in (False, True):
        smaller: list[SessionEvent] = []
        for n in range(1, log.version + 2):
            larger = EventFilter(active_view=active_view, last=n).apply(log.events)
            assert larger[len(larger) - len(smaller) :] == smaller
            smaller = larger


def _call_ids(messages: list[Message]) -> list[str]:
    return [call.id for message in messages for call in getattr(message, "tool_calls", ())]
