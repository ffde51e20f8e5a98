"""What an operation costs in round trips to the server: counted on the wire, never timed."""

from __future__ import annotations

from collections.abc import Iterator
from operator import methodcaller
from typing import Final

import pytest

from tests.postgres.proxy import Proxy, proxied
from turnlog.log.event_filter import EventFilter
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.opening import open_async_store, open_store
from turnlog.storage.protocol import Turn
from turnlog.testing import factories

pytestmark = pytest.mark.store


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    with proxied(url) as made:
        yield made


_NEW: Final = factories.conversation(3, first=100)
#: A call, and the round trips that it takes.
COSTS: Final = {
    "append one": (methodcaller("append", "s", _NEW[:1]), 1),
    "append one, expecting": (methodcaller("append", "s", _NEW[:1], expected_version=12), 1),
    "append an own type": (methodcaller("append", "s", [factories.own(100)]), 1),
    "append a batch": (methodcaller("append", "s", _NEW), 2),
    "append a batch, expecting": (methodcaller("append", "s", _NEW, expected_version=12), 2),
    "append a summary": (methodcaller("append", "s", factories.summary(13), expected_version=12), 2),
    "append with the turn": (methodcaller("append", "s", _NEW, turn=Turn("mine", take=True)), 2),
    # An insert that runs into the unique key, the way back, and another transaction, which looks first.
    "a replay of one": (methodcaller("append", "s", factories.conversation(3)[:1]), 4),
    "a replay of a batch": (methodcaller("append", "s", factories.conversation(3)), 6),
    "find": (methodcaller("find", "s"), 1),
    "version": (methodcaller("version", "s"), 1),
    "list": (methodcaller("list", principal="p"), 1),
    "take the turn": (methodcaller("take_turn", "s", Turn("mine")), 2),
    "the newest turns": (methodcaller("events", "s", EventFilter.last(5)), 1),
    "the newest turns of the view": (methodcaller("events", "s", EventFilter(active_view=True, last=5)), 2),
    "the whole log": (methodcaller("events", "s"), 3),
}


@pytest.mark.parametrize("name", COSTS)
@pytest.mark.parametrize("colour", ["sync", "async"])
async def test_round_trips(proxy: Proxy, name: str, colour: str) -> None:
    call, cost = COSTS[name]
    if colour == "sync":
        with open_store(proxy.url, token_counter=EstimatedTokens()) as store:
            store.create(factories.session(principal="p"))
            store.append("s", factories.conversation(3))
            before = proxy.round_trips
            call(store)
            taken = proxy.round_trips - before
    else:
        async with open_async_store(proxy.url, token_counter=EstimatedTokens()) as store_:
            await store_.create(factories.session(principal="p"))
            await store_.append("s", factories.conversation(3))
            before = proxy.round_trips
            await call(store_)
            taken = proxy.round_trips - before
    assert taken == cost
