"""Whatever lies in a log: the prompt that the advisors make of it is one that every provider takes (H-6, P-2)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chat.strict import PROVIDERS, check_prompt
from turnlog import EventFilter, SessionEvent, SessionService
from turnlog.chat import ChatClient, SessionAdvisors
from turnlog.formats import ProblemLevel, Request, problems, render_request
from turnlog.log.messages import Message
from turnlog.models.scripted import ScriptedModel
from turnlog.testing.factories import SESSION_ID, calls, session, user
from turnlog.testing.strategies import batches, filters


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """Broken logs are what this is about: thousands of warnings of them say nothing."""
    logger = logging.getLogger("turnlog.chat")
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(logging.NOTSET)


def prompt_over(log: list[list[SessionEvent]], **asked: Any) -> tuple[Message, ...]:
    """The messages that a model is given for a request on a session that holds ``log``."""
    with SessionService.open("memory:", allow_system_messages=True) as service:
        service.repository.restore(session(), log)
        before = service.events(SESSION_ID)
        model = ScriptedModel(["Well."])
        ChatClient(model, advisors=SessionAdvisors(service), system="Be kind.").call(
            "And now?", session_id=SESSION_ID, **asked
        )
        assert service.events(SESSION_ID)[: len(before)] == before, "the log was changed"
    return model.prompts[0].messages


def check_for(provider: str, messages: tuple[Message, ...]) -> None:
    check_prompt(messages)
    source = "anthropic" if provider == "openai-chat" else "openai-chat"
    request = render_request(Request(messages=messages, provider=source), provider)
    found = [problem for problem in problems(request, provider) if problem.level is ProblemLevel.ERROR]
    assert not found, (provider, found)


@given(batches(), st.none() | filters(), st.sampled_from(PROVIDERS))
def test_a_prompt_from_any_log_through_any_filter_is_valid(
    log: list[list[SessionEvent]], event_filter: EventFilter | None, provider: str
) -> None:
    check_for(provider, prompt_over(log, event_filter=event_filter))


@given(batches(), st.sampled_from(["a", "a.b", "a.b.c", "b"]), st.sampled_from(PROVIDERS))
def test_a_sub_agents_prompt_is_valid(log: list[list[SessionEvent]], branch: str, provider: str) -> None:
    check_for(provider, prompt_over(log, branch=branch))


@given(batches(), st.integers(1, 12), st.booleans(), st.sampled_from(PROVIDERS))
def test_a_window_of_any_log_makes_a_valid_prompt(
    log: list[list[SessionEvent]],
    last: int,
    whole_turns: bool,  # noqa: FBT001 - drawn by Hypothesis
    provider: str,
) -> None:
    check_for(provider, prompt_over(log, event_filter=EventFilter.last(last, whole_turns=whole_turns)))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_check_sees_a_broken_prompt(provider: str) -> None:
    broken = (user(1).content, calls(2, "c1").content, user(3).content)
    with pytest.raises(AssertionError):
        check_for(provider, broken)
