"""H-8: a call can be made again under its run id; what is stored already is not done again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chat._async.talking import Talk
from tests.chat.speaking import DIRECT, asks, look_up
from turnlog import AsyncSessionService, MessageType, SessionEvent, ToolMessage, ToolResult, UserMessage
from turnlog.chat import Limits, Outcome, ToolContext
from turnlog.errors import AppendOutcomeUnknownError, InvalidValueError, RunMismatchError, RunSupersededError
from turnlog.log.message_filter import MessageFilter
from turnlog.models.scripted import Line
from turnlog.testing.factories import user


async def stored(service: AsyncSessionService) -> list[SessionEvent]:
    return await service.events("s")


async def test_every_event_of_a_turn_names_its_run(service: AsyncSessionService) -> None:
    talk = Talk(service, asks("c1"), "done", tools=[look_up])
    result = await talk.client.call("hi", session_id="s", run_id="r1")
    assert {event.run_id for event in await stored(service)} == {"r1"}
    assert result.session.run_id == "r1"


async def test_without_a_run_id_each_call_has_a_fresh_one(service: AsyncSessionService) -> None:
    talk = Talk(service, "1", "2")
    first = await talk.client.call("hi", session_id="s")
    second = await talk.client.call("hi", session_id="s")
    assert first.session.run_id != second.session.run_id
    assert [event.run_id for event in await stored(service)] == [first.session.run_id] * 2 + [second.session.run_id] * 2


async def test_a_finished_run_returns_the_stored_reply_without_a_model_call(service: AsyncSessionService) -> None:
    talk = Talk(service, asks("c1"), "done", tools=[look_up])
    first = await talk.client.call("hi", session_id="s", run_id="r")
    again = await talk.client.call("hi", session_id="s", run_id="r")
    assert (again.text, again.outcome, again.rounds) == ("done", Outcome.REPLY, 0)
    assert again.session.response_event_ids == first.session.response_event_ids
    assert again.session.request_event_id == first.session.request_event_id
    assert len(talk.prompts) == 2
    assert len(await stored(service)) == 4


@pytest.mark.parametrize("limits", [Limits(), Limits(calls=1)])
async def test_a_run_that_ended_without_a_model_round_returns_its_results(
    service: AsyncSessionService, limits: Limits
) -> None:
    name = "hand_over" if limits == Limits() else "look_up"
    talk = Talk(service, asks("c1", "c2", name=name), tools=[look_up, DIRECT], limits=limits)
    first = await talk.client.call("hi", session_id="s", run_id="r")
    again = await talk.client.call("hi", session_id="s", run_id="r")
    assert (again.outcome, again.results, again.text) == (first.outcome, first.results, first.text)
    assert again.message == first.message
    assert again.session.response_event_ids == first.session.response_event_ids
    assert again.session.request_event_id == first.session.request_event_id
    assert len(await stored(service)) == 4


async def test_a_finished_run_stays_finished_when_the_conversation_has_gone_on(service: AsyncSessionService) -> None:
    talk = Talk(service, "1", "2")
    await talk.client.call("a", session_id="s", run_id="r1")
    await talk.client.call("b", session_id="s", run_id="r2")
    assert (await talk.client.call("a", session_id="s", run_id="r1")).text == "1"
    assert len(await stored(service)) == 4


async def test_a_run_whose_model_failed_is_asked_again(service: AsyncSessionService) -> None:
    talk = Talk(service, "0", ConnectionError(), "done")
    await talk.client.call("before", session_id="s")
    with pytest.raises(ConnectionError):
        await talk.client.call("hi", session_id="s", run_id="r")
    assert (await talk.client.call("hi", session_id="s", run_id="r")).text == "done"
    assert talk.prompts[1] == talk.prompts[2] == ["user: before", "assistant: 0", "user: hi"]
    assert await talk.log() == ["user: before", "assistant: 0", "user: hi", "assistant: done"]


async def test_an_unfinished_run_goes_on_behind_its_last_step(service: AsyncSessionService) -> None:
    """No tool runs again, no model round is asked again."""
    ran: list[str] = []

    def note(key: str) -> str:
        ran.append(key)
        return f"noted {key}"

    said: list[Line] = [asks("c1", name="note"), asks("c2", name="note"), ConnectionError(), "done"]
    talk = Talk(service, *said, tools=[note])
    with pytest.raises(ConnectionError):
        await talk.client.call("hi", session_id="s", run_id="r")
    result = await talk.client.call("hi", session_id="s", run_id="r")
    assert (result.text, result.rounds, ran) == ("done", 1, ["c1", "c2"])
    assert talk.prompts[3] == talk.prompts[2]
    assert await talk.log() == [
        *("user: hi", "assistant: calls c1", "tool c1: noted c1"),
        *("assistant: calls c2", "tool c2: noted c2", "assistant: done"),
    ]


async def test_missing_results_are_made_by_running_the_calls(
    service: AsyncSessionService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of a batch's, with the idempotency keys of the first attempt; B67: a retry appends what was not stored."""
    keys: list[str] = []

    def note(key: str, context: ToolContext) -> str:
        keys.append(f"{key} {context.idempotency_key}")
        return f"noted {key}"

    append = service.repository.append

    async def failing(session_id: str, events: Any, **options: Any) -> Any:
        if isinstance(events[0].message, ToolMessage):
            raise ConnectionError
        return await append(session_id, events, **options)

    limits = Limits(rounds=1, calls=2)  # what the first attempt has asked for is asked for once
    talk = Talk(service, asks("c1", "c2", name="note"), "done", tools=[note], limits=limits)
    with monkeypatch.context() as patch:
        patch.setattr(service.repository, "append", failing)
        with pytest.raises(ConnectionError):
            await talk.client.call("hi", session_id="s", run_id="r")
    assert await talk.log() == ["user: hi", "assistant: calls c1, c2"]
    assert (await talk.client.call("hi", session_id="s", run_id="r")).text == "done"
    assert sorted(keys) == sorted([*set(keys)] * 2)
    assert len(set(keys)) == 2
    assert (await talk.log())[2:] == ["tool c1: noted c1", "tool c2: noted c2", "assistant: done"]


