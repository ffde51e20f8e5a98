"""Every rule alone: what breaks it, what comes near and does not, and what is said (P-2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.formats.rules import examples as ex
from tests.formats.rules.examples import ALONE, ASK, TOGETHER, Example
from turnlog.errors import InvalidValueError
from turnlog.formats import Problem, ProblemLevel, problems
from turnlog.formats.rules import PROVIDERS

RULES = {rule.id: rule for provider in PROVIDERS.values() for rule in provider.rules}


def found(rule: str, request: dict[str, Any]) -> list[Problem]:
    return problems(request, rule.partition(".")[0])


@pytest.mark.parametrize("example", ALONE, ids=lambda example: example.rule)
def test_a_rule_that_is_broken_is_named_with_its_place_and_no_other(example: Example) -> None:
    named = [(problem.rule, problem.place) for problem in found(example.rule, example.request)]
    assert named == [(example.rule, example.place)]


@pytest.mark.parametrize(("example", "rules"), TOGETHER, ids=lambda value: getattr(value, "rule", ""))
def test_a_rule_that_is_broken_with_others_is_named_with_its_place(example: Example, rules: set[str]) -> None:
    named = found(example.rule, example.request)
    assert {problem.rule for problem in named} == rules
    assert (example.rule, example.place) in [(problem.rule, problem.place) for problem in named]


def test_every_rule_has_an_example_that_breaks_it() -> None:
    assert {example.rule for example in ALONE} | {example.rule for example, _ in TOGETHER} == set(RULES)


def test_no_two_rules_have_one_id_and_each_names_its_provider() -> None:
    ids = [(name, rule.id) for name, provider in PROVIDERS.items() for rule in provider.rules]
    assert len({id_ for _, id_ in ids}) == len(ids)
    assert all(id_.startswith(f"{name}.") for name, id_ in ids)


@pytest.mark.parametrize("example", [*ALONE, *(example for example, _ in TOGETHER)], ids=lambda example: example.rule)
def test_what_is_said_is_filled_in(example: Example) -> None:
    for problem in found(example.rule, example.request):
        assert not {"{", "}"} & set(problem.message + (problem.says or ""))


SAYS = {
    "openai-chat.tool-call-unanswered": (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        "The following tool_call_ids did not have response messages: b"
    ),
    "openai-chat.tool-calls-empty": (
        "Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1, but got an empty "
        "array instead."
    ),
    "openai-responses.call-unanswered": "No tool output found for function call a.",
    "openai-responses.output-unexpected": "No tool call found for function call output with call_id a.",
    "anthropic.tool-use-unanswered": (
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: b. Each `tool_use` "
        "block must have a corresponding `tool_result` block in the next message."
    ),
    "anthropic.tool-result-unexpected": (
        "messages.2.content.1: unexpected `tool_use_id` found in `tool_result` blocks: z. Each `tool_result` block "
        "must have a corresponding `tool_use` block in the previous message."
    ),
    "bedrock.tool-use-unanswered": "Expected toolResult blocks at messages.2.content for the following Ids: a",
}


@pytest.mark.parametrize("rule", SAYS)
def test_the_providers_words_name_ids_and_places(rule: str) -> None:
    (broken,) = [example for example in ALONE if example.rule == rule]
    assert [problem.says for problem in found(rule, broken.request)] == [SAYS[rule]]


RIGHT: list[tuple[str, dict[str, Any]]] = [
    ("openai-chat", ex.chat(ASK, ex.calls("a", "b"), ex.tool("b"), ex.tool("a"))),
    ("openai-chat", ex.chat(ASK, ex.calls("a"), ex.tool("a"), ex.calls("a"), ex.tool("a"))),
    ("openai-chat", ex.chat(ASK, {"role": "assistant", "refusal": "No."}, ASK, ASK)),
    ("openai-chat", ex.chat({"role": "user", "content": [ex.SOUND]}, model="gpt-4o-audio-preview")),
    ("openai-responses", ex.items(ex.output_item("a"), previous_response_id="resp_1")),
    ("openai-responses", ex.items(ex.output_item("a"), conversation={"id": "conv_1"})),
    ("openai-responses", {"previous_response_id": "resp_1"}),
    ("openai-responses", {"input": "hi"}),
    ("openai-responses", ex.items({"id": "fc_1"}, ex.output_item("a"))),
    (
        "openai-responses",
        ex.items(
            {"type": "tool_search_call", "call_id": "a"}, ex.output_item("a"), ex.call_item("b"), ex.output_item("b")
        ),
    ),
    ("openai-responses", ex.items(ex.THOUGHT, ex.call_item("a", id="fc_1"), ex.output_item("a"))),
    (
        "openai-responses",
        ex.items(ex.call_item("a"), {"role": "assistant", "content": "x"}, ex.output_item("a"), model="gpt-5"),
    ),
    (
        "anthropic",
        ex.chat(ASK, ex.assistant(ex.use("a")), ex.assistant(ex.use("b")), ex.user(ex.result("b"), ex.result())),
    ),
    ("anthropic", ex.chat(ASK, ex.assistant(ex.use()), ex.user(ex.result()), ex.user(ex.text()))),
    (
        "anthropic",
        ex.chat(ASK, ex.assistant(ex.use()), ex.user(ex.result()), ex.assistant(ex.use()), ex.user(ex.result())),
    ),
    (
        "anthropic",
        ex.chat(ASK, ex.assistant({"type": "server_tool_use", "id": "s"}, {"type": "web_search_tool_result"})),
    ),
    (
        "anthropic",
        ex.chat(ASK, ex.assistant({"type": "server_tool_use", "id": "s"}, ex.use()), ex.user(ex.result())),
    ),
    (  # code that runs at the provider's calls a tool of ours, and ends in a later turn
        "anthropic",
        ex.chat(
            ASK,
            ex.assistant({"type": "server_tool_use", "id": "s", "name": "code_execution"}, ex.use()),
            ex.user(ex.result()),
            ex.assistant({"type": "code_execution_tool_result", "tool_use_id": "s"}, ex.text()),
            ASK,
        ),
    ),
    (
        "anthropic",
        ex.chat(ASK, ex.assistant(ex.thought(), ex.use()), ex.user(ex.result()), thinking=ex.ENABLED),
    ),
    ("anthropic", ex.chat(ASK, ex.assistant(ex.use()), ex.user(ex.result(), ex.text()), thinking=ex.ENABLED)),
    ("gemini", {"contents": "hi"}),
    ("gemini", {"contents": {"parts": [{"text": "hi"}]}}),
    (
        "gemini",
        ex.contents(
            ex.QUESTION,
            ("model", [ex.called(thoughtSignature="s"), ex.called()]),
            ("user", [ex.responded()]),
            ("user", [ex.responded(), {"text": "x"}]),
            model="gemini-3-pro-preview",
        ),
    ),
    (
        "gemini",
        ex.contents(ex.QUESTION, ("model", [ex.called()]), ("user", [ex.responded()]), model="gemini-2.0-flash"),
    ),
    (
        "bedrock",
        ex.converse(
            ex.SAID,
            ex.assistant(
                {"toolUse": {"toolUseId": "s", "name": "run", "type": "server_tool_use"}},
                {"toolResult": {"toolUseId": "s", "type": "nova_code_interpreter_result"}},
                ex.bedrock_use(),
            ),
            ex.user(ex.bedrock_result(), {"text": "x"}),
            modelId="us.amazon.nova-2-lite-v1:0",
        ),
    ),
]


@pytest.mark.parametrize(("provider", "request_"), RIGHT)
def test_what_comes_near_a_rule_and_keeps_it_is_not_named(provider: str, request_: dict[str, Any]) -> None:
    assert [problem for problem in problems(request_, provider) if problem.level is ProblemLevel.ERROR] == []


@pytest.mark.parametrize(
    ("rule", "model", "level"),
    [
        ("openai-chat.tool-calls-empty", None, ProblemLevel.ERROR),
        ("openai-chat.tool-calls-empty", "gpt-5-mini", ProblemLevel.ERROR),
        ("openai-chat.tool-calls-empty", "openai/o3", ProblemLevel.ERROR),
        ("openai-chat.tool-calls-empty", "openai/gpt-oss-120b", ProblemLevel.BY_MODEL),
        ("openai-chat.tool-calls-empty", "mistral-large-latest", ProblemLevel.BY_MODEL),
        ("openai-chat.audio", None, ProblemLevel.BY_MODEL),
        ("openai-chat.audio", "mistral-small-latest", None),
        ("openai-responses.id-prefix", "deepseek-v4-flash", ProblemLevel.BY_MODEL),
        ("openai-responses.message-between-calls", "qwen3", ProblemLevel.BY_MODEL),
        ("openai-responses.message-between-calls", None, None),
        ("anthropic.prefill", "claude-sonnet-4-5", ProblemLevel.BY_MODEL),
        ("anthropic.prefill", "claude-opus-4-1-20250805", ProblemLevel.BY_MODEL),
        ("anthropic.prefill", "claude-opus-4-20250514", ProblemLevel.BY_MODEL),
        ("anthropic.prefill", "claude-opus-5", ProblemLevel.ERROR),
        ("gemini.thought-signature", "gemini-2.5-pro", None),
        ("gemini.thought-signature", "tuned-model", ProblemLevel.BY_MODEL),
    ],
)
def test_the_model_that_is_named_decides_where_models_differ(
    rule: str, model: str | None, level: ProblemLevel | None
) -> None:
    (example,) = [example for example in ALONE if example.rule == rule]
    request = {key: value for key, value in example.request.items() if key != "model"}
    named = found(rule, request if model is None else request | {"model": model})
    assert [problem.level for problem in named] == ([] if level is None else [level])


@pytest.mark.parametrize(
    ("rule", "request_of", "most"),
    [
        ("openai-chat.tool-call-id-too-long", lambda size: ex.chat(ASK, ex.calls("x" * size), ex.tool("x" * size)), 40),
        ("openai-chat.content-too-long", lambda size: ex.chat({"role": "user", "content": "x" * size}), 1_048_576),
        (
            "openai-responses.id-too-long",
            lambda size: ex.items(ex.call_item("x" * size), ex.output_item("x" * size)),
            64,
        ),
        ("anthropic.messages-too-many", lambda size: ex.chat(*[ASK] * size), 100_000),
        (
            "bedrock.tool-use-id",
            lambda size: ex.converse(
                ex.SAID, ex.assistant(ex.bedrock_use("x" * size)), ex.user(ex.bedrock_result("x" * size))
            ),
            64,
        ),
    ],
)
def test_a_limit_holds_to_the_last_one(rule: str, request_of: Callable[[int], dict[str, Any]], most: int) -> None:
    assert rule not in {problem.rule for problem in found(rule, request_of(most))}
    assert rule in {problem.rule for problem in found(rule, request_of(most + 1))}


def test_an_unknown_provider_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(InvalidValueError, match="'cohere': choose one of openai-chat, openai-responses, anthropic"):
        problems({"messages": []}, "cohere")
