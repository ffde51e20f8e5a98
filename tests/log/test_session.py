"""Sessions: immutable, metadata only (V-2), and their changes (R-1)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from tests.log.untyped import untyped
from turnlog.errors import InvalidValueError, UnstorableError
from turnlog.log.session import Session, SessionAttributes
from turnlog.testing.clocks import START
from turnlog.testing.factories import session

HOUR = timedelta(hours=1)


def test_a_session_lives_for_ever_by_default() -> None:
    made = Session(id="s", created_at=START)
    assert (made.expires_at, made.time_to_live, made.metadata, made.principal) == (None, None, {}, None)
    assert not made.is_expired(datetime.max.replace(tzinfo=UTC))


@pytest.mark.parametrize("bad", ["", "x" * 256, "a\n", "\ud800", None, 1])
def test_an_id_is_a_name(bad: object) -> None:
    with pytest.raises(InvalidValueError, match="session id"):
        Session(id=untyped(bad), created_at=START)


@pytest.mark.parametrize("field", ["created_at", "expires_at"])
def test_times_are_aware_and_kept_in_utc(field: str) -> None:
    local = START.astimezone(timezone(timedelta(hours=9)))
    assert getattr(session().replace(**{field: local}), field).tzinfo is UTC
    assert getattr(session().replace(**{field: local}), field) == START
    with pytest.raises(InvalidValueError, match=f"{field} .* is naive"):
        session().replace(**{field: START.replace(tzinfo=None)})
    with pytest.raises(InvalidValueError, match=f"{field} must be a datetime"):
        session().replace(**{field: "2026-01-01"})


@pytest.mark.parametrize("bad", [timedelta(), -HOUR, 3600, "1h"])
def test_a_time_to_live_is_a_positive_duration(bad: object) -> None:
    with pytest.raises(InvalidValueError, match="time_to_live must be a positive timedelta"):
        session(expires_at=START + HOUR, time_to_live=bad)


def test_a_time_to_live_stays_a_date() -> None:
    with pytest.raises(InvalidValueError, match="time_to_live is at most 365,000 days"):
        session(expires_at=START, time_to_live=timedelta.max)


def test_a_repr_is_short() -> None:
    made = Session(id="s", created_at=START, metadata={"much": "x" * 1_000_000})
    assert len(repr(made)) < 200
    assert "'s'" in repr(made)


def test_a_time_to_live_needs_an_expiry() -> None:
    with pytest.raises(InvalidValueError, match="a session with time_to_live has an expires_at"):
        session(time_to_live=HOUR)
    assert session(expires_at=START + HOUR, time_to_live=HOUR).time_to_live == HOUR


def test_expired_means_at_or_before_now() -> None:
    """R-7"""
    made = session(expires_at=START + HOUR)
    assert not made.is_expired(START + HOUR - timedelta(microseconds=1))
    assert made.is_expired(START + HOUR)
    assert made.is_expired(START + 2 * HOUR)


def test_the_owner_is_in_the_metadata() -> None:
    assert SessionAttributes.PRINCIPAL_NAME == "principal_name"
    assert session(principal="ann").principal == "ann"
    assert session(metadata={"principal_name": "ann", "x": 1}).principal == "ann"


@pytest.mark.parametrize("bad", ["", "x" * 256, "a\n", "\ud800", 1, ["ann"], {}, False])
def test_an_owner_is_a_name(bad: object) -> None:
    with pytest.raises(InvalidValueError, match="principal"):
        session(metadata={"principal_name": bad})


def test_metadata_is_a_checked_copy() -> None:
    metadata: dict[str, Any] = {"tags": ["a"]}
    made = session(metadata=metadata)
    metadata["tags"].append("b")
    assert made.metadata == {"tags": ["a"]}
    with pytest.raises(UnstorableError) as caught:
        session(metadata={"at": START})
    assert caught.value.path == "metadata['at']"


def test_sessions_are_frozen_values() -> None:
    assert session(principal="ann") == session(principal="ann")
    assert session(principal="ann") != session(principal="bob")
    with pytest.raises(AttributeError):
        untyped(session()).id = "other"


def test_replace_validates_again() -> None:
    assert session().replace(expires_at=START).expires_at == START
    with pytest.raises(InvalidValueError):
        session().replace(id="")
    with pytest.raises(TypeError):
        session().replace(owner="ann")
