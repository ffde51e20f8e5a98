"""Random conversations: whatever fails, nothing is half stored, and the next prompt is one that a provider takes."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.chat.scripts import (
    LAST_WORDS,
    Play,
    Script,
    cancelled_at,
    play,
    play_in_tasks,
    scripts,
    tools,
    users_of,
)
from tests.chat.strict import check_prompt
from turnlog.chat import AsyncChatClient, AsyncSessionAdvisors
from turnlog.log.events import SessionEvent
from turnlog.log.messages import AssistantMessage, ToolMessage, UserMessage
from turnlog.models.scripted import AsyncScriptedModel
from turnlog.service import AsyncSessionService


def check(made: Play) -> None:
    """What holds whatever has failed."""
    for prompt in made.prompts:
        check_prompt(prompt.messages)
    check_log(made.log)
    said = Counter(event.content.text for event in made.log if isinstance(event.message, UserMessage))
    assert said[LAST_WORDS] == 1
    assert max(said.values()) == 1, "a user message was stored twice"
    assert made.endings[-1] == "reply"


def check_log(log: list[SessionEvent]) -> None:
    """Each batch of results is whole, or not there at all; positions are contiguous, ids unique."""
    assert [event.position for event in log] == list(range(1, len(log) + 1))
    assert len({event.id for event in log}) == len(log)
    for index, event in enumerate(log):
        if not isinstance(event.message, AssistantMessage) or not event.message.tool_calls:
            continue
        answered = []
        for following in log[index + 1 :]:
            if not isinstance(following.message, ToolMessage):
                break
            answered += [result.id for result in following.message.results]
        assert answered in ([], [call.id for call in event.message.tool_calls])


def told(made: Play) -> list[tuple[str, object, str | None]]:
    return [(event.id, event.message, event.run_id) for event in made.log[:-2]]


@given(scripts())
def test_calls_and_streams_of_threads_and_tasks_leave_the_same_log(script: Script) -> None:
    """H-7: call, stream, sync and async are one code path; H-8: a retry with its run id stores nothing twice."""
    first = play(script, is_stream=False)
    check(first)
    for other in (
        play(script, is_stream=True),
        play_in_tasks(script, is_stream=False),
        play_in_tasks(script, is_stream=True),
    ):
        check(other)
        assert told(other) == told(first)
        assert other.endings == first.endings


@given(scripts(leaving=True))
def test_streams_that_are_left_leave_the_same_usable_log(script: Script) -> None:
    """H-7: the user's message once, no dangling call shown to a model, the partial reply dropped."""
    first = play(script, is_stream=True)
    check(first)
    second = play_in_tasks(script, is_stream=True)
    check(second)
    assert told(second) == told(first)


@given(scripts(), st.integers(0, 60), st.booleans())
async def test_a_cancelled_call_leaves_a_log_that_the_next_turn_can_use(
    script: Script,
    step: int,
    retries: bool,  # noqa: FBT001 - drawn by Hypothesis
) -> None:
    """H-13, CASE B18: wherever it is cut short; writes are whole or absent."""
    made = Play(script)
    async with AsyncSessionService.open("memory:") as service:
        client = AsyncChatClient(
            AsyncScriptedModel(made.lines()),
            advisors=AsyncSessionAdvisors(service),
            tools=tools(),
            limits=script.limits,
        )
        turn = script.turns[0]
        said = users_of(0, turn)
        await cancelled_at(step, lambda: client.call(said, session_id="s", run_id="run-0"))
        if retries:
            for _ in range(2):
                await cancelled_at(10_000, lambda: client.call(said, session_id="s", run_id="run-0"))
        made.endings.append(str((await client.call(LAST_WORDS, session_id="s")).outcome))
        made.log = await service.events("s")
    check(made)
