"""H-7: a stream stores what a call stores, and whatever becomes of it, the next turn can use the log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from tests.chat._async.talking import Talk
from tests.chat.guarding import check_pairing
from tests.chat.speaking import DIRECT, asks, look_up
from turnlog import AssistantMessage, AsyncSessionService, UserMessage
from turnlog.chat import AsyncChatClient, AsyncSessionAdvisors, Limits, Outcome
from turnlog.errors import InvalidReplyError, MissingSessionIdError
from turnlog.log.message_filter import MessageFilter
from turnlog.models.protocol import Delta, Prompt, Reply, StreamItem
from turnlog.models.scripted import AsyncScriptedModel, Line

SCRIPTS: dict[str, list[Line]] = {
    "a reply": ["a reply that comes in pieces"],
    "tools": [asks("c1", "c2", text="let me look"), asks("c3"), "here it is"],
    "direct": [asks("c1", name="hand_over")],
    "limit": [asks(*"abcde")],
    "unknown tool": [asks("c1", name="nothing"), "done"],
    "an empty last word": [asks("c1"), AssistantMessage("")],
}


class Broken:
    """A model whose stream yields some items, and then raises or ends."""

    def __init__(self, items: list[StreamItem], error: Exception | None = None) -> None:
        self.items = items
        self.error = error
        self.closed = 0

    async def generate(self, prompt: Prompt) -> Reply:
        raise AssertionError(prompt)

    async def stream(self, prompt: Prompt) -> AsyncIterator[StreamItem]:
        assert prompt.messages
        try:
            for item in self.items:
                yield item
            if self.error is not None:
                raise self.error
        finally:
            self.closed += 1


@pytest.mark.parametrize("script", SCRIPTS)
async def test_a_stream_stores_what_a_call_stores(service: AsyncSessionService, script: str) -> None:
    """The same events, ids included, and the same result (B63)."""
    said = SCRIPTS[script]
    options = {"tools": [look_up, DIRECT], "limits": Limits(calls=4)}
    called = await Talk(service, *said, **options).client.call("hi", session_id="called", run_id="r")
    talk = Talk(service, *said, **options)
    async with talk.client.stream("hi", session_id="streamed", run_id="r") as stream:
        heard = "".join([delta.text async for delta in stream])
        streamed = await stream.result()
    events = [await service.events(name) for name in ("called", "streamed")]
    assert [event.replace(session_id="s") for event in events[0]] == [
        event.replace(session_id="s") for event in events[1]
    ]
    assert (streamed.text, streamed.outcome, streamed.results) == (called.text, called.outcome, called.results)
    assert (streamed.rounds, streamed.session.response_event_ids) == (called.rounds, called.session.response_event_ids)
    replies = [line.message if isinstance(line, Reply) else line for line in said]
    assert heard == "".join(reply if isinstance(reply, str) else getattr(reply, "text", "") for reply in replies)


async def test_the_stream_ends_only_when_the_reply_is_stored(service: AsyncSessionService) -> None:
    """H-13, B62"""
    talk = Talk(service, "a reply in pieces")
    async with talk.client.stream("hi", session_id="s") as stream:
        async for _ in stream:
            assert await talk.log() == ["user: hi"]
        assert await talk.log() == ["user: hi", "assistant: a reply in pieces"]


async def test_the_result_may_be_asked_for_at_once(service: AsyncSessionService) -> None:
    talk = Talk(service, asks("c1"), "done", tools=[look_up])
    async with talk.client.stream("hi", session_id="s") as stream:
        result = await stream.result()
        assert (await stream.result()) is result
        assert [delta async for delta in stream] == []
    assert (result.text, await stream.result()) == ("done", result)


async def test_a_stream_needs_no_block(service: AsyncSessionService) -> None:
    talk = Talk(service, "done")
    stream = talk.client.stream("hi", session_id="s")
    assert "".join([delta.text async for delta in stream]) == "done"
    assert len(await talk.log()) == 2


async def test_nothing_happens_before_it_is_begun(service: AsyncSessionService) -> None:
    talk = Talk(service, "never")
    stream = talk.client.stream("hi", session_id="s")
    await stream.close()
    with pytest.raises(InvalidReplyError, match="left before it had ended"):
        await stream.result()
    assert not talk.prompts
    assert not (await service.list()).sessions


async def test_a_finished_run_streams_nothing_and_has_a_result(service: AsyncSessionService) -> None:
    """H-8"""
    talk = Talk(service, "done")
    await talk.client.call("hi", session_id="s", run_id="r")
    async with talk.client.stream("hi", session_id="s", run_id="r") as stream:
        assert [delta async for delta in stream] == []
        assert (await stream.result()).text == "done"


Leave = Callable[[list[str]], bool]
PHASES: dict[str, tuple[Leave, list[str]]] = {
    "at the first delta": (lambda heard: len(heard) == 1, ["user: hi"]),
    "in the middle": (lambda heard: len(heard) == 2, ["user: hi"]),
    "at the first round's last delta": (lambda heard: "".join(heard).endswith("look"), ["user: hi"]),
    "after the tools": (
        lambda heard: "here" in "".join(heard),
        ["user: hi", "assistant: let me have a look + calls c1", "tool c1: found c1"],
    ),
    "at the last delta": (
        lambda heard: "".join(heard).endswith("in the end"),
        ["user: hi", "assistant: let me have a look + calls c1", "tool c1: found c1"],
    ),
}


@pytest.mark.parametrize("phase", PHASES)
async def test_an_abandoned_stream_leaves_a_log_that_the_next_turn_can_use(
    service: AsyncSessionService, phase: str
) -> None:
    """H-7: the question once, no dangling call, and the partial reply dropped; at once, whoever comes next."""
    leaves, stored = PHASES[phase]
    talk = Talk(service, asks("c1", text="let me have a look"), "here it is, in the end", "2", tools=[look_up])
    heard: list[str] = []
    async with talk.client.stream("hi", session_id="s") as stream:
        async for delta in stream:
            heard.append(delta.text)
            if leaves(heard):
                break
    assert leaves(heard)
    assert await talk.log() == stored
    with pytest.raises(InvalidReplyError, match="left before it had ended"):
        await stream.result()
    await talk.client.call("and?", session_id="s")
    assert talk.prompts[-1] == [*stored, "user: and?"]
    check_pairing(talk.model.prompts[-1].messages)


async def test_a_stream_that_is_entered_and_not_read(service: AsyncSessionService) -> None:
    await service.create("s")
    talk = Talk(service, "never", "2")
    async with talk.client.stream("hi", session_id="s"):
        pass
    assert await talk.log() in ([], ["user: hi"])
    await talk.client.call("and?", session_id="s")
    assert (await talk.log())[-2].startswith("user: and?")


async def test_a_stream_that_is_dropped_without_a_block_is_left_too(service: AsyncSessionService) -> None:
    """Nobody waits for it then; the next call finds the session free."""
    talk = Talk(service, "a long reply, in pieces", "2")
    async for _ in talk.client.stream("hi", session_id="s"):
        break
    await talk.client.call("and?", session_id="s")
    assert await talk.log() == ["user: hi", "user: and?", "assistant: 2"]


async def test_leaving_by_an_exception_is_leaving(service: AsyncSessionService) -> None:
    talk = Talk(service, "a long reply, in pieces", "2")

    async def read() -> None:
        async with talk.client.stream("hi", session_id="s") as stream:
            async for delta in stream:
                raise KeyError(delta.text)

    with pytest.raises(KeyError, match="a long"):
        await read()
    assert await talk.log() == ["user: hi"]
    assert (await talk.client.call("and?", session_id="s")).text


async def test_an_abandoned_run_can_be_made_again(service: AsyncSessionService) -> None:
    """H-8: with its run id, behind the last step."""
    talk = Talk(service, asks("c1", text="let me look"), "a reply in pieces", "the reply", tools=[look_up])
    async with talk.client.stream("hi", session_id="s", run_id="r") as stream:
        async for delta in stream:
            if delta.text.startswith("a reply"):
                break
    result = await talk.client.call("hi", session_id="s", run_id="r")
    assert (result.text, len(talk.prompts)) == ("the reply", 3)
    assert (await talk.log())[3:] == ["assistant: the reply"]


class TestPartialReplies:
    """H-7: with the option, what had come of a reply is stored, marked as interrupted."""

    async def left(self, service: AsyncSessionService, **options: object) -> Talk:
        talk = Talk(service, "one two three four five", "2", store_partial_replies=True, **options)
        async with talk.client.stream("hi", session_id="s", run_id="r") as stream:
            async for _ in stream:
                break
        return talk

    async def test_it_is_stored_and_marked(self, service: AsyncSessionService) -> None:
        talk = await self.left(service)
        events = await service.events("s")
        assert await talk.log() == ["user: hi", "assistant: one two "]
        assert [event.metadata.get("turnlog.interrupted") for event in events] == [None, True]
        await talk.client.call("and?", session_id="s")
        assert talk.prompts[1] == ["user: hi", "assistant: one two ", "user: and?"]

    async def test_a_retry_does_not_take_it_for_a_reply(self, service: AsyncSessionService) -> None:
        talk = await self.left(service)
        assert (await talk.client.call("hi", session_id="s", run_id="r")).text == "2"
        assert talk.prompts[1] == ["user: hi"]
        assert (await talk.client.call("hi", session_id="s", run_id="r")).text == "2"
        assert await talk.log() == ["user: hi", "assistant: one two ", "assistant: 2"]

    async def test_the_message_filter_is_asked(self, service: AsyncSessionService) -> None:
        """M-1: a rejected message is never written."""
        talk = await self.left(service, message_filter=~MessageFilter.contains_text("two"))
        assert await talk.log() == ["user: hi"]

    async def test_nothing_said_is_nothing_stored(self, service: AsyncSessionService) -> None:
        client = AsyncChatClient(
            Broken([Delta(reasoning="hm"), Delta(text="late")]),
            advisors=AsyncSessionAdvisors(service, store_partial_replies=True),
        )
        async with client.stream("hi", session_id="s") as stream:
            async for delta in stream:
                assert delta.reasoning
                break
        assert len(await service.events("s")) == 1


class TestFailures:
    async def test_a_model_that_fails_midway(self, service: AsyncSessionService) -> None:
        """The error reaches who reads, and who asks for the result; the partial reply is dropped."""
        model = Broken([Delta("half")], ConnectionError("cut"))
        client = AsyncChatClient(model, advisors=AsyncSessionAdvisors(service))
        async with client.stream("hi", session_id="s") as stream:
            with pytest.raises(ConnectionError, match="cut"):
                async for _ in stream:
                    pass
            with pytest.raises(ConnectionError, match="cut"):
                await stream.result()
        assert len(await service.events("s")) == 1
        assert model.closed == 1

    async def test_a_model_that_fails_is_seen_by_advisors(self, service: AsyncSessionService) -> None:
        """As in a call: an advisor may ask again; the deltas of both attempts were heard."""

        class Retry:
            async def around_model_call(self, request, call_next):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]
                try:
                    return await call_next(request)
                except ConnectionError:
                    return await call_next(request)

        talk = Talk(service)
        client = AsyncChatClient(AsyncScriptedModel([ConnectionError(), "ok"]), advisors=[*talk.advisors, Retry()])
        async with client.stream("hi", session_id="s") as stream:
            assert (await stream.result()).text == "ok"
        assert await talk.log() == ["user: hi", "assistant: ok"]

    @pytest.mark.parametrize("items", [[], [Delta("half")]])
    async def test_a_stream_without_a_whole_reply(self, service: AsyncSessionService, items: list[StreamItem]) -> None:
        model = Broken(items)
        async with AsyncChatClient(model, advisors=AsyncSessionAdvisors(service)).stream(
            "hi", session_id="s"
        ) as stream:
            with pytest.raises(InvalidReplyError, match="ended without a whole reply"):
                await stream.result()
        assert len(await service.events("s")) == 1
        assert model.closed == 1

    async def test_an_invalid_reply(self, service: AsyncSessionService) -> None:
        talk = Talk(service, asks("c1", "c1"))
        async with talk.client.stream("hi", session_id="s") as stream:
            with pytest.raises(InvalidReplyError, match="several calls with the id 'c1'"):
                await stream.result()
        assert await talk.log() == ["user: hi"]

    async def test_a_missing_session_is_an_error_of_the_stream(self, service: AsyncSessionService) -> None:
        async with Talk(service, "never").client.stream("hi") as stream:
            with pytest.raises(MissingSessionIdError):
                async for _ in stream:
                    pass

    async def test_a_providers_stream_is_closed_where_it_is_left(self, service: AsyncSessionService) -> None:
        model = Broken([Delta("one"), Delta("two"), Delta("three")])
        async with AsyncChatClient(model, advisors=AsyncSessionAdvisors(service)).stream(
            "hi", session_id="s"
        ) as stream:
            async for _ in stream:
                break
            assert model.closed == 0
        assert model.closed == 1


async def test_advisors_see_whole_replies() -> None:
    """H-1: when streaming too."""
    seen: list[Reply] = []

    class Watching:
        async def around_model_call(self, request, call_next):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]
            seen.append(await call_next(request))
            return seen[-1]

    model = AsyncScriptedModel(["a reply that comes in pieces"])
    async with AsyncChatClient(model, advisors=[Watching()]).stream([UserMessage("hi")]) as stream:
        result = await stream.result()
    assert [reply.message.text for reply in seen] == ["a reply that comes in pieces"]
    assert result.outcome is Outcome.REPLY
