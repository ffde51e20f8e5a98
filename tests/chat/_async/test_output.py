"""H-1: structured output: a reply read as a Python type; what cannot be read is asked for again, unseen by the log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec
import pytest

from tests.chat._async.talking import Talk
from tests.chat.speaking import DIRECT, asks, lines, look_up
from turnlog import AssistantMessage, AsyncSessionService, InvalidValueError, MediaPart, TextPart, UserMessage
from turnlog.chat import AsyncChatClient, Outcome
from turnlog.errors import InvalidReplyError
from turnlog.models.protocol import Reply, Usage
from turnlog.models.scripted import AsyncScriptedModel


@dataclass
class City:
    name: str
    people: int


class Town(msgspec.Struct):
    name: str
    people: int


class Village(TypedDict):
    name: str
    people: int


class Hamlet:
    """As pydantic's models are."""

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        return {"type": "object", "title": "Hamlet"}

    @classmethod
    def model_validate_json(cls, text: str) -> Hamlet:
        read = msgspec.json.decode(text)
        if "name" not in read:
            raise ValueError("name: field required")
        return cls(read["name"])


BERN = '{"name": "Bern", "people": 5}'
AGAIN = "\n\nThe answer must be JSON that meets the schema. The last one did not: "


@pytest.mark.parametrize(
    ("type_", "said", "read"),
    [
        (City, BERN, City("Bern", 5)),
        (Town, BERN, Town("Bern", 5)),
        (Village, BERN, {"name": "Bern", "people": 5}),
        (list[int], "[1, 2]", [1, 2]),
        (dict[str, bool], '{"a": true}', {"a": True}),
        (int | None, "null", None),
        (str, '"text"', "text"),
        (City, f"```json\n{BERN}\n```", City("Bern", 5)),
        (City, f"  ```\n{BERN}```\n", City("Bern", 5)),
    ],
)
async def test_a_reply_is_read_as_a_type(type_: Any, said: str, read: Any) -> None:
    """Any that has a JSON schema; models like to put JSON into a Markdown block."""
    model = AsyncScriptedModel([said])
    result = await AsyncChatClient(model).call("where?", output_type=type_)
    assert (result.output, result.text) == (read, said)
    assert model.prompts[0].output_schema


async def test_a_type_that_reads_itself() -> None:
    model = AsyncScriptedModel(["{}", '{"name": "Ems"}'])
    result = await AsyncChatClient(model).call("where?", output_type=Hamlet)
    assert result.output.name == "Ems"
    assert model.prompts[0].output_schema == {"type": "object", "title": "Hamlet"}
    assert "name: field required" in lines(model.prompts[1].messages)[0]


@pytest.mark.parametrize("wrong", [object, "City", 7, type[int]])
async def test_a_type_without_a_schema_is_refused(service: AsyncSessionService, wrong: Any) -> None:
    """Before anything is stored."""
    talk = Talk(service, "never")
    with pytest.raises(InvalidValueError, match="has no JSON schema"):
        await talk.client.call("where?", session_id="s", output_type=wrong)
    assert not (await service.list()).sessions


async def test_without_a_type_nothing_is_asked_or_read() -> None:
    model = AsyncScriptedModel(["hello"])
    assert (await AsyncChatClient(model).call("hi")).output is None
    assert model.prompts[0].output_schema is None


async def test_retries_are_unseen_by_the_log(service: AsyncSessionService) -> None:
    """The problem is said behind the user's message; wrong answers are neither shown nor stored."""
    talk = Talk(service, "0", "nonsense", '{"name": 1}', BERN, "2")
    await talk.client.call("before", session_id="s")
    result = await talk.client.call("where?", session_id="s", output_type=City)
    assert result.output == City("Bern", 5)
    assert talk.prompts[2][:2] == talk.prompts[1][:2] == ["user: before", "assistant: 0"]
    assert talk.prompts[2][2].startswith(f"user: where?{AGAIN}")
    assert "invalid JSON" in talk.prompts[2][2]
    assert talk.prompts[3][2] == f"user: where?{AGAIN}Expected `str`, got `int` - at `$.name`"
    assert len(talk.prompts[3]) == 3
    assert await talk.log() == ["user: before", "assistant: 0", "user: where?", f"assistant: {BERN}"]
    await talk.client.call("thanks", session_id="s")
    assert talk.prompts[4][2] == "user: where?"


