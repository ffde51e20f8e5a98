"""``SessionChange``: an update, decided on the session as it is when it is applied (R-1)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from turnlog.errors import InvalidValueError, UnstorableError
from turnlog.log.session import Session
from turnlog.storage.changes import SessionChange
from turnlog.testing.clocks import START
from turnlog.testing.factories import session

HOUR = timedelta(hours=1)
NOW = START + timedelta(minutes=10)


def applied(made: Session, **changes: Any) -> Session:
    return SessionChange(**changes).applied(made, NOW)


def test_nothing_set_changes_nothing() -> None:
    made = session(principal="ann", metadata={"a": 1}, expires_at=START + HOUR, time_to_live=HOUR)
    assert applied(made) == made


def test_metadata_replaces_and_keeps_the_principal() -> None:
    made = session(principal="ann", metadata={"a": 1, "b": 2})
    assert applied(made, metadata={"c": 3}).metadata == {"principal_name": "ann", "c": 3}
    assert applied(made, metadata={}).metadata == {"principal_name": "ann"}


def test_metadata_changes_no_principal_by_accident() -> None:
    """H-10: only ``principal=`` changes the owner."""
    made = session(principal="ann")
    assert applied(made, metadata={"principal_name": "ann", "c": 3}).principal == "ann"
    assert applied(made, metadata={"principal_name": "bob"}).principal == "ann"
    assert applied(session(), metadata={"principal_name": "bob"}).principal is None


def test_principal_says_who_owns_it() -> None:
    made = session(principal="ann", metadata={"a": 1})
    assert applied(made, principal="bob").metadata == {"principal_name": "bob", "a": 1}
    assert applied(made, principal=None).metadata == {"a": 1}
    assert applied(made, principal="bob", metadata={"b": 2}).metadata == {"principal_name": "bob", "b": 2}
    assert applied(session(), principal="bob").principal == "bob"


def test_set_and_unset_merge_single_keys() -> None:
    made = session(principal="ann", metadata={"a": 1, "b": 2})
    assert applied(made, set={"c": 3, "a": 9}).metadata == {"principal_name": "ann", "a": 9, "b": 2, "c": 3}
    assert applied(made, unset=["a", "absent"]).metadata == {"principal_name": "ann", "b": 2}
    assert applied(made, metadata={"x": 1, "y": 2}, set={"z": 3}, unset=["x"]).metadata == {
        "principal_name": "ann",
        "y": 2,
        "z": 3,
    }


@pytest.mark.parametrize("changes", [{"set": {"principal_name": "bob"}}, {"unset": ["principal_name"]}])
def test_set_and_unset_refuse_the_principal(changes: Any) -> None:
    with pytest.raises(InvalidValueError, match="the principal is changed with principal="):
        SessionChange(**changes)


def test_one_key_is_not_both_set_and_unset() -> None:
    with pytest.raises(InvalidValueError, match="set and unset both name a, b"):
        SessionChange(set={"a": 1, "b": 2}, unset=["b", "a"])


def test_unset_is_a_list() -> None:
    with pytest.raises(InvalidValueError, match="unset must be a list"):
        SessionChange(unset="abc")


REFUSED: tuple[dict[str, Any], ...] = (
    {"metadata": None},
    {"metadata": [("a", 1)]},
    {"metadata": {"at": START}},
    {"metadata": {5: 1}},
    {"set": None},
    {"set": {"at": START}},
    {"set": {"a": {"b": {1}}}},
    {"unset": 5},
    {"principal": ""},
    {"principal": "a\n"},
    {"principal": 5},
    {"expires_at": START.replace(tzinfo=None)},
    {"expires_at": "2026-01-01"},
    {"time_to_live": 5},
    {"time_to_live": timedelta()},
    {"time_to_live": -HOUR},
)


@pytest.mark.parametrize("changes", REFUSED, ids=str)
def test_a_change_that_no_session_takes_is_refused_when_it_is_made(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError):
        SessionChange(**changes)


def test_an_unstorable_value_names_its_path() -> None:
    with pytest.raises(UnstorableError) as caught:
        SessionChange(set={"a": [START]})
    assert caught.value.path == "set['a'][0]"


def test_a_change_holds_copies() -> None:
    values: dict[str, Any] = {"tags": ["a"]}
    change = SessionChange(metadata=values, set=values)
    values["tags"].append("b")
    assert change.applied(session(), NOW).metadata == {"tags": ["a"]}


def test_created_at_and_id_stay() -> None:
    changed = applied(session(), metadata={"a": 1}, principal="ann", expires_at=START + HOUR)
    assert (changed.id, changed.created_at) == ("s", START)


def test_an_expiry_is_set_and_taken_away() -> None:
    assert applied(session(), expires_at=START + HOUR).expires_at == START + HOUR
    assert applied(session(expires_at=START + HOUR), expires_at=None).expires_at is None


def test_a_time_to_live_counts_from_the_change() -> None:
    changed = applied(session(), time_to_live=HOUR)
    assert (changed.expires_at, changed.time_to_live) == (NOW + HOUR, HOUR)
    shorter = applied(session(expires_at=START + 9 * HOUR, time_to_live=9 * HOUR), time_to_live=HOUR)
    assert shorter.expires_at == NOW + HOUR


def test_an_expiry_given_beside_a_time_to_live_is_taken() -> None:
    changed = applied(session(), time_to_live=HOUR, expires_at=START + 5 * HOUR)
    assert (changed.expires_at, changed.time_to_live) == (START + 5 * HOUR, HOUR)
    with pytest.raises(InvalidValueError):
        applied(session(), time_to_live=HOUR, expires_at=None)


def test_a_sliding_session_can_be_fixed_and_made_to_last() -> None:
    sliding = session(expires_at=START + HOUR, time_to_live=HOUR)
    fixed = applied(sliding, time_to_live=None)
    assert (fixed.expires_at, fixed.time_to_live) == (START + HOUR, None)
    lasting = applied(sliding, expires_at=None)
    assert (lasting.expires_at, lasting.time_to_live) == (None, None)
    later = applied(sliding, expires_at=START + 3 * HOUR)
    assert (later.expires_at, later.time_to_live) == (START + 3 * HOUR, HOUR)
