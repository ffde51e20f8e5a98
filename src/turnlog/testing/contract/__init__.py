"""The contract of a store: tests that any store, in whatever colour, passes or is no store.

A store's author subclasses :class:`StoreContract`, or :class:`AsyncStoreContract`, and gives one fixture::

    from turnlog.testing.contract import INDEXED_METADATA, StoreContract


    class TestMyStore(StoreContract):
        @pytest.fixture
        def repository(self, clock):
            with MyStore(clock=clock, indexed_metadata=INDEXED_METADATA) as store:
                yield store

``repository`` opens an empty store that goes by the clock it is handed. Each test proves one property: ``APPEND-3`` is
proved by ``test_append_3_…``, and :data:`PROPERTIES` says each in a sentence. The tests need pytest alone, the async
ones pytest-asyncio too.
"""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("turnlog.testing.contract._async", "turnlog.testing.contract._sync")

from turnlog.testing.contract.classes import (  # noqa: E402 - assertions are rewritten at the first import
    INDEXED_METADATA,
    AsyncStoreContract,
    StoreContract,
)
from turnlog.testing.contract.running import PROPERTIES, broken_properties  # noqa: E402 - see above

__all__ = ["INDEXED_METADATA", "PROPERTIES", "AsyncStoreContract", "StoreContract", "broken_properties"]
