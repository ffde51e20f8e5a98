"""The chat client on PostgreSQL: recordings, random conversations, and calls at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.chat.replaying import recording_of
from tests.chat.scripts import Script, play, play_in_tasks, scripts
from tests.chat.test_concurrency import (  # the same tests, on another store
    test_a_holder_that_was_taken_over_stores_nothing_more,
    test_a_turn_whose_taking_got_no_answer_is_given_back,
    test_processes_take_turns,
    test_tasks_and_threads_take_turns_with_one_another,
    test_tasks_take_turns,
    test_the_turn_of_a_process_that_was_killed_is_taken_over,
    test_threads_take_turns,
    test_what_is_no_part_of_the_turn_waits_and_own_events_pass,
)
from tests.chat.test_recordings import driven
from tests.chat.test_scripts import check, told
from tests.log.conversations import conversations
from tests.postgres.conftest import emptied
from turnlog import EventFilter, SessionService
from turnlog.chat import SessionAdvisors

pytestmark = pytest.mark.store

__all__ = [
    "test_a_holder_that_was_taken_over_stores_nothing_more",
    "test_a_turn_whose_taking_got_no_answer_is_given_back",
    "test_processes_take_turns",
    "test_tasks_and_threads_take_turns_with_one_another",
    "test_tasks_take_turns",
    "test_the_turn_of_a_process_that_was_killed_is_taken_over",
    "test_threads_take_turns",
    "test_what_is_no_part_of_the_turn_waits_and_own_events_pass",
]

#: A share of what the profile asks for: every example is dozens of transactions on a server.
EXAMPLES = max(5, settings().max_examples // 10)


@pytest.fixture
def store_url(url: str) -> str:
    return url


@pytest.mark.parametrize("last", [None, 1, 5])
def test_recordings_are_stored_as_they_were(url: str, data: Path, last: int | None) -> None:
    for _, messages in list(conversations(data))[::20]:
        with SessionService.open(emptied(url)) as service:
            event_filter = None if last is None else EventFilter.last(last)
            driven(recording_of(messages), SessionAdvisors(service, event_filter=event_filter), service)


@settings(max_examples=EXAMPLES)
@given(script=scripts())
def test_random_conversations_leave_the_log_that_memory_does(database: str, script: Script) -> None:
    in_memory = play(script, is_stream=False)
    for made in (play(script, is_stream=True, url=database), play_in_tasks(script, is_stream=False, url=database)):
        check(made)
        assert told(made) == told(in_memory)
        assert made.endings == in_memory.endings
