"""H-1: what an adapter makes of a prompt, without a provider."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from turnlog import SystemMessage, UserMessage
from turnlog.errors import InvalidReplyError, InvalidValueError
from turnlog.formats import ParsedReply
from turnlog.models import OpenAIChatModel, Prompt, ToolSpec
from turnlog.models.anthropic import anthropic_body, anthropic_settings
from turnlog.models.openai_chat import chat_body, is_openai, streamed
from turnlog.models.openai_responses import responses_body
from turnlog.models.provider_request import arguments_of, reply_of, request_body, settings
from turnlog.models.schemas import object_schema, strict_schema


class Place(Struct, frozen=True):
    """A place."""

    name: str
    kind: Literal["city", "sea"] = "city"
    height: float | None = None


class Trip(Struct, frozen=True):
    """Places, one after the other."""

    places: list[Place]
    days: Annotated[int, Meta(ge=1)] = 1
    #: A property with the name of a keyword of JSON Schema, whose default would be taken for one.
    default: str = ""


class Open(Struct, frozen=True):
    """Its keys are not known before."""

    degrees: dict[str, float]


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema of an object within."""
    for found in schema if isinstance(schema, list) else schema.values() if isinstance(schema, dict) else ():
        yield from objects(found)
    if isinstance(schema, dict) and schema.get("type") == "object":
        yield schema


def example(schema: dict[str, Any], definitions: dict[str, Any], pick: int) -> Any:
    """A value that meets a strict schema, as far as the types here go."""
    if "$ref" in schema:
        return example(definitions[schema["$ref"].rpartition("/")[2]], definitions, pick)
    if "anyOf" in schema:
        return example(schema["anyOf"][pick % len(schema["anyOf"])], definitions, pick)
    if "enum" in schema:
        return schema["enum"][pick % len(schema["enum"])]
    match schema["type"]:
        case "object":
            return {name: example(schema["properties"][name], definitions, pick) for name in schema["required"]}
        case "array":
            return [example(schema["items"], definitions, pick)] * (pick % 3)
        case kind:
            return {"string": "x", "integer": 3, "number": 1.5, "null": None, "boolean": True}[kind]


@pytest.mark.parametrize("type_", [Place, Trip])
@given(pick=st.integers(0, 20))
def test_what_meets_the_strict_schema_is_of_the_wanted_type(type_: Any, pick: int) -> None:
    root = object_schema(msgspec.json.schema(type_))
    assert root is not None
    strict = strict_schema(root)
    assert strict is not None
    assert isinstance(msgspec.convert(example(strict, strict["$defs"], pick), type_), type_)


@pytest.mark.parametrize("type_", [Place, Trip])
def test_a_strict_schema_closes_every_object(type_: Any) -> None:
    root = object_schema(msgspec.json.schema(type_))
    assert root is not None
    strict = strict_schema(root)
    found = list(objects(strict))
    assert found
    assert all(
        each["additionalProperties"] is False and set(each["required"]) == set(each["properties"]) for each in found
    )


def test_an_object_with_keys_of_the_models_own_has_no_strict_schema() -> None:
    root = object_schema(msgspec.json.schema(Open))
    assert root is not None
    assert strict_schema(root) is None


def test_an_answer_that_is_no_object_is_asked_for_in_words() -> None:
    prompt = Prompt(
        messages=(SystemMessage("Be brief."), UserMessage("Which?")), output_schema=msgspec.json.schema(list[int])
    )
    body = request_body(settings("openai-chat", "m", {}, native_output=True), prompt, {}, lambda _: {"wrong": 1})
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["system", "system", "user"]
    assert '"integer"' in body["messages"][1]["content"]
    assert "wrong" not in body


def test_what_the_options_say_goes_before_what_is_made() -> None:
    prompt = Prompt(messages=(UserMessage("Which?"),), output_schema=msgspec.json.schema(Place))
    made = {"output_config": {"format": "made", "effort": "made"}}
    body = request_body(
        settings("anthropic", "m", {}, native_output=True),
        prompt,
        {"output_config": {"effort": "high"}, "timeout": object},
        lambda _: made,
    )
    assert body["output_config"] == {"format": "made", "effort": "high"}
    assert body["timeout"] is object


def test_tools_of_the_providers_own_stand_beside_ours() -> None:
    ours = (ToolSpec("weather", "", {}),)
    search = {"type": "web_search"}
    prompt = Prompt(messages=(UserMessage("Which?"),), tools=ours, options={"tools": [search], "tool_choice": "auto"})
    body = responses_body(settings("openai-responses", "m", {}, native_output=True), prompt)
    assert [tool.get("name", tool) for tool in body["tools"]] == ["weather", search]
    assert body["tool_choice"] == "auto"


