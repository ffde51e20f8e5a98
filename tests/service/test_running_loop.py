"""Both colours where an event loop runs already, as in a notebook, and where several run one after another."""

from __future__ import annotations

import asyncio
from pathlib import Path

from turnlog import AsyncSessionService, EventFilter, SessionService, UserMessage


async def test_the_sync_service_works_inside_a_running_loop(url: str) -> None:
    """It does not use the loop at all."""
    with SessionService.open(url) as service:
        service.create("s")
        service.append_message("s", UserMessage("hello"))
        assert [event.content.text for event in service.iter_events("s")] == ["hello"]
        assert service.active_messages("s", EventFilter.last(1)) == [UserMessage("hello")]
        service.clear("s")
        assert service.version("s") == 2


async def test_both_colours_share_a_file_in_one_loop(tmp_path: Path) -> None:
    place = f"sqlite:{tmp_path}/service.db"
    async with AsyncSessionService.open(place) as one:
        with SessionService.open(place) as other:
            await one.create("s")
            other.append_message("s", UserMessage("from a thread"))
            await one.append_message("s", UserMessage("from a task"))
            assert await one.events("s") == other.events("s")


def test_an_async_service_may_be_made_before_a_loop_runs(url: str) -> None:
    """At the top of a module, say: it connects when it is entered or first used."""
    service = AsyncSessionService.open(url)

    async def talk() -> list[str]:
        await service.create("s")
        await service.append_message("s", UserMessage("hello"))
        return [message.text for message in await service.active_messages("s")]

    assert asyncio.run(talk()) == ["hello"]
    asyncio.run(service.close())


def test_an_async_service_may_be_used_from_one_loop_after_another(url: str) -> None:
    """A script that calls ``asyncio.run`` several times, or a test suite with a loop for each test."""
    service = AsyncSessionService.open(url)

    async def say(number: int) -> int:
        _ = await service.find_or_create("s")
        said = [service.append_message("s", UserMessage(f"{number}.{each}")) for each in range(3)]
        return max(event.position or 0 for event in await asyncio.gather(*said))

    assert [asyncio.run(say(number)) for number in range(3)] == [3, 6, 9]
    asyncio.run(service.close())