async def test_keys_of_other_calls_are_others(service: AsyncSessionService) -> None:
    """H-8: never of tool-call ids alone, which models use again: two rounds, two turns, two sessions."""
    keys: list[str] = []

    def note(key: str, context: ToolContext) -> str:
        keys.append(context.idempotency_key)
        return f"noted {key}"

    said: list[Line] = [asks("1", name="note"), asks("1", name="note"), "done"]
    talk = Talk(service, *said, *said, *said, tools=[note])
    await talk.client.call("hi", session_id="s")
    await talk.client.call("hi", session_id="s")
    await talk.client.call("hi", session_id="t")
    assert len(set(keys)) == len(keys) == 6


async def test_reused_call_ids_are_calls_of_their_own(service: AsyncSessionService) -> None:
    """The same call with the same result, round by round and turn by turn: all of them are stored and sent."""
    said: list[Line] = [asks("1"), asks("1"), "done"]
    talk = Talk(service, *said, *said, tools=[look_up])
    await talk.client.call("hi", session_id="s")
    await talk.client.call("hi", session_id="s")
    turn = ["user: hi", *["assistant: calls 1", "tool 1: found 1"] * 2, "assistant: done"]
    assert await talk.log() == turn * 2
    assert talk.prompts[5] == (turn * 2)[:-1]
    events = await stored(service)
    assert len({event.id for event in events}) == len(events)


async def test_the_same_words_under_another_run_id_are_another_turn(service: AsyncSessionService) -> None:
    """A second "yes"."""
    talk = Talk(service, "1", "2")
    await talk.client.call("yes", session_id="s", run_id="r1")
    await talk.client.call("yes", session_id="s", run_id="r2")
    assert await talk.log() == ["user: yes", "assistant: 1", "user: yes", "assistant: 2"]


async def test_equal_contents_within_a_run_are_stored_each(service: AsyncSessionService) -> None:
    talk = Talk(service, "yes")
    await talk.client.call([UserMessage("yes"), UserMessage("yes")], session_id="s", run_id="r")
    events = await stored(service)
    assert [event.content.type for event in events] == [MessageType.USER, MessageType.USER, MessageType.ASSISTANT]
    assert len({event.id for event in events}) == 3


