"""H-1: recorded conversations, held again through the client with their tools, are stored as they were recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.log.conversations import conversations
from turnlog import (
    AssistantMessage,
    AsyncSessionService,
    Message,
    SessionService,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from turnlog.chat import AsyncChatClient, AsyncSessionAdvisors, ChatClient, ChatResult, Outcome, SessionAdvisors
from turnlog.chat.replay import replay_tools
from turnlog.compaction import TurnCountTrigger, WindowCompactionStrategy
from turnlog.errors import InvalidValueError, RecordingEndedError, RecordingMismatchError
from turnlog.log.messages import MessageMetadata, ToolStatus
from turnlog.models import (
    AsyncChatModel,
    AsyncReplayModel,
    ChatModel,
    Prompt,
    Recording,
    ReplayModel,
    Reply,
    Usage,
    turns_of,
)


def ask(*calls: tuple[str, str]) -> AssistantMessage:
    """A reply that calls tools, by id and name."""
    return AssistantMessage(tool_calls=[ToolCall(id_, name, "{}") for id_, name in calls])


def result(id_: str, text: str) -> ToolMessage:
    return ToolMessage((ToolResult(id_, text),))


#: Two turns; the id is used twice, and the second time the results come back in another order.
TALK: list[Message] = [
    SystemMessage("Be brief."),
    UserMessage("One?"),
    ask(("a", "look")),
    result("a", "first"),
    AssistantMessage("One."),
    UserMessage("Two?"),
    UserMessage("And three?"),
    ask(("a", "look"), ("b", "look")),
    result("b", "third"),
    result("a", "second"),
    AssistantMessage("Three."),
]


@pytest.fixture(scope="module")
def recordings(data: Path) -> list[tuple[str, list[Message]]]:
    """All recorded conversations."""
    return list(conversations(data))


def replayed(messages: Sequence[Message], advisors: SessionAdvisors, *, strict: bool = True) -> list[ChatResult]:
    """Hold the conversation again, as far as it goes."""
    recording = turns_of(messages)
    client = ChatClient(ReplayModel(messages, strict=strict), advisors=advisors, tools=replay_tools(messages))
    results: list[ChatResult] = []
    for at, request in enumerate(recording.requests):
        if recording.ends_in_request and at == len(recording.requests) - 1:
            with pytest.raises(RecordingEndedError):
                client.call((*recording.systems, *request), session_id="s")
        else:
            results.append(client.call((*recording.systems, *request), session_id="s"))
    return results


def stored(service: SessionService) -> list[Message]:
    return [event.content for event in service.events("s") if event.is_message and not event.is_synthetic]


def test_every_recording_is_stored_as_it_was_recorded(recordings: list[tuple[str, list[Message]]]) -> None:
    """H-3, H-4: with the whole view in each prompt, which the model checks, and whatever the recording ends in."""
    for name, messages in recordings:
        with SessionService.open("memory:") as service:
            results = replayed(messages, SessionAdvisors(service))
            said = [message for message in messages if not isinstance(message, SystemMessage)]
            assert stored(service) == said, name
            ends = Outcome.DIRECT if isinstance(messages[-1], ToolMessage) else Outcome.REPLY
            assert [each.outcome for each in results] == [Outcome.REPLY] * (len(results) - 1) + [ends], name


def test_a_recording_is_stored_whole_while_its_view_is_compacted(recordings: list[tuple[str, list[Message]]]) -> None:
    compacted = 0
    for name, messages in recordings[:40]:
        with SessionService.open("memory:") as service:
            advisors = SessionAdvisors(
                service,
                compaction_trigger=TurnCountTrigger(3),
                compaction_strategy=WindowCompactionStrategy(last_turns=1),
            )
            replayed(messages, advisors, strict=False)
            assert stored(service) == [each for each in messages if not isinstance(each, SystemMessage)], name
            compacted += sum(not event.is_message for event in service.events("s"))
    assert compacted > 40


def test_a_recording_is_held_again_in_tasks() -> None:
    async def hold() -> list[Message]:
        recording = turns_of(TALK)
        async with AsyncSessionService.open("memory:") as service:
            client = AsyncChatClient(
                AsyncReplayModel(TALK), advisors=AsyncSessionAdvisors(service), tools=replay_tools(TALK)
            )
            said = ""
            for request in recording.requests:
                async with client.stream((*recording.systems, *request), session_id="s") as stream:
                    said += "".join([delta.text async for delta in stream])
                    assert said.endswith((await stream.result()).text)
            assert said == "One.Three."
            return [event.content for event in await service.events("s")]

    kept = asyncio.run(hold())
    assert kept[:7] == TALK[1:8]
    # Results stand in the order of the calls.
    assert kept[7:] == [TALK[9], TALK[8], TALK[10]]


def test_turns_of_a_recording() -> None:
    assert turns_of(TALK) == Recording(
        systems=(SystemMessage("Be brief."),),
        requests=((UserMessage("One?"),), (UserMessage("Two?"), UserMessage("And three?"))),
        ends_in_results=False,
        ends_in_request=False,
    )
    assert turns_of(TALK[:4]).ends_in_results
    assert turns_of(TALK[:7]).ends_in_request
    assert turns_of([]) == Recording((), (), ends_in_results=False, ends_in_request=False)


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([AssistantMessage("Hello.")], r"messages\[0\]: a reply stands before the first request"),
        ([UserMessage("?"), AssistantMessage("1"), AssistantMessage("2")], r"messages\[2\]: a second reply"),
        ([UserMessage("?"), result("a", "!")], r"messages\[1\]: a tool's result follows no call"),
        ([UserMessage("?"), AssistantMessage("1"), result("a", "!")], r"messages\[2\]: a tool's result follows no"),
        ([UserMessage("?"), ask(("a", "f"), ("b", "f")), result("a", "!")], r"messages\[1\]: call 'b' has no result"),
    ],
)
def test_what_no_client_holds_is_refused_with_its_place(messages: list[Message], problem: str) -> None:
    with pytest.raises(InvalidValueError, match=problem):
        turns_of(messages)


def test_a_recording_may_break_off_in_the_middle_of_calls() -> None:
    assert turns_of([UserMessage("?"), ask(("a", "f"))]).requests == ((UserMessage("?"),),)


@given(end=st.integers(0, len(TALK) - 1), at=st.integers(0, len(TALK) - 1), text=st.text(min_size=1))
def test_a_changed_prompt_is_refused_with_its_place(end: int, at: int, text: str) -> None:
    """Of a prompt that ends before a reply, any one message is changed; instructions may be others."""
    prompt = list(TALK[:end])
    at %= max(end, 1)
    model = ReplayModel(TALK)
    if end and isinstance(prompt[at], UserMessage):
        prompt[at] = UserMessage(f"{prompt[at].text} {text}")
        with pytest.raises(RecordingMismatchError) as refused:
            model.generate(Prompt(messages=tuple(prompt)))
        assert refused.value.place == f"messages[{at}]"
    elif isinstance(TALK[end], AssistantMessage):
        prompt[0] = SystemMessage(text)
        assert model.generate(Prompt(messages=tuple(prompt))).message == TALK[end]


@pytest.mark.parametrize("end", [0, 1, 3, 5, 6, 8])
def test_a_prompt_that_does_not_end_before_a_reply_is_refused(end: int) -> None:
    with pytest.raises(RecordingMismatchError, match="the prompt ends, and the recording goes on with") as refused:
        ReplayModel(TALK).generate(Prompt(messages=tuple(TALK[:end])))
    assert refused.value.place == f"messages[{end}]"


@pytest.mark.parametrize("more", [[], [UserMessage("More?")]])
def test_behind_its_end_a_recording_has_no_reply(more: list[Message]) -> None:
    with pytest.raises(RecordingEndedError, match="it has 4 replies"):
        ReplayModel(TALK).generate(Prompt(messages=(*TALK, *more)))


def test_a_model_that_is_not_strict_plays_in_order_whatever_it_is_asked() -> None:
    model = ReplayModel(TALK, strict=False)
    prompt = Prompt(messages=(UserMessage("Well?"),))
    replies = [message for message in TALK if isinstance(message, AssistantMessage)]
    assert [model.generate(prompt).message for _ in replies] == replies
    with pytest.raises(RecordingEndedError) as ended:
        model.generate(prompt)
    assert ended.value.replies == len(replies)
    assert model.prompts == [prompt] * 5


def test_a_reply_has_the_usage_that_was_recorded_with_it() -> None:
    counted = AssistantMessage("Yes.", metadata={MessageMetadata.USAGE: {"input_tokens": 3, "output_tokens": 1}})
    broken = AssistantMessage("Yes.", metadata={MessageMetadata.USAGE: {"input_tokens": None}})
    for message, usage in ((counted, Usage(3, 1)), (broken, None), (AssistantMessage("Yes."), None)):
        model = ReplayModel([UserMessage("?"), message])
        assert model.generate(Prompt(messages=(UserMessage("?"),))) == Reply(message=message, usage=usage)


def test_replaying_models_are_models() -> None:
    assert isinstance(ReplayModel(TALK), ChatModel)
    assert isinstance(AsyncReplayModel(TALK), AsyncChatModel)


def test_results_are_given_as_they_were_whatever_the_arguments() -> None:
    """H-9: broken arguments would be an error for any other tool; here the recording says what came of them."""
    messages: list[Message] = [
        UserMessage("?"),
        AssistantMessage(tool_calls=[ToolCall("a", "f", "{broken")]),
        ToolMessage((ToolResult("a", "no such thing", ToolStatus.ERROR, "f"),)),
        AssistantMessage("No."),
    ]
    with SessionService.open("memory:") as service:
        replayed(messages, SessionAdvisors(service))
        assert stored(service) == messages


def test_a_call_without_a_recorded_result_is_not_run() -> None:
    messages: list[Message] = [UserMessage("?"), ask(("a", "f"))]
    with SessionService.open("memory:") as service:
        client = ChatClient(ReplayModel(messages), advisors=SessionAdvisors(service), tools=replay_tools(messages))
        with pytest.raises(RecordingEndedError):
            client.call("?", session_id="s")
        last = stored(service)[-1]
        assert isinstance(last, ToolMessage)
        assert last.results[0].status is ToolStatus.NOT_RUN
