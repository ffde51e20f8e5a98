"""Recorded requests as they are: accepted ones break no rule, refused ones that which the provider named (P-2)."""

from __future__ import annotations

import pytest

from tests.formats.recorded import recorded
from tests.formats.rules.providers import provider_of, request_of
from turnlog.formats import ProblemLevel, problems


def test_no_accepted_request_is_said_to_be_refused() -> None:
    accepted = [request for request in recorded() if request.is_accepted]
    wronged = {
        request.name: errors
        for request in accepted
        if (
            errors := [
                problem
                for problem in problems(request_of(request), provider_of(request))
                if problem.level is ProblemLevel.ERROR
            ]
        )
    }
    assert len(accepted) == 1_874
    assert not wronged


def test_no_more_is_said_of_accepted_requests_than_what_some_models_refuse() -> None:
    said = {
        problem.rule
        for request in recorded()
        if request.is_accepted
        for problem in problems(request_of(request), provider_of(request))
    }
    assert said == {
        "anthropic.first-not-user",
        "anthropic.prefill",
        "anthropic.system-role",
        "anthropic.text-blank",
        "bedrock.first-not-user",
        "bedrock.text-blank",
        "openai-chat.tool-call-id-too-long",
        "openai-chat.tool-calls-empty",
        "openai-responses.id-characters",
        "openai-responses.id-prefix",
    }


#: The refused requests that were refused for what stands in their messages: part of the name, rule, places.
STRUCTURAL = [
    ("thinking_with_modified_history.yaml#1", "openai-responses.reasoning-unfollowed", ["input[1]"]),
    ("rejects_interleaved_function_calls.yaml#0", "openai-responses.message-between-calls", ["input[2]"]),
    ("o1_mini_system_role[developer].yaml#0", "openai-chat.role-of-model", ["messages[0].role"]),
    ("o1_mini_system_role[system].yaml#0", "openai-chat.role-of-model", ["messages[0].role"]),
    ("[direct-binary-audio-openai_chat].yaml#1", "openai-chat.audio", ["messages[3].content[1]"]),
    ("[direct-url-audio-openai_chat].yaml#2", "openai-chat.audio", ["messages[3].content[1]"]),
    ("[direct-url_force_download-audio-openai_chat].yaml#2", "openai-chat.audio", ["messages[3].content[1]"]),
    ("[tool_return_content-binary-audio-openai_chat].yaml#1", "openai-chat.audio", ["messages[3].content[0]"]),
    ("[tool_return_content-url-audio-openai_chat].yaml#2", "openai-chat.audio", ["messages[3].content[0]"]),
    (
        "[tool_return_content-url_force_download-audio-openai_chat].yaml#2",
        "openai-chat.audio",
        ["messages[3].content[0]"],
    ),
]


@pytest.mark.parametrize(("name", "rule", "places"), STRUCTURAL)
def test_a_request_refused_for_its_messages_breaks_the_rule_that_the_provider_named(
    name: str, rule: str, places: list[str]
) -> None:
    (refused,) = [request for request in recorded() if request.name.endswith(name)]
    found = problems(request_of(refused), provider_of(refused))
    assert [(problem.rule, problem.place) for problem in found] == [(rule, place) for place in places]
    assert all(problem.level is ProblemLevel.ERROR for problem in found)
    assert found[0].says == refused.error["error"]["message"]


def test_no_rule_is_named_for_what_was_refused_for_other_reasons() -> None:
    """Models, files and keys that are wrong are no matter of the messages."""
    others = [
        request
        for request in recorded()
        if not request.is_accepted and not any(request.name.endswith(name) for name, *_ in STRUCTURAL)
    ]
    assert len(others) == 40 - len(STRUCTURAL)
    assert all(problems(request_of(request), provider_of(request)) == [] for request in others)
