"""The properties of views, compaction and reading, which other tests hold against embedded stores, on PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compaction import test_properties as compaction
from tests.log import test_reading_reference as reading
from tests.log.readers import StoreReader
from tests.postgres.conftest import emptied
from tests.service._async import test_view_properties as async_views
from tests.service._sync import test_view_properties as views
from tests.service.view_model import steps
from turnlog.log.events import SessionEvent
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.opening import open_store
from turnlog.testing.clocks import FixedClock
from turnlog.testing.strategies import batches

pytestmark = [pytest.mark.store, pytest.mark.slow]

#: Each example has connections of its own.
FEW: Final = settings(max_examples=max(15, settings().max_examples // 5))


def on_server(test: Any, url: str, **drawn: Any) -> Any:
    """Run a property's test on the database, emptied."""
    inner: Callable[..., Any] = test.hypothesis.inner_test
    return inner(url=emptied(url), **drawn)


@FEW
@given(log=batches(max_batches=14), todo=compaction.operations())
def test_no_compaction_can_hurt_a_conversation(
    database: str, log: list[list[SessionEvent]], todo: list[tuple[str, Any]]
) -> None:
    """C-1 to C-5, A-1 to A-5."""
    on_server(compaction.test_no_compaction_can_hurt_a_generated_conversation, database, log=log, todo=todo)


@FEW
@given(log=batches(max_batches=14), todo=st.lists(compaction.strategies_to_try(), max_size=6), growth=st.integers(0, 2))
def test_every_message_is_in_the_view_or_covered_once(
    database: str, log: list[list[SessionEvent]], todo: list[Any], growth: int
) -> None:
    test = compaction.test_every_message_is_in_the_view_or_covered_by_exactly_one_boundary
    on_server(test, database, log=log, todo=todo, growth=growth)


@FEW
@given(log=batches(max_batches=6), walk=steps())
def test_views_over_random_walks(database: str, log: list[list[SessionEvent]], walk: list[Any]) -> None:
    """A-1 to A-5."""
    on_server(views.test_views_over_random_walks, database, log=log, walk=walk)


@FEW
@given(log=batches(max_batches=6), walk=steps())
def test_views_over_random_walks_of_tasks(database: str, log: list[list[SessionEvent]], walk: list[Any]) -> None:
    asyncio.run(on_server(async_views.test_views_over_random_walks, database, log=log, walk=walk))


@pytest.fixture(scope="module")
def reader(database: str) -> Iterator[StoreReader]:
    """What the tests of ``tests.log`` read through, on PostgreSQL."""
    with open_store(emptied(database), clock=FixedClock(), token_counter=EstimatedTokens()) as store:
        yield StoreReader(store)


#: F-1 to F-9, V-5, A-2, A-3, R-9, against the oracle that is written from the clauses alone.
globals().update(
    {name: test for name, test in vars(reading).items() if name.startswith("test_") and hasattr(test, "hypothesis")}
)
