"""H-7, H-13: streams of an async client that are left: their reader is cancelled, or another task closes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tests.chat._async.talking import Talk
from tests.chat.gates import PATIENCE, Gate, Hanging, cancelled, check_next_turn
from tests.chat.speaking import asks, logged
from turnlog import AsyncSessionService, open_async_store
from turnlog.chat import AsyncChatClient, AsyncChatStream, AsyncSessionAdvisors
from turnlog.errors import InvalidReplyError
from turnlog.models.protocol import Delta


@pytest.fixture
async def service() -> AsyncIterator[AsyncSessionService]:
    async with AsyncSessionService(open_async_store("memory:"), turn_wait=timedelta()) as opened:
        yield opened


class TestStreams:
    async def test_the_reader_is_cancelled_during_a_tool(self, service: AsyncSessionService) -> None:
        gate = Gate()

        async def work(key: str) -> str:
            await gate.wait()
            return key

        talk = Talk(service, asks("c1", name="work"), "never", tools=[work])

        async def read() -> None:
            async with talk.client.stream("hi", session_id="s") as stream:
                async for _ in stream:
                    pass

        task = asyncio.create_task(read())
        await gate.is_reached()
        await cancelled(task)
        assert await talk.log() == ["user: hi", "assistant: calls c1"]
        await check_next_turn(service)

    @pytest.mark.parametrize("kept", [True, False])
    async def test_the_reader_is_cancelled_while_deltas_come(
        self,
        service: AsyncSessionService,
        kept: bool,  # noqa: FBT001 - parametrized
    ) -> None:
        model = Hanging()
        client = AsyncChatClient(model, advisors=AsyncSessionAdvisors(service, store_partial_replies=kept))

        async def read() -> None:
            async with client.stream("hi", session_id="s") as stream:
                async for _ in stream:
                    pass

        task = asyncio.create_task(read())
        await model.gate.is_reached()
        await cancelled(task)
        assert logged(await service.events("s")) == ["user: hi", *(["assistant: one"] if kept else [])]
        await check_next_turn(service)

    async def test_another_task_closes_it_during_a_tool(self, service: AsyncSessionService) -> None:
        """A button that says stop: the reader is told, and is not cancelled itself."""
        gate = Gate()

        async def work(key: str) -> str:
            await gate.wait()
            return key

        talk = Talk(service, asks("c1", name="work"), "never", tools=[work])
        stream = talk.client.stream("hi", session_id="s")
        reader = asyncio.create_task(stream.result())
        await gate.is_reached()
        await asyncio.wait_for(stream.close(), PATIENCE)
        with pytest.raises(InvalidReplyError, match="left before it had ended"):
            await asyncio.wait_for(reader, PATIENCE)
        assert await talk.log() == ["user: hi", "assistant: calls c1"]
        await check_next_turn(service)

    async def test_another_task_closes_it_while_deltas_come(self, service: AsyncSessionService) -> None:
        model = Hanging()
        client = AsyncChatClient(model, advisors=AsyncSessionAdvisors(service, store_partial_replies=True))
        stream = client.stream("hi", session_id="s")
        reader = asyncio.create_task(stream.result())
        await model.gate.is_reached()
        closer = asyncio.create_task(stream.close())
        await asyncio.sleep(0)
        model.gate.go_on.set()
        await asyncio.wait_for(closer, PATIENCE)
        with pytest.raises(InvalidReplyError, match="left before it had ended"):
            await asyncio.wait_for(reader, PATIENCE)
        assert logged(await service.events("s")) == ["user: hi", "assistant: onetwo"]

    async def test_a_reader_that_gives_up_on_a_delta(self, service: AsyncSessionService) -> None:
        """A timeout of its own ends the stream; what it stores is stored when the block is left."""
        model = Hanging()
        client = AsyncChatClient(model, advisors=AsyncSessionAdvisors(service))
        async with client.stream("hi", session_id="s") as stream:
            assert await anext(stream) == Delta("one")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(stream), 0)
        assert logged(await service.events("s")) == ["user: hi"]
        await check_next_turn(service)

    async def test_a_stream_is_an_iterator_and_a_context_manager(self, service: AsyncSessionService) -> None:
        stream = Talk(service, "hello").client.stream("hi", session_id="s")
        assert isinstance(stream, AsyncChatStream)
        async with stream as entered:
            assert entered is stream
            assert aiter(stream) is stream
            assert await anext(stream) == Delta("hello")
            assert await anext(stream, None) is None