async def test_the_ids_of_a_run_depend_on_nothing_else(service: AsyncSessionService) -> None:
    """The same run in another session gets the same ids: a retry after a lost session, or in another process."""
    talk = Talk(service, asks("c1"), "done", asks("c1"), "done", tools=[look_up])
    await talk.client.call("hi", session_id="s", run_id="r")
    await talk.client.call("hi", session_id="t", run_id="r")
    assert [event.id for event in await stored(service)] == [event.id for event in await service.events("t")]


async def test_a_run_on_another_branch_is_another_run(service: AsyncSessionService) -> None:
    """A sub-agent may be given its caller's run id."""
    talk = Talk(service, "1", "2")
    await talk.client.call("a", session_id="s", run_id="r")
    await talk.client.call("b", session_id="s", run_id="r", branch="x")
    assert (await talk.client.call("a", session_id="s", run_id="r")).text == "1"
    assert (await talk.client.call("b", session_id="s", run_id="r", branch="x")).text == "2"
    assert len(await stored(service)) == 4


@pytest.mark.parametrize("number", [1, 2, 3, 4])
async def test_a_lost_answer_to_an_append_is_settled_by_the_ids(
    service: AsyncSessionService, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """R-14: it may have been stored or not; appending again is safe, and the call goes on."""
    append, appends = service.repository.append, 0

    async def losing(session_id: str, events: Any, **options: Any) -> Any:
        nonlocal appends
        appends += 1
        done = await append(session_id, events, **options)
        if appends == number:
            raise AppendOutcomeUnknownError(session_id, tuple(event.id for event in events))
        return done

    monkeypatch.setattr(service.repository, "append", losing)
    talk = Talk(service, asks("c1"), "done", tools=[look_up])
    assert (await talk.client.call("hi", session_id="s")).text == "done"
    assert await talk.log() == ["user: hi", "assistant: calls c1", "tool c1: found c1", "assistant: done"]
    assert appends == 5


@pytest.mark.parametrize("finished", [True, False])
async def test_other_user_messages_under_a_known_run_are_refused(
    service: AsyncSessionService,
    finished: bool,  # noqa: FBT001 - parametrized
) -> None:
    talk = Talk(service, "1" if finished else ConnectionError(), "2")
    try:
        await talk.client.call("a", session_id="s", run_id="r")
    except ConnectionError:
        assert not finished
    before = await talk.log()
    for other in ("b", [UserMessage("a"), UserMessage("b")]):
        with pytest.raises(RunMismatchError, match="run 'r' of session 's'"):
            await talk.client.call(other, session_id="s", run_id="r")
    assert await talk.log() == before


async def test_an_unfinished_run_that_the_conversation_has_left_is_refused(service: AsyncSessionService) -> None:
    talk = Talk(service, ConnectionError(), "2", "never")
    with pytest.raises(ConnectionError):
        await talk.client.call("a", session_id="s", run_id="r1")
    await talk.client.call("b", session_id="s", run_id="r2")
    with pytest.raises(RunSupersededError) as caught:
        await talk.client.call("a", session_id="s", run_id="r1")
    assert (caught.value.session_id, caught.value.run_id) == ("s", "r1")
    assert await talk.log() == ["user: a", "user: b", "assistant: 2"]


@pytest.mark.parametrize("how", ["clear", "rewind"])
async def test_a_run_that_has_left_the_view_is_refused(service: AsyncSessionService, how: str) -> None:
    talk = Talk(service, "1", ConnectionError(), "never")
    await talk.client.call("a", session_id="s")
    with pytest.raises(ConnectionError):
        await talk.client.call("b", session_id="s", run_id="r")
    if how == "clear":
        await service.clear("s")
    else:
        await service.rewind("s", 2)
    with pytest.raises(RunSupersededError):
        await talk.client.call("b", session_id="s", run_id="r")


async def test_the_history_of_a_retry_is_that_of_the_first_attempt(service: AsyncSessionService) -> None:
    """What was noted in between by others is behind the run's beginning, and no part of its history."""
    talk = Talk(service, "0", ConnectionError(), "done")
    await talk.client.call("before", session_id="s")
    with pytest.raises(ConnectionError):
        await talk.client.call("hi", session_id="s", run_id="r")
    await service.append("s", user(50, "a sub-agent's", branch="x"))
    await talk.client.call("hi", session_id="s", run_id="r")
    assert talk.prompts[2] == talk.prompts[1]


async def test_what_the_filter_kept_out_is_asked_again(service: AsyncSessionService) -> None:
    """H-8, M-1: a reply that is not stored is not known."""
    kept = MessageFilter.by_message_type(MessageType.USER)
    talk = Talk(service, "1", "2", message_filter=kept)
    assert (await talk.client.call("a", session_id="s", run_id="r")).text == "1"
    assert (await talk.client.call("a", session_id="s", run_id="r")).text == "2"
    assert talk.prompts == [["user: a"]] * 2
    assert await talk.log() == ["user: a"]


async def test_a_run_whose_opening_was_kept_out_goes_on(service: AsyncSessionService) -> None:
    kept = MessageFilter.by_message_type(MessageType.ASSISTANT)
    talk = Talk(service, asks("c1"), ConnectionError(), "done", tools=[look_up], message_filter=kept)
    with pytest.raises(ConnectionError):
        await talk.client.call("a", session_id="s", run_id="r")
    await talk.client.call("a", session_id="s", run_id="r")
    assert talk.prompts[2] == talk.prompts[1] == ["user: a", "assistant: calls c1", "tool c1: found c1"]
    assert await talk.log() == ["assistant: calls c1", "tool c1: found c1", "assistant: done"]


async def test_results_that_a_caller_sends_are_an_opening_too(service: AsyncSessionService) -> None:
    """A host that ran a tool itself goes on with its result, and may do so again."""
    found = ToolMessage((ToolResult("c1", "found"),))
    talk = Talk(service, ConnectionError(), "done")
    with pytest.raises(ConnectionError):
        await talk.client.call([UserMessage("a"), asks("c1"), found], session_id="s", run_id="r")
    await talk.client.call([UserMessage("a"), asks("c1"), found], session_id="s", run_id="r")
    assert talk.prompts[1] == ["user: a", "assistant: calls c1", "tool c1: found"]
    assert await talk.log() == ["tool c1: found", "assistant: done"]


async def test_the_limits_hold_over_all_attempts(service: AsyncSessionService) -> None:
    """What an earlier attempt has spent counts."""
    talk = Talk(service, asks("a"), ConnectionError(), asks("b", "c"), tools=[look_up], limits=Limits(calls=2))
    with pytest.raises(ConnectionError):
        await talk.client.call("hi", session_id="s", run_id="r")
    result = await talk.client.call("hi", session_id="s", run_id="r")
    assert result.outcome is Outcome.LIMIT
    assert [(each.id, each.status) for each in result.results] == [("b", "ok"), ("c", "not_run")]


@pytest.mark.parametrize("wrong", ["", 7, "a\nb", "x" * 256])
async def test_a_run_id_is_a_name(service: AsyncSessionService, wrong: Any) -> None:
    """R-8"""
    with pytest.raises(InvalidValueError, match="turnlog_run_id"):
        await Talk(service, "never").client.call("hi", session_id="s", run_id=wrong)


class TestPrincipals:
    """H-10: with a principal, a session of another, or of none, is refused; B116, B117."""

    async def test_a_session_that_the_call_creates_gets_it(self, service: AsyncSessionService) -> None:
        talk = Talk(service, "1", "2")
        given = {"team": "a"}
        await talk.client.call("hi", session_id="s", principal="ada", session_metadata=given)
        session = await service.find("s")
        assert session is not None
        assert (session.principal, session.metadata["team"], given) == ("ada", "a", {"team": "a"})
        await talk.client.call("hi", session_id="s", principal="ada")
        assert len(await stored(service)) == 4

    @pytest.mark.parametrize("owner", ["grace", "Ada", None])
    async def test_another_session_is_refused(self, service: AsyncSessionService, owner: str | None) -> None:
        await service.create("s", principal=owner)
        talk = Talk(service, "never")
        with pytest.raises(PermissionError, match="does not belong to 'ada'"):
            await talk.client.call("hi", session_id="s", principal="ada")
        assert not talk.prompts
        assert await talk.log() == []

    async def test_without_a_principal_nothing_is_asked(self, service: AsyncSessionService) -> None:
        await service.create("s", principal="grace")
        assert (await Talk(service, "1").client.call("hi", session_id="s")).text == "1"
