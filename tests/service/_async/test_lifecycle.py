"""R-1, R-5: opening, closing, and the options of a service."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from turnlog import (
    AsyncSessionService,
    InvalidValueError,
    StoreClosedError,
    SystemMessage,
    UserMessage,
    open_async_store,
)


def files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_a_service_opens_a_store_by_its_url(url: str) -> None:
    async with AsyncSessionService.open(url, allow_system_messages=True) as service:
        await service.create("s")
        await service.append_message("s", SystemMessage("be kind"))
        assert await service.active_messages("s") == [SystemMessage("be kind")]
        assert service.repository.indexed_metadata == ("principal_name",)


async def test_what_was_stored_is_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    """R-3: nothing that was acknowledged is lost."""
    place = f"sqlite:{tmp_path}/service.db"
    async with AsyncSessionService.open(place) as service:
        made = await service.create("s", metadata={"a": 1})
        said = await service.append_message("s", UserMessage("hello"))
    async with AsyncSessionService.open(place) as again:
        assert await again.find("s") == made
        assert await again.events("s") == [said]


async def test_two_services_on_one_file_see_each_other(tmp_path: Path) -> None:
    """A service holds no state of a session: the next call may come from another process."""
    place = f"sqlite:{tmp_path}/service.db"
    async with AsyncSessionService.open(place) as one, AsyncSessionService.open(place) as other:
        await one.create("s")
        assert (await other.append_message("s", UserMessage("hello"))).position == 1
        await one.clear("s")
        assert await other.active_messages("s") == []
        assert await other.delete("s")
        assert await one.find("s") is None


async def test_leaving_the_block_closes_the_store(url: str) -> None:
    async with AsyncSessionService.open(url) as service:
        await service.create("s")
    with pytest.raises(StoreClosedError):
        await service.find("s")
    with pytest.raises(StoreClosedError):
        await service.append_message("s", UserMessage("hello"))
    await service.close()


async def test_an_error_in_the_block_closes_the_store_and_goes_on(url: str) -> None:
    service = AsyncSessionService.open(url)
    with pytest.raises(ZeroDivisionError):
        async with service:
            _ = 1 / 0
    with pytest.raises(StoreClosedError):
        await service.find("s")


async def test_a_service_may_be_closed_without_a_block(url: str) -> None:
    service = AsyncSessionService.open(url)
    await service.create("s")
    await service.close()
    await service.close()
    with pytest.raises(StoreClosedError):
        await service.version("s")


async def test_services_may_share_a_store(url: str) -> None:
    """Each with options of its own; closing one closes it for all."""
    store = open_async_store(url)
    plain, allowing = AsyncSessionService(store), AsyncSessionService(store, allow_system_messages=True)
    await plain.create("s")
    await allowing.append_message("s", SystemMessage("be kind"))
    assert await plain.active_messages("s") == [SystemMessage("be kind")]
    await plain.close()
    with pytest.raises(StoreClosedError):
        await allowing.find("s")


BAD_OPTIONS: list[dict[str, Any]] = [
    {"default_time_to_live": 30},
    {"default_time_to_live": timedelta()},
    {"default_time_to_live": timedelta(seconds=-1)},
    {"turn_wait": 30},
    {"turn_wait": None},
    {"turn_wait": timedelta(seconds=-1)},
]


@pytest.mark.parametrize("options", BAD_OPTIONS, ids=str)
async def test_options_that_make_no_sense_are_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    """Before a file is made."""
    with pytest.raises(InvalidValueError):
        AsyncSessionService.open(f"sqlite:{tmp_path}/service.db", **options)
    assert files_in(tmp_path) == []
    store = open_async_store("memory:")
    with pytest.raises(InvalidValueError):
        AsyncSessionService(store, **options)
    await store.close()


@pytest.mark.parametrize("bad", ["", "nosuch:x", "sqlite:", "sqlite://host/x.db", "sqlite:x.db?colour=red", None])
async def test_a_url_that_names_no_store_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidValueError):
        AsyncSessionService.open(bad)
