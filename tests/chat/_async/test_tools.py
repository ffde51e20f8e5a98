"""H-9: what a model is told of each tool call, whatever becomes of it."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.chat._async.talking import Talk
from tests.chat.speaking import asks, line, lines, look_up
from turnlog import (
    AssistantMessage,
    AsyncSessionService,
    MediaPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolStatus,
)
from turnlog.chat import SESSION_ID, AsyncChatClient, Tool, ToolContext, ToolError, schema_tool, tool
from turnlog.errors import ToolDefinitionError
from turnlog.models.scripted import AsyncScriptedModel, Line


async def told(*tools: Any, arguments: str = '{"key": "k"}', name: str = "", **options: Any) -> ToolResult:
    """The result that the model is told of one call of the first tool."""
    known = [tool(each) for each in tools]
    model = AsyncScriptedModel([asks("c1", name=name or known[0].spec.name, arguments=arguments), "done"])
    await AsyncChatClient(model, tools=known, **options).call("hi")
    message = model.prompts[1].messages[-1]
    assert isinstance(message, ToolMessage)
    (result,) = message.results
    assert result.id == "c1"
    return result


async def test_an_unknown_tool_is_told_to_the_model() -> None:
    """With the names of those there are."""
    result = await told(look_up, name="look_down")
    assert result == ToolResult(
        "c1", "There is no tool 'look_down'. The tools are: look_up.", ToolStatus.ERROR, "look_down"
    )


async def test_an_unknown_tool_where_there_are_none() -> None:
    model = AsyncScriptedModel([asks("c1"), "done"])
    result = await AsyncChatClient(model).call("hi")
    assert result.text == "done"
    assert "The tools are: none." in line(model.prompts[1].messages[-1])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ('{"key": 7}', "Expected `str`, got `int` - at `$.key`"),
        ("{}", "missing required field `key`"),
        ('{"key": "k", "other": 1}', "unknown field `other`"),
        ('{"key": ', "invalid JSON"),
        ("[]", "Expected `object`, got `array`"),
        ("nonsense", "invalid JSON"),
    ],
)
async def test_bad_arguments_are_told_to_the_model(arguments: str, says: str) -> None:
    """What is wrong with them, so that it can do better; the tool is not run."""

    def never(key: str) -> str:
        raise AssertionError(key)

    result = await told(never, arguments=arguments)
    assert result.status is ToolStatus.ERROR
    assert result.text.startswith("InvalidValueError: arguments of 'never': ")
    assert says in result.text


@pytest.mark.parametrize("blank", ["", "  ", "{}", "\n"])
async def test_blank_arguments_are_none(blank: str) -> None:
    """How some models call a function without parameters."""

    def now() -> str:
        return "noon"

    assert (await told(now, arguments=blank)).text == "noon"


def failing(key: str) -> str:
    raise KeyError(f"secret of {key}")


async def test_an_exception_is_told_by_its_type_alone(caplog: pytest.LogCaptureFixture) -> None:
    """Its text may hold what the model is not to see; the log of the process has it."""
    caplog.set_level(logging.INFO, "turnlog.chat")
    result = await told(failing)
    assert (result.status, result.text) == (ToolStatus.ERROR, "KeyError: the tool failed.")
    assert "secret of k" in caplog.text


async def test_details_are_told_on_request() -> None:
    assert (await told(failing, tool_error_details=True)).text == "KeyError: 'secret of k'"


async def test_a_tool_error_is_what_the_tool_wants_to_say() -> None:
    def refuse(key: str) -> str:
        raise ToolError(f"there is no {key}; try another")

    result = await told(refuse)
    assert (result.status, result.text) == (ToolStatus.ERROR, "ToolError: there is no k; try another")


async def test_one_failure_leaves_the_others_alone(service: AsyncSessionService) -> None:
    calls = tuple(
        ToolCall(str(n), name, '{"key": "k"}') for n, name in enumerate(["look_up", "failing", "none", "look_up"])
    )
    talk = Talk(service, AssistantMessage(tool_calls=calls), "done", tools=[look_up, failing])
    await talk.client.call("hi", session_id="s")
    assert (await talk.log())[2:-1] == [
        "tool 0: found k",
        "tool 1: KeyError: the tool failed. (error)",
        "tool 2: There is no tool 'none'. The tools are: look_up, failing. (error)",
        "tool 3: found k",
    ]


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", "text"),
        ("", ""),
        (None, ""),
        (7, "7"),
        (True, "true"),
        ([], "[]"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        ("乤乥", "乤乥"),
        (["乤"], '["乤"]'),
        (TextPart("part"), "part"),
        ([MediaPart(url="https://example.org/a.png")], (MediaPart(url="https://example.org/a.png"),)),
        ((TextPart("a"), TextPart("b")), (TextPart("a"), TextPart("b"))),
        (ToolResult("any id", "said", ToolStatus.ERROR, "f"), None),
    ],
)
async def test_what_a_tool_returns(value: Any, content: Any) -> None:
    """Text and parts as they are, a ``ToolResult`` with the call's id, the rest as JSON; B131: without escapes."""

    def f() -> Any:
        return value

    result = await told(f, arguments="")
    if content is None:
        assert result == ToolResult("c1", "said", ToolStatus.ERROR, "f")
    else:
        assert result == ToolResult("c1", content, ToolStatus.OK, "f")


