"""The decisions of a store, as pure functions: ``turnlog.storage.rules``."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.log.untyped import untyped
from turnlog.errors import (
    BrokenInvariantError,
    EventContentConflictError,
    InvalidBatchError,
    InvalidValueError,
    NotIndexedError,
    PartialReplayError,
    SessionBusyError,
    TurnInterruptedError,
    VersionConflictError,
    VersionOutOfRangeError,
)
from turnlog.log.events import EventMetadata, SessionEvent
from turnlog.storage.protocol import Turn
from turnlog.storage.rules import (
    Lease,
    check_batch,
    check_boundary,
    check_contiguous,
    check_indexed,
    check_version,
    effective_version,
    indexed_keys,
    indexed_values,
    is_gone,
    is_replay,
    lease_after,
    must_wait,
    slid_expiry,
)
from turnlog.testing.clocks import START
from turnlog.testing.factories import assistant, boundary, own, session, summary, turn, user

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
TICK = timedelta(microseconds=1)
NOW = START + HOUR
HELD = Lease("mine", NOW + TICK)


class TestBatch:
    """R-4, A-1: what can be appended to no log."""

    def test_a_good_batch_comes_back_as_a_tuple(self) -> None:
        batch = turn(1)
        assert check_batch("s", batch) == tuple(batch)
        assert check_batch("s", summary(1)) == tuple(summary(1))
        assert check_batch("s", [boundary(1, ())]) == (boundary(1, ()),)

    def test_an_empty_batch(self) -> None:
        with pytest.raises(InvalidBatchError, match="an empty batch"):
            check_batch("s", [])

    def test_an_id_twice(self) -> None:
        with pytest.raises(InvalidBatchError, match="an event id stands twice"):
            check_batch("s", [user(1), assistant(2), user(1)])

    def test_two_sessions(self) -> None:
        with pytest.raises(InvalidBatchError, match="event 'e2' belongs to session 't', not 's'"):
            check_batch("s", [user(1), user(2, session_id="t")])
        with pytest.raises(InvalidBatchError, match="belongs to session 's', not 't'"):
            check_batch("t", [user(1)])

    @pytest.mark.parametrize("bad", [["text"], [None], "text", [user(1), {}]])
    def test_what_is_no_event(self, bad: object) -> None:
        with pytest.raises(InvalidBatchError, match="a batch holds SessionEvents"):
            check_batch("s", untyped(bad))

    def test_a_boundary_that_is_not_first(self) -> None:
        with pytest.raises(InvalidBatchError, match="a boundary is the first event of its batch"):
            check_batch("s", [user(1), boundary(2, ())])
        with pytest.raises(InvalidBatchError, match="a boundary is the first event of its batch"):
            check_batch("s", [boundary(1, ()), boundary(2, ())])

    def test_an_event_that_is_no_summary_behind_a_boundary(self) -> None:
        with pytest.raises(InvalidBatchError, match="behind a boundary its batch holds the events of its summary"):
            check_batch("s", [*summary(1), user(9)])

    def test_a_synthetic_event_without_its_boundary(self) -> None:
        with pytest.raises(InvalidBatchError, match="synthetic events are written behind a boundary"):
            check_batch("s", summary(1)[1:])
        with pytest.raises(InvalidBatchError, match="synthetic events are written behind a boundary"):
            check_batch("s", [user(1), user(2, metadata={EventMetadata.SYNTHETIC: True})])


class TestBoundary:
    """A-1: a boundary fits the place that its batch gets."""

    def test_a_batch_without_one_fits_everywhere(self) -> None:
        check_boundary(turn(1), 99)

    @pytest.mark.parametrize("version", [0, 4, 7])
    def test_one_that_ends_with_its_batch_fits(self, version: int) -> None:
        check_boundary(summary(version + 1, [(1, version)] if version else []), version)

    @pytest.mark.parametrize("version", [0, 3, 5, 9])
    def test_one_that_was_made_for_another_version_does_not(self, version: int) -> None:
        with pytest.raises(InvalidBatchError):
            check_boundary(summary(5, [(1, 4)]), version)

    @pytest.mark.parametrize("end", [5, 6, 8])
    def test_one_whose_batch_ends_elsewhere_does_not(self, end: int) -> None:
        batch = [boundary(5, [(1, 4)], end=end), *summary(5)[1:]]
        with pytest.raises(InvalidBatchError, match="batch ends at 7"):
            check_boundary(batch, 4)

    def test_one_without_a_view_does_not(self) -> None:
        with pytest.raises(InvalidBatchError, match="a boundary at position 5"):
            check_boundary([boundary(5, ()).replace(payload={"end": 5})], 4)


class TestReplay:
    """R-4: replays are recognised before the version is looked at."""

    BATCH = (user(1, "a"), assistant(2, "b"))

    def stored(self, *events: SessionEvent) -> dict[str, SessionEvent]:
        return {made.id: made.at(position) for position, made in enumerate(events, 1)}

    def test_nothing_stored_is_no_replay(self) -> None:
        assert not is_replay(self.BATCH, {})

    def test_everything_stored_with_equal_content_is_one(self) -> None:
        changed = [made.replace(timestamp=NOW, metadata={"other": 1}) for made in self.BATCH]
        assert is_replay(self.BATCH, self.stored(*self.BATCH))
        assert is_replay(changed, self.stored(*self.BATCH))
        assert is_replay(self.BATCH[1:], self.stored(*self.BATCH))

    @pytest.mark.parametrize("changed", [user(1, "A"), assistant(1, "a"), user(1, "a", branch="x"), own(1)])
    def test_other_content_is_a_conflict(self, changed: SessionEvent) -> None:
        with pytest.raises(EventContentConflictError) as caught:
            is_replay([changed, self.BATCH[1]], self.stored(*self.BATCH))
        assert (caught.value.session_id, caught.value.event_id, caught.value.position) == ("s", "e1", 1)

    def test_a_part_of_the_batch_is_no_replay(self) -> None:
        with pytest.raises(PartialReplayError) as caught:
            is_replay([*self.BATCH, user(3)], self.stored(*self.BATCH))
        assert (caught.value.stored, caught.value.missing) == (("e1", "e2"), ("e3",))

    def test_other_content_comes_before_a_part(self) -> None:
        with pytest.raises(EventContentConflictError):
            is_replay([user(3), user(1, "A")], self.stored(*self.BATCH))


def test_an_expected_version_must_be_the_logs() -> None:
    """R-3"""
    check_version("s", None, 7)
    check_version("s", 7, 7)
    for expected in (0, 6, 8):
        with pytest.raises(VersionConflictError) as caught:
            check_version("s", expected, 7)
        assert (caught.value.session_id, caught.value.expected, caught.value.actual) == ("s", expected, 7)


WAITING: tuple[tuple[list[SessionEvent], bool], ...] = (
    ([user(1)], True),
    ([own(1)], False),
    ([own(1), user(2)], True),
    ([user(1, branch="a")], True),
    (summary(1), False),
    ([boundary(1, (), strategy="window")], False),
    ([boundary(1, (), strategy="clear")], True),
    ([boundary(1, (), strategy="rewind")], True),
)


@pytest.mark.parametrize(("batch", "waits"), WAITING, ids=range(len(WAITING)))
def test_own_types_and_a_compactions_boundary_pass_a_held_turn(batch: list[SessionEvent], *, waits: bool) -> None:
    """H-11"""
    assert must_wait(batch) is waits
    if waits:
        with pytest.raises(SessionBusyError):
            lease_after("s", HELD, None, NOW, batch)
    else:
        assert lease_after("s", HELD, None, NOW, batch) == HELD


class TestLease:
    """H-11"""

    def test_it_is_held_until_its_end(self) -> None:
        assert Lease("t", NOW + TICK).is_held(NOW)
        assert not Lease("t", NOW).is_held(NOW)
        assert not Lease().is_held(NOW)
        assert not Lease("t").is_held(NOW)
        assert not Lease("", NOW + HOUR).is_held(NOW)

    @pytest.mark.parametrize("lease", [Lease(), Lease("other", NOW)])
    def test_without_a_turn_a_free_session_is_written(self, lease: Lease) -> None:
        assert lease_after("s", lease, None, NOW, [user(1)]) == lease

    @pytest.mark.parametrize("take", [True, False])
    def test_its_holder_renews_it(self, *, take: bool) -> None:
        mine = Turn("mine", 5 * SECOND, take)
        assert lease_after("s", HELD, mine, NOW, [user(1)]) == Lease("mine", NOW + 5 * SECOND)
        assert lease_after("s", Lease("mine", NOW - HOUR), mine, NOW) == Lease("mine", NOW + 5 * SECOND)

    @pytest.mark.parametrize("lease", [Lease(), Lease("other", NOW)])
    def test_a_free_one_is_taken(self, lease: Lease) -> None:
        assert lease_after("s", lease, Turn("mine", take=True), NOW) == Lease("mine", NOW + 20 * SECOND)

    def test_nothing_to_write_waits_for_nobody(self) -> None:
        assert lease_after("s", HELD, None, NOW) == HELD

    def test_a_held_one_is_not_taken(self) -> None:
        with pytest.raises(SessionBusyError):
            lease_after("s", HELD, Turn("theirs", take=True), NOW)

    @pytest.mark.parametrize("lease", [Lease(), Lease("other", NOW), HELD])
    def test_one_that_was_taken_over_is_interrupted(self, lease: Lease) -> None:
        with pytest.raises(TurnInterruptedError):
            lease_after("s", lease, Turn("theirs"), NOW, [user(1)])


def test_an_expired_session_is_gone_unless_its_turn_is_held() -> None:
    """R-7"""
    dying = session(expires_at=NOW)
    assert is_gone(dying, Lease(), NOW)
    assert not is_gone(dying, Lease(), NOW - TICK)
    assert not is_gone(dying, HELD, NOW)
    assert is_gone(dying, Lease("mine", NOW), NOW)
    assert not is_gone(session(), Lease(), NOW)


def test_an_append_slides_an_expiry_forward_and_never_back() -> None:
    """R-7"""
    assert slid_expiry(NOW, HOUR, NOW) == NOW + HOUR
    assert slid_expiry(NOW + 2 * HOUR, HOUR, NOW) == NOW + 2 * HOUR
    assert slid_expiry(NOW, None, NOW) == NOW
    assert slid_expiry(None, None, NOW) is None
    assert slid_expiry(None, HOUR, NOW) is None


class TestVersions:
    """A-3: a version inside a batch reads as the one before it; beyond the log is an error."""

    def test_none_is_the_newest(self) -> None:
        assert effective_version("s", None, 7, 0) == 7

    @pytest.mark.parametrize(
        ("as_of", "index_behind", "version"), [(0, 0, 0), (7, 0, 7), (4, 0, 4), (5, 1, 4), (6, 2, 4)]
    )
    def test_inside_a_batch_is_before_it(self, as_of: int, index_behind: int, version: int) -> None:
        assert effective_version("s", as_of, 7, index_behind) == version

    @pytest.mark.parametrize("as_of", [-1, 8, 10**18])
    def test_beyond_the_log(self, as_of: int) -> None:
        with pytest.raises(VersionOutOfRangeError) as caught:
            effective_version("s", as_of, 7, 0)
        assert (caught.value.version, caught.value.newest) == (as_of, 7)

    @pytest.mark.parametrize("as_of", [True, 1.0, "1"])
    def test_what_is_no_version(self, as_of: object) -> None:
        with pytest.raises(InvalidValueError, match="a version is an int"):
            effective_version("s", untyped(as_of), 7, 0)


class TestIndexedMetadata:
    """V-2, R-8"""

    def test_the_principal_is_always_indexed(self) -> None:
        assert indexed_keys(()) == ("principal_name",)
        assert indexed_keys(["tenant", "principal_name", "tenant"]) == ("principal_name", "tenant")

    @pytest.mark.parametrize("bad", ["tenant", [""], ["a\n"], [5]])
    def test_keys_are_a_list_of_names(self, bad: object) -> None:
        with pytest.raises(InvalidValueError):
            indexed_keys(untyped(bad))

    def test_the_values_of_a_session(self) -> None:
        made = session(principal="ann", metadata={"tenant": "acme", "other": "x", "none": None})
        assert indexed_values(made, ("principal_name", "tenant", "none", "absent")) == (
            ("principal_name", "ann"),
            ("tenant", "acme"),
        )

    @pytest.mark.parametrize("bad", [5, "", "a\n", ["acme"], "\ud800"])
    def test_an_indexed_value_is_a_name(self, bad: Any) -> None:
        with pytest.raises(InvalidValueError, match=r"metadata\['tenant'\]"):
            indexed_values(session(metadata={"tenant": bad}), ("tenant",))

    def test_a_key_that_is_not_indexed_is_an_error(self) -> None:
        assert check_indexed("tenant", "acme", ("principal_name", "tenant")) == "acme"
        with pytest.raises(NotIndexedError) as caught:
            check_indexed("tenant", "acme", ("principal_name",))
        assert (caught.value.name, caught.value.indexed) == ("tenant", ("principal_name",))
        assert isinstance(caught.value, LookupError)
        with pytest.raises(InvalidValueError):
            check_indexed("tenant", 5, ("tenant",))


def test_positions_without_a_gap_are_asserted() -> None:
    """R-14: nothing is repaired."""
    check_contiguous("s", 1, 7, 7)
    check_contiguous("s", 5, 5, 1)
    check_contiguous("s", 1, 0, 0)
    for rows in (6, 8, 0):
        with pytest.raises(BrokenInvariantError):
            check_contiguous("s", 1, 7, rows)
