"""Times are moments: whatever zone the server, the process, or the caller lives in, nothing moves by a microsecond."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import quote
from zoneinfo import ZoneInfo

import psycopg
import pytest

from tests.postgres.comparing import SELECTS
from turnlog.log.event_filter import EventFilter
from turnlog.log.events import SessionEvent
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.opening import open_store
from turnlog.storage.protocol import SessionRepository
from turnlog.testing import factories
from turnlog.testing.clocks import FixedClock

pytestmark = pytest.mark.store

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NEW_YORK = ZoneInfo("America/New_York")
#: The last microsecond before clocks in New York jump from 2:00 to 3:00, the first behind it, and an hour that comes
#: twice; seen from New York and from Kolkata.
MOMENTS = tuple(
    moment.astimezone(zone)
    for moment in (
        datetime(2026, 3, 8, 6, 59, 59, 999_999, tzinfo=UTC),
        datetime(2026, 3, 8, 7, 0, 0, 1, tzinfo=UTC),
        datetime(2026, 11, 1, 1, 30, tzinfo=_NEW_YORK),
        datetime(2026, 11, 1, 1, 30, fold=1, tzinfo=_NEW_YORK),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2112, 9, 17, 23, 53, 47, 370_497, tzinfo=UTC),
    )
    for zone in (_NEW_YORK, ZoneInfo("Asia/Kolkata"))
)

#: The same as they come back. Python calls no moment of an hour that comes twice equal to one in another zone.
IN_UTC = [moment.astimezone(UTC) for moment in MOMENTS]


@pytest.fixture(params=["Asia/Kolkata", "America/New_York"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The zone that server and process live in."""
    name: str = request.param
    monkeypatch.setenv("TZ", name)
    time.tzset()
    yield name
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(datetime(2026, 3, 8, 6, 59, 59, tzinfo=UTC))


@pytest.fixture
def store(url: str, zone: str, clock: FixedClock) -> Iterator[SessionRepository]:
    there = f"{url}?options={quote(f'-c TimeZone={zone}')}"
    with open_store(there, clock=clock, token_counter=EstimatedTokens()) as opened:
        yield opened


def test_the_zones_are_in_force(url: str, zone: str) -> None:
    with psycopg.connect(url, options=f"-c TimeZone={zone}") as connection:
        row = connection.execute("SELECT current_setting('TimeZone'), extract(timezone FROM now())").fetchone()
    assert row is not None
    assert row[0] == zone
    assert time.localtime().tm_gmtoff == row[1] != 0


@pytest.mark.parametrize("one_by_one", [True, False])
def test_moments_come_back_to_the_microsecond(store: SessionRepository, url: str, *, one_by_one: bool) -> None:
    store.create(factories.session())
    log = [factories.user(n, timestamp=moment) for n, moment in enumerate(MOMENTS)]
    for batch in [[each] for each in log] if one_by_one else [log]:
        store.append("s", batch)
    found = [event.timestamp for event in store.events("s")]
    assert found == IN_UTC
    assert {moment.tzinfo for moment in found} == {UTC}
    with psycopg.connect(url) as connection:
        stored = [row[2] for row in connection.execute(SELECTS[1].encode()).fetchall()]
    assert stored == [(moment - _EPOCH) // _MICROSECOND for moment in IN_UTC]


def test_times_are_compared_across_the_gap(store: SessionRepository) -> None:
    """F-1: both ends inclusive, given in any zone."""
    store.create(factories.session())
    store.append("s", [factories.user(n, timestamp=moment) for n, moment in enumerate(MOMENTS)])
    for since in IN_UTC:
        for until in IN_UTC:
            if since <= until:
                filter_ = EventFilter(since=since.astimezone(_NEW_YORK), until=until.astimezone(_NEW_YORK))
                assert [event.timestamp for event in store.events("s", filter_)] == [
                    moment for moment in IN_UTC if since <= moment <= until
                ]


def test_a_session_ends_to_the_microsecond(store: SessionRepository, clock: FixedClock) -> None:
    """R-7: the session slides across the gap, and is gone when its time is up, not an hour earlier or later."""
    life = timedelta(seconds=2)
    made = factories.session(created_at=clock.now, expires_at=clock.now + life, time_to_live=life)
    store.create(made)
    assert store.find("s") == made
    clock.advance(1)
    event: SessionEvent = factories.user(1, timestamp=clock.now)
    store.append("s", [event])
    clock.advance(life - _MICROSECOND)
    found = store.find("s")
    assert found is not None
    assert found.expires_at == datetime(2026, 3, 8, 7, 0, 2, tzinfo=UTC)
    clock.advance(_MICROSECOND)
    assert store.find("s") is None
    assert store.delete_expired(clock.now) == 1