def test_an_option_that_is_no_json_is_refused_by_its_name() -> None:
    prompt = Prompt(messages=(UserMessage("Which?"),))
    with pytest.raises(InvalidValueError, match="stop"):
        request_body(settings("openai-chat", "m", {}, native_output=True), prompt, {"stop": {1}}, lambda _: {})


@pytest.mark.parametrize(
    ("model", "options", "included"),
    [
        ("gpt-5.1", {}, True),
        ("o3", {}, True),
        ("gpt-4o", {}, False),
        ("gpt-5-chat-latest", {}, False),
        ("my-model", {"reasoning": {"effort": "low"}}, True),
        ("gpt-5.1", {"store": True}, False),
    ],
)
def test_reasoning_is_asked_for_encrypted_where_nothing_is_stored(
    model: str,
    options: dict[str, Any],
    included: bool,  # noqa: FBT001 - a case
) -> None:
    prompt = Prompt(messages=(UserMessage("Which?"),), options=options)
    body = responses_body(settings("openai-responses", model, {}, native_output=True), prompt)
    assert body["store"] is options.get("store", False)
    assert ("reasoning.encrypted_content" in body.get("include", ())) is included


def test_a_bound_on_the_reply_has_one_name() -> None:
    """``chat_summarizer`` asks any model for at most so many tokens."""
    prompt = Prompt(messages=(UserMessage("Which?"),), options={"max_tokens": 99})
    chat = settings("openai-chat", "m", {}, native_output=True)
    assert chat_body(chat, prompt, at_openai=False)["max_tokens"] == 99
    assert chat_body(chat, prompt, at_openai=True)["max_completion_tokens"] == 99
    responses = settings("openai-responses", "m", {}, native_output=True)
    assert responses_body(responses, prompt)["max_output_tokens"] == 99
    anthropic = anthropic_settings("m", {}, 5, native_output=True)
    assert anthropic_body(anthropic, prompt)["max_tokens"] == 99
    assert anthropic_body(anthropic, Prompt(messages=prompt.messages))["max_tokens"] == 5


def test_openai_itself_is_told_by_its_address() -> None:
    for url, expected in [
        (None, True),
        ("https://eu.api.openai.com/v1", True),
        ("http://localhost:8080/v1", False),
        ("https://openai.com.example.org/v1", False),
    ]:
        with openai.OpenAI(api_key="k", base_url=url) as client:
            assert is_openai(client) is expected


@pytest.mark.parametrize("options", [{"stream_options": None}, {"stream_options": {"include_usage": False}}, {}])
def test_usage_is_asked_for_unless_an_option_says_otherwise(options: dict[str, Any]) -> None:
    body = streamed(options)
    assert body.pop("stream") is True
    assert body == (
        {} if options == {"stream_options": None} else {"stream_options": {"include_usage": True}} | options
    )


def test_what_a_method_has_no_parameter_for_goes_into_the_extra_body() -> None:
    def create(model: str, extra_body: object = None) -> None:
        del model, extra_body

    assert arguments_of(create, {"model": "m", "min_p": 1, "extra_body": {"top_k": 2}}) == {
        "model": "m",
        "extra_body": {"min_p": 1, "top_k": 2},
    }


def test_an_answer_that_cannot_be_read_is_no_reply() -> None:
    def parse(data: Any) -> ParsedReply:
        raise InvalidValueError(f"reply.choices is {data}")

    with pytest.raises(InvalidReplyError, match=r"reply\.choices is absent"):
        reply_of(parse, "absent")


@pytest.mark.parametrize("name", ["", "  "])
def test_a_model_has_a_name(name: str) -> None:
    with pytest.raises(InvalidValueError, match="a model is named"):
        OpenAIChatModel(name)


@pytest.mark.parametrize(
    ("model", "package"),
    [("OpenAIChatModel", "openai"), ("AsyncOpenAIResponsesModel", "openai"), ("AnthropicModel", "anthropic")],
)
def test_a_missing_package_is_named_with_the_line_that_installs_it(model: str, package: str) -> None:
    """Without its extra an adapter can be imported, and says what is missing once it is made."""
    program = f"""
import sys
sys.modules["{package}"] = None
from turnlog.errors import MissingExtraError
from turnlog.models import {model}
assert "{package}.lib" not in sys.modules
try:
    {model}("m")
except MissingExtraError as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == f"{package} is not installed: pip install 'turnlog[{package}]'\n"


def test_importing_the_models_imports_no_package_of_a_provider() -> None:
    """It takes seconds."""
    program = "import sys, turnlog.models; print({'openai', 'anthropic', 'httpx2', 'pydantic'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"
