"""Every recorded conversation, driven through the client: what is stored, and what each prompt holds (H-3 to H-6)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.chat.replaying import Recording, in_batches, recording_of
from tests.chat.strict import check_prompt
from tests.log.conversations import conversations
from turnlog import EventFilter, MessageType, SessionService
from turnlog.chat import AsyncChatClient, AsyncSessionAdvisors, ChatClient, SessionAdvisors
from turnlog.compaction import TurnCountTrigger, WindowCompactionStrategy
from turnlog.log.messages import Message
from turnlog.models.scripted import AsyncScriptedModel, ScriptedModel
from turnlog.service import AsyncSessionService

SPOKEN = EventFilter(message_types={MessageType.USER, MessageType.ASSISTANT})


@pytest.fixture(scope="session")
def recorded(data: Path) -> list[tuple[str, list[Message]]]:
    return list(conversations(data))


def driven(
    recording: Recording, advisors: SessionAdvisors, service: SessionService, *, is_stream: bool = False
) -> None:
    """Make every call, check every prompt, and check in the end that the log holds the recording."""
    model = ScriptedModel(recording.replies)
    client = ChatClient(model, advisors=advisors, system=recording.system, tools=recording.tools(), tools_at_once=1)
    for request in recording.requests:
        if is_stream:
            with client.stream(request, session_id="s") as stream:
                said = "".join(delta.text for delta in stream)
                result = stream.result()
            assert said.endswith(result.message.text if result.message else "")
        else:
            result = client.call(request, session_id="s")
    assert len(model.prompts) == len(recording.replies)
    for prompt in model.prompts:
        check_prompt(prompt.messages)
        assert recording.system is None or prompt.messages[0] == recording.system
    kept = service.events("s", EventFilter.real_only())
    assert [event.message for event in kept] == list(recording.stored)


@pytest.mark.parametrize("is_stream", [False, True], ids=["call", "stream"])
def test_a_recording_is_stored_as_it_was(recorded: Sequence[tuple[str, list[Message]]], *, is_stream: bool) -> None:
    """The whole history is in every prompt: the last holds all that was said before."""
    for name, messages in recorded:
        recording = recording_of(messages)
        with SessionService.open("memory:") as service:
            driven(recording, SessionAdvisors(service), service, is_stream=is_stream)
            assert service.version("s") == len(recording.stored), name


async def test_a_recording_is_stored_as_it_was_by_tasks(recorded: Sequence[tuple[str, list[Message]]]) -> None:
    for _, messages in recorded:
        recording = recording_of(messages)
        async with AsyncSessionService.open("memory:") as service:
            client = AsyncChatClient(
                AsyncScriptedModel(recording.replies),
                advisors=AsyncSessionAdvisors(service),
                system=recording.system,
                tools=recording.tools(),
                tools_at_once=1,
            )
            for request in recording.requests:
                await client.call(request, session_id="s")
            assert [event.message for event in await service.events("s")] == list(recording.stored)


def test_a_recording_on_sqlite(recorded: Sequence[tuple[str, list[Message]]], tmp_path: Path) -> None:
    for number, (_, messages) in enumerate(recorded[::6]):
        with SessionService.open(f"sqlite:{tmp_path}/{number}.db") as service:
            driven(recording_of(messages), SessionAdvisors(service, event_filter=EventFilter.last(5)), service)


@pytest.mark.parametrize("last", range(1, 31))
def test_with_every_window_every_prompt_is_valid(recorded: Sequence[tuple[str, list[Message]]], last: int) -> None:
    for _, messages in recorded:
        with SessionService.open("memory:") as service:
            driven(recording_of(messages), SessionAdvisors(service, event_filter=EventFilter.last(last)), service)


def test_with_tool_messages_hidden_every_prompt_is_valid(
    recorded: Sequence[tuple[str, list[Message]]], caplog: pytest.LogCaptureFixture
) -> None:
    """The calls left without results go too, and the log says why."""
    for _, messages in recorded:
        with SessionService.open("memory:") as service:
            driven(recording_of(messages), SessionAdvisors(service, event_filter=SPOKEN), service)
    assert "a filter that hides tool messages" in caplog.text


def test_with_compaction_after_every_second_turn(recorded: Sequence[tuple[str, list[Message]]]) -> None:
    compacted = 0
    for _, messages in recorded:
        with SessionService.open("memory:") as service:
            advisors = SessionAdvisors(
                service,
                compaction_trigger=TurnCountTrigger(2),
                compaction_strategy=WindowCompactionStrategy(last_turns=1),
            )
            driven(recording_of(messages), advisors, service)
            compacted += sum(event.is_boundary for event in service.events("s"))
    assert compacted > len(recorded)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("last", [None, 1, 4])
def test_with_parallel_calls(recorded: Sequence[tuple[str, list[Message]]], size: int, last: int | None) -> None:
    event_filter = None if last is None else EventFilter.last(last)
    for _, messages in recorded[::2]:
        with SessionService.open("memory:") as service:
            recording = recording_of(in_batches(messages, size))
            driven(recording, SessionAdvisors(service, event_filter=event_filter), service)
