"""STORE, CLOSE: what a store says of itself, and its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from turnlog.errors import StoreClosedError
from turnlog.log.queries import EventQuery
from turnlog.storage.changes import SessionChange
from turnlog.storage.protocol import AsyncSessionRepository, Durability, Turn
from turnlog.testing.clocks import START, FixedClock
from turnlog.testing.contract._async.setting import begun, drained
from turnlog.testing.factories import session, user


class Opening:
    """A store has the whole port, goes by the clock it was given, and is of no use once closed."""

    async def test_store_1_has_every_operation(self, repository: AsyncSessionRepository) -> None:
        """The store has everything that the port names, and says what may be claimed of it (R-1, R-15)."""
        operations = {name for name in vars(AsyncSessionRepository) if not name.startswith("_")}
        assert {name for name in operations if not hasattr(repository, name)} == set()
        assert isinstance(repository.durability, Durability)

    async def test_store_2_goes_by_the_clock_given(self, repository: AsyncSessionRepository, clock: FixedClock) -> None:
        """The store's clock is the one that it was opened with (R-7)."""
        for _ in range(2):
            assert repository.clock() == clock.now
            clock.advance(3)

    async def test_store_3_names_what_it_indexes(self, repository: AsyncSessionRepository) -> None:
        """The principal's key comes first, then the keys that the store was opened with (V-2)."""
        assert repository.indexed_metadata == ("principal_name", "channel")

    async def test_store_4_is_a_context_manager(self, repository: AsyncSessionRepository) -> None:
        """``with`` gives the store itself and closes it at the end, also behind an error (R-1)."""

        async def use() -> None:
            async with repository as entered:
                assert entered is repository
                await entered.create(session())
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await use()
        with pytest.raises(StoreClosedError):
            await repository.find("s")

    async def test_close_1_may_be_called_twice(self, repository: AsyncSessionRepository) -> None:
        """A second ``close`` does nothing."""
        await repository.close()
        await repository.close()

    async def test_close_2_ends_every_operation(self, repository: AsyncSessionRepository) -> None:
        """Every operation of a closed store raises ``StoreClosedError``."""
        await begun(repository, [user(1)])
        await repository.close()
        for call in self._every_operation(repository):
            with pytest.raises(StoreClosedError):
                await call()

    def _every_operation(self, repository: AsyncSessionRepository) -> list[Callable[[], Any]]:
        return [
            lambda: repository.create(session("t")),
            lambda: repository.find("s"),
            repository.list,
            lambda: repository.find_by_metadata("channel", "web"),
            lambda: repository.update("s", SessionChange()),
            lambda: repository.delete("s"),
            lambda: repository.delete_expired(START),
            lambda: repository.append("s", [user(2)]),
            lambda: repository.restore(session(), []),
            lambda: repository.fork("s", session("t")),
            lambda: repository.events("s"),
            lambda: drained(repository.iter_events("s")),
            lambda: drained(repository.iter_batches("s")),
            lambda: repository.find_events("s", event_ids=["e1"]),
            lambda: repository.count("s"),
            lambda: repository.search("s", EventQuery.keyword("x")),
            lambda: repository.version("s"),
            lambda: repository.take_turn("s", Turn("a")),
            lambda: repository.renew_turn("s", Turn("a")),
            lambda: repository.release_turn("s", "a"),
        ]
