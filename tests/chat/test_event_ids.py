"""H-8: ids of a run's events, and what an earlier attempt has left, as pure functions."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chat.speaking import asks
from turnlog.chat import Outcome
from turnlog.chat.event_ids import RunEvents, digest
from turnlog.chat.runs import INTERRUPTED, OUTCOME, check_opening, earlier_run
from turnlog.errors import RunMismatchError
from turnlog.log.events import SessionEvent
from turnlog.log.messages import AssistantMessage, Message, Native, ToolMessage, ToolResult, UserMessage
from turnlog.testing.clocks import FixedClock
from turnlog.testing.factories import event, own
from turnlog.testing.strategies import messages as any_messages

FOUND = ToolMessage((ToolResult("c", "found"),))
_few = st.sampled_from([UserMessage("a"), UserMessage("b"), AssistantMessage("a"), asks("c"), asks("d"), FOUND])


def run(run_id: str = "r", branch: str | None = None, session_id: str = "s") -> RunEvents:
    return RunEvents(session_id, run_id, branch, FixedClock())


def stored(messages: list[Message], events: RunEvents, cuts: set[int] | None = None) -> list[SessionEvent]:
    """The events of these messages, stored in batches that end at the cuts."""
    made: list[SessionEvent] = []
    batch: list[Message] = []
    for number, message in enumerate(messages, 1):
        batch.append(message)
        if cuts is None or number in cuts or number == len(messages):
            new = events.events(batch)
            events.stored(new)
            made += new
            batch = []
    return made


@given(st.lists(_few, max_size=8), st.sets(st.integers(1, 8)))
def test_ids_do_not_depend_on_how_the_run_is_cut_into_batches(messages: list[Message], cuts: set[int]) -> None:
    assert [each.id for each in stored(messages, run())] == [each.id for each in stored(messages, run(), cuts)]


@given(st.lists(_few, max_size=8))
def test_each_event_of_a_run_has_an_id_of_its_own(messages: list[Message]) -> None:
    """Models say the same twice, and use ids of calls again."""
    events = stored(messages, run())
    assert len({each.id for each in events}) == len(events)
    assert [each.message for each in events] == messages
    assert all(each.run_id == "r" for each in events)


@given(st.lists(_few, min_size=1, max_size=8), st.integers(0, 7))
def test_a_retry_that_knows_what_is_stored_goes_on_with_the_next_ids(messages: list[Message], done: int) -> None:
    first = stored(messages, run())
    retry = run()
    retry.stored(first[:done])
    assert [each.id for each in retry.events(messages[done:])] == [each.id for each in first[done:]]


@given(st.lists(_few, min_size=1, max_size=4))
def test_ids_that_are_not_stored_are_made_again(messages: list[Message]) -> None:
    """A failed append counts nothing."""
    events = run()
    assert [each.id for each in events.events(messages)] == [each.id for each in events.events(messages)]


@given(any_messages())
def test_an_id_depends_on_run_branch_and_content_alone(message: Message) -> None:
    def id_of(events: RunEvents, said: Message = message) -> str:
        return events.events([said])[0].id

    same = id_of(run())
    assert same == id_of(run(session_id="t"))
    assert same == id_of(run(), message.replace(metadata={"a": 1}, native=Native("x", {})))
    others = {id_of(run("other")), id_of(run(branch="x")), id_of(run(branch="r"))}
    assert same not in others
    assert len(others) == 3
    assert UUID(same).version == 8


def test_a_role_is_part_of_the_content() -> None:
    assert len({each.id for each in run().events([UserMessage("a"), AssistantMessage("a")])}) == 2


@given(st.lists(st.text(max_size=4), max_size=3), st.lists(st.text(max_size=4), max_size=3))
def test_parts_are_kept_apart_in_a_digest(first: list[str], second: list[str]) -> None:
    assert (digest(*first) == digest(*second)) is (first == second)


class TestEarlierRun:
    def test_nothing_stored_is_no_run(self) -> None:
        assert earlier_run([]) is None
        assert earlier_run([own(1)]) is None
        assert earlier_run([event(1, AssistantMessage("half"), metadata={INTERRUPTED: True})]) is None

    @pytest.mark.parametrize(
        ("said", "opening", "outcome", "response", "answered"),
        [
            ([UserMessage("a")], 1, None, [], None),
            ([UserMessage("a"), UserMessage("b")], 2, None, [], None),
            ([UserMessage("a"), AssistantMessage("1")], 1, Outcome.REPLY, ["e2"], "e1"),
            ([UserMessage("a"), asks("c")], 1, None, ["e2"], "e1"),
            ([UserMessage("a"), asks("c"), FOUND], 1, None, ["e2"], "e1"),
            ([UserMessage("a"), asks("c"), FOUND, AssistantMessage("1")], 1, Outcome.REPLY, ["e4"], "e3"),
            ([asks("c"), FOUND], 0, None, ["e1"], None),
            ([FOUND], 1, None, [], None),
            ([FOUND, AssistantMessage("1")], 1, Outcome.REPLY, ["e2"], "e1"),
        ],
    )
    def test_it_is_opening_steps_and_how_they_ended(
        self, said: list[Message], opening: int, outcome: Outcome | None, response: list[str], answered: str | None
    ) -> None:
        found = earlier_run([event(n, message) for n, message in enumerate(said, 1)])
        assert found is not None
        assert (list(found.opening), list(found.steps)) == (said[:opening], said[opening:])
        assert found.outcome is outcome
        assert (found.response_event_ids, found.request_event_id) == (response, answered)

    @pytest.mark.parametrize("outcome", [Outcome.DIRECT, Outcome.LIMIT])
    def test_results_that_ended_the_turn_say_so(self, outcome: Outcome) -> None:
        log = [
            event(1, UserMessage("a")),
            event(2, asks("c", "d")),
            event(3, FOUND),
            event(4, ToolMessage((ToolResult("d", "2"),)), metadata={OUTCOME: outcome.value}),
        ]
        found = earlier_run(log)
        assert found is not None
        assert (found.outcome, found.reply) == (outcome, log[1].message)
        assert [result.id for result in found.results] == ["c", "d"]

    @pytest.mark.parametrize("wrong", ["someone's", 7, None])
    def test_an_outcome_in_other_words_is_none(self, wrong: object) -> None:
        """Metadata is anybody's to write."""
        found = earlier_run([event(1, asks("c")), event(2, FOUND, metadata={OUTCOME: wrong})])
        assert found is not None
        assert found.outcome is None

    def test_what_was_interrupted_and_own_events_are_no_steps(self) -> None:
        half = event(2, AssistantMessage("half"), metadata={INTERRUPTED: True})
        found = earlier_run([event(1, UserMessage("a")), half, own(3)])
        assert found is not None
        assert (found.steps, found.outcome, found.event_ids) == ((), None, ("e1",))

    def test_other_user_messages_are_another_run(self) -> None:
        found = earlier_run([event(1, UserMessage("a"))])
        assert found is not None
        check_opening(found, "s", "r", [UserMessage("a", metadata={"from": "web"})])
        for other in ([], [UserMessage("b")], [UserMessage("a"), UserMessage("a")]):
            with pytest.raises(RunMismatchError):
                check_opening(found, "s", "r", other)
