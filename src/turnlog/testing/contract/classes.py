"""The two contract classes: every property of every noun, in both colours."""

from __future__ import annotations

from typing import Final

import pytest

from turnlog.testing.clocks import FixedClock
from turnlog.testing.contract import _async, _sync

#: The metadata keys that a store under test is opened with, besides the principal's.
INDEXED_METADATA: Final = ("channel",)


class _Fixtures:
    @pytest.fixture
    def clock(self) -> FixedClock:
        """The clock that the store goes by; tests move it."""
        return FixedClock()


class StoreContract(
    _sync.Opening,
    _sync.Sessions,
    _sync.Listing,
    _sync.Appending,
    _sync.Replaying,
    _sync.Reading,
    _sync.Criteria,
    _sync.Windows,
    _sync.View,
    _sync.Turns,
    _sync.Expiry,
    _sync.Keeping,
    _sync.Recall,
    _sync.Copying,
    _sync.Tallying,
    _sync.Races,
    _Fixtures,
):
    """The contract of a :class:`~turnlog.storage.protocol.SessionRepository`; needs a fixture ``repository``."""


@pytest.mark.asyncio
class AsyncStoreContract(
    _async.Opening,
    _async.Sessions,
    _async.Listing,
    _async.Appending,
    _async.Replaying,
    _async.Reading,
    _async.Criteria,
    _async.Windows,
    _async.View,
    _async.Turns,
    _async.Expiry,
    _async.Keeping,
    _async.Recall,
    _async.Copying,
    _async.Tallying,
    _async.Races,
    _Fixtures,
):
    """The contract of an :class:`~turnlog.storage.protocol.AsyncSessionRepository`; needs a fixture ``repository``."""