@pytest.mark.parametrize("value", [object(), {1: {2: {object()}}}, float, lambda: 1])
async def test_what_json_cannot_say_is_an_error_result(value: Any) -> None:
    def f() -> Any:
        return value

    result = await told(f, arguments="")
    assert result.status is ToolStatus.ERROR
    assert result.text.startswith("InvalidValueError: 'f' returned what JSON cannot say")


async def test_a_value_that_holds_itself_is_an_error_result() -> None:
    def f(key: str) -> Any:
        endless: list[Any] = [key]
        endless.append(endless)
        return endless

    assert (await told(f)).status is ToolStatus.ERROR


async def test_a_tool_may_know_of_its_call(service: AsyncSessionService) -> None:
    """``ToolContext``: unseen by the model."""
    seen: list[ToolContext] = []

    def note(context: ToolContext, key: str = "default") -> str:
        seen.append(context)
        return key

    talk = Talk(service, asks("c1", name="note"), "done", tools=[note])
    await talk.client.call("hi", session_id="s", context={"mine": 1})
    (context,) = seen
    assert context.call == ToolCall("c1", "note", '{"key": "c1"}')
    assert (context.context[SESSION_ID], context.context["mine"]) == ("s", 1)
    assert context.idempotency_key
    assert context.turn
    assert talk.model.prompts[0].tools[0].parameters == {
        "type": "object",
        "properties": {"key": {"type": "string"}},
        "required": [],
        "additionalProperties": False,
    }


async def test_without_a_session_keys_do_not_repeat_either() -> None:
    """Not between rounds, nor between calls of the client."""
    keys: list[str] = []

    def note(key: str, context: ToolContext) -> str:
        keys.append(context.idempotency_key)
        assert context.turn is None
        return key

    said: list[Line] = [asks("1", "2", name="note"), asks("1", name="note"), "done"]
    client = AsyncChatClient(AsyncScriptedModel([*said, *said]), tools=[note])
    result = await client.call("hi")
    await client.call("hi", context=result.context)
    assert len(set(keys)) == len(keys) == 6


async def test_defaults_are_the_functions_own() -> None:
    """They may be anything, and are the function's to fill in."""
    sentinel = object()

    def find(key: str, limit: int = 3, where: Any = sentinel) -> str:
        return f"{key} {limit} {where is sentinel}"

    assert (await told(find)).text == "k 3 True"
    assert (await told(find, arguments='{"key": "k", "limit": 5, "where": null}')).text == "k 5 False"


async def test_tools_may_be_methods_and_objects() -> None:
    class Shop:
        def price(self, key: str) -> str:
            """What it costs."""
            return f"{key}: 5"

        def __call__(self, key: str) -> str:
            return f"called {key}"

    method = tool(Shop().price)
    assert (method.spec.name, method.spec.description) == ("price", "What it costs.")
    assert (await told(method)).text == "k: 5"
    assert (await told(tool(Shop(), name="shop"))).text == "called k"


async def test_a_schema_that_is_known_from_elsewhere() -> None:
    """As of a tool server: the function checks its arguments itself."""
    schema = {"type": "object", "properties": {"a-b": {"type": "string"}}}

    def call(**arguments: Any) -> Any:
        return arguments

    known = schema_tool(call, name="remote", parameters=schema, description="Far away.")
    assert known.spec.parameters == schema
    assert (await told(known, arguments='{"a-b": 1}')).text == '{"a-b":1}'
    assert (await told(known, arguments="[]")).status is ToolStatus.ERROR


async def test_tools_of_one_name_are_refused(service: AsyncSessionService) -> None:
    """When the client is made, and before a call with its own tools has stored anything."""

    def other(key: str) -> str:
        return key

    same = tool(other, name="look_up")
    with pytest.raises(ToolDefinitionError, match="two tools have this name"):
        AsyncChatClient(AsyncScriptedModel([]), tools=[look_up, same])
    talk = Talk(service, "never")
    with pytest.raises(ToolDefinitionError, match="two tools have this name"):
        await talk.client.call("hi", session_id="s", tools=[look_up, same])
    assert not (await service.list()).sessions


@pytest.mark.parametrize("most", [1, 2, 8])
async def test_results_are_in_the_order_of_the_calls(most: int) -> None:
    """However many run at a time."""
    model = AsyncScriptedModel([asks(*"abcdef"), "done"])
    await AsyncChatClient(model, tools=[look_up], tools_at_once=most).call("hi")
    assert lines(model.prompts[1].messages[2:]) == [f"tool {key}: found {key}" for key in "abcdef"]


def test_a_tool_made_twice_is_the_same() -> None:
    made = tool(look_up)
    assert isinstance(made, Tool)
    assert tool(made) is made