async def test_the_problem_is_said_with_the_media_still_there() -> None:
    image = MediaPart(url="https://example.org/bern.png")
    model = AsyncScriptedModel(["nonsense", BERN])
    await AsyncChatClient(model).call(UserMessage([TextPart("where?"), image]), output_type=City)
    (message,) = model.prompts[1].messages
    assert isinstance(message, UserMessage)
    assert message.parts[:2] == (TextPart("where?"), image)


async def test_after_tools_the_problem_stands_behind_the_question() -> None:
    model = AsyncScriptedModel([asks("c1"), "nonsense", BERN])
    result = await AsyncChatClient(model, tools=[look_up]).call("where?", output_type=City)
    assert (result.output, result.rounds) == (City("Bern", 5), 2)
    assert [said.partition(":")[0] for said in lines(model.prompts[2].messages)] == ["user", "assistant", "tool c1"]


async def test_a_request_without_a_user_message_gets_one() -> None:
    model = AsyncScriptedModel(["nonsense", BERN])
    await AsyncChatClient(model).call(AssistantMessage("Let me think."), output_type=City)
    assert [said.partition(":")[0] for said in lines(model.prompts[1].messages)] == ["assistant", "user"]


async def test_a_reply_with_tool_calls_ends_the_retries(service: AsyncSessionService) -> None:
    """It asks for tools first, whatever its text."""
    talk = Talk(service, "nonsense", asks("c1", text="let me look"), BERN, tools=[look_up])
    result = await talk.client.call("where?", session_id="s", output_type=City)
    assert (result.output, len(talk.prompts)) == (City("Bern", 5), 3)
    assert await talk.log() == [
        *("user: where?", "assistant: let me look + calls c1", "tool c1: found c1"),
        f"assistant: {BERN}",
    ]


@pytest.mark.parametrize("retries", [0, 1, 3])
async def test_an_answer_that_never_fits_is_an_error_and_not_stored(service: AsyncSessionService, retries: int) -> None:
    """So that the run can be made again (H-8)."""
    talk = Talk(service)
    model = AsyncScriptedModel([*["nonsense"] * (retries + 1), BERN])
    client = AsyncChatClient(model, advisors=talk.advisors, output_retries=retries)
    with pytest.raises(InvalidReplyError, match="cannot be read as it was asked for"):
        await client.call("where?", session_id="s", run_id="r", output_type=City)
    assert len(model.prompts) == retries + 1
    assert await talk.log() == ["user: where?"]
    assert (await client.call("where?", session_id="s", run_id="r", output_type=City)).output == City("Bern", 5)


async def test_the_usage_of_retries_counts() -> None:
    said = [Reply(message=AssistantMessage(text), usage=Usage(1, 10)) for text in ("", "nonsense", BERN)]
    result = await AsyncChatClient(AsyncScriptedModel(said)).call("where?", output_type=City)
    assert (result.usage, result.rounds) == (Usage(3, 30), 1)


async def test_a_turn_that_ends_without_a_reply_has_no_output(service: AsyncSessionService) -> None:
    talk = Talk(service, asks("c1", name="hand_over"), tools=[DIRECT])
    result = await talk.client.call("where?", session_id="s", output_type=City)
    assert (result.outcome, result.output) == (Outcome.DIRECT, None)


async def test_a_stored_reply_is_read_too(service: AsyncSessionService) -> None:
    """H-8: a finished run is answered from the log, in the type that is asked for."""
    talk = Talk(service, BERN)
    await talk.client.call("where?", session_id="s", run_id="r")
    assert (await talk.client.call("where?", session_id="s", run_id="r", output_type=Town)).output == Town("Bern", 5)
    with pytest.raises(InvalidReplyError, match="the reply is no list"):
        await talk.client.call("where?", session_id="s", run_id="r", output_type=list[int])


async def test_a_stream_has_an_output(service: AsyncSessionService) -> None:
    """The deltas of every attempt are heard."""
    talk = Talk(service, "nonsense", BERN)
    async with talk.client.stream("where?", session_id="s", output_type=City) as stream:
        heard = "".join([delta.text async for delta in stream])
        assert (await stream.result()).output == City("Bern", 5)
    assert heard == "nonsense" + BERN
    assert len(await talk.log()) == 2
