"""What the checker says of single situations: the smallest evidence, unknown outcomes, deleted sessions, size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from turnlog.testing.history import (
    PROPERTIES,
    Absent,
    Conflict,
    Done,
    Failed,
    FinalLog,
    Ok,
    Operation,
    Outcome,
    RecordedEvent,
    Seen,
    Unknown,
    check_history,
    content_digest,
)


def events(names: str) -> tuple[RecordedEvent, ...]:
    return tuple(RecordedEvent(name, content_digest(name)) for name in names.split())


def call(kind: Any, at: int, until: int | None, outcome: Outcome, *, process: str = "p", **others: Any) -> Operation:
    return Operation(
        process=process, kind=kind, session="s", invoked_ns=at, returned_ns=until, outcome=outcome, **others
    )


def append(names: str, at: int, until: int | None, outcome: Outcome, **others: Any) -> Operation:
    return call("append", at, until, outcome, events=events(names), **others)


def read(names: str, at: int, until: int, **others: Any) -> Operation:
    return call("read", at, until, Seen(events(names)), **others)


def broken(operations: Sequence[Operation], final: str) -> list[str]:
    """The properties broken, in the order found, with repeats."""
    found = check_history(operations, {"s": FinalLog.of(events(final))})
    return [violation.property_id for violation in found]


def test_a_violation_names_the_property_the_session_and_the_calls_that_suffice() -> None:
    stale = read("a b", 30, 40, process="reader")
    operations = [append("a b", 1, 5, Ok(1, 2)), append("c", 10, 20, Ok(3, 3)), read("a b c", 21, 22), stale]
    (violation,) = check_history(operations, {"s": FinalLog.of(events("a b c"))})
    assert violation.property_id == "P8"
    assert violation.session == "s"
    assert violation.message == "event 3 was acknowledged before a read was called that shows version 2"
    assert violation.evidence == (stale, operations[1])
    assert str(violation).splitlines() == [
        "P8 in session 's': event 3 was acknowledged before a read was called that shows version 2",
        "    reader read whole [30, 40] saw [a, b]",
        "    p append [c] [10, 20] ok 3 to 3",
    ]


def test_the_evidence_of_a_settled_append_is_the_call_that_was_acknowledged() -> None:
    unknown, settled = append("a", 1, 2, Unknown()), append("a", 3, 4, Ok(1, 1, replay=True), process="other")
    stale = read("", 5, 6)
    (violation,) = check_history([unknown, settled, stale], {"s": FinalLog.of(events("a"))})
    assert violation.evidence == (stale, settled)


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        (
            [append("b", 1, 2, Ok(2, 2)), append("a", 3, 4, Ok(1, 1))],
            "P5: event 2 was acknowledged before event 1 was offered",
        ),
        (
            [append("b", 5, 6, Ok(2, 2)), append("a", 1, 2, Ok(1, 1)), read("a b", 3, 4)],
            "P7: version 2 was shown before event 2 was offered",
        ),
        (
            [append("a b", 1, 2, Ok(1, 2)), append("x", 3, 4, Conflict(0), expected_version=9, process="q")],
            "P6: event 2 was acknowledged before an append was called that was refused at version 0",
        ),
        (
            [append("a b", 5, 6, Ok(1, 2)), append("x", 3, 4, Conflict(2), expected_version=9, process="q")],
            "P6: an append was refused at version 2 before event 1 was offered",
        ),
        (
            [append("a b", 1, 2, Ok(1, 2)), call("read", 3, 4, Absent())],
            "P8: event 2 was acknowledged before a call was made that found no session",
        ),
        (
            [
                append("a b", 5, 6, Ok(1, 2)),
                append("x", 1, 2, Conflict(0), expected_version=9),
                call("create", 3, 4, Done()),
            ],
            "P11: an append was refused at version 0 before the session was to be created",
        ),
        (
            [append("a b", 9, 10, Ok(1, 2)), call("create", 1, 2, Done()), call("read", 3, 4, Absent())],
            "P8: the session was created before a call was made that found no session",
        ),
    ],
)
def test_the_message_says_what_came_before_what(operations: Sequence[Operation], message: str) -> None:
    (violation,) = check_history(operations, {"s": FinalLog.of(events("a b"))})
    assert f"{violation.property_id}: {violation.message}" == message


def test_every_stale_read_is_reported_once() -> None:
    appends = [
        append(name, at, at + 1, Ok(place, place))
        for place, (name, at) in enumerate(zip("abc", (1, 3, 5), strict=True), 1)
    ]
    reads = [read("a", at, at + 1, process=f"r{at}") for at in (10, 12, 14)]
    assert broken([*appends, *reads], "a b c") == ["P8", "P8", "P8"]


def test_calls_that_touch_in_time_are_concurrent() -> None:
    """P5 and P8 speak of a call that returned before the other was made, not at the same tick of the clock."""
    assert broken([append("a", 1, 5, Ok(1, 1)), read("", 5, 6)], "a") == []
    assert broken([append("a", 1, 5, Ok(1, 1)), read("", 6, 6)], "a") == ["P8", "P9"]


@pytest.mark.parametrize("final", ["a", "a b c", "b c a"])
def test_an_append_of_unknown_outcome_is_there_as_a_whole_or_not_at_all(final: str) -> None:
    """P4: `unknown` may or may not be in the log."""
    first = 1 if final.startswith("a") else 3
    operations = [append("a", 1, 9, Ok(first, first)), append("b c", 2, None, Unknown())]
    assert broken(operations, final) == []


@pytest.mark.parametrize("final", ["a b", "a c", "b a c", "a c b"])
def test_half_of_an_append_of_unknown_outcome_is_not_allowed(final: str) -> None:
    operations = [append("a", 1, 9, Unknown()), append("b c", 2, None, Unknown())]
    assert set(broken(operations, final)) == {"P4"}


def test_an_append_of_unknown_outcome_may_land_after_its_answer() -> None:
    """The commit was sent and the answer lost: the server may be late."""
    operations = [append("a", 1, 2, Unknown()), read("", 5, 6), append("b", 7, 8, Ok(1, 1)), read("b", 9, 10)]
    assert broken(operations, "b a") == []


def test_an_append_does_not_land_before_it_was_made() -> None:
    assert broken([append("a", 5, None, Unknown()), append("b", 1, 2, Ok(2, 2))], "a b") == ["P5"]


def test_a_retry_settles_an_unknown_outcome_once() -> None:
    """P3, R-4, R-14: the events are there at one place, whichever of the two calls stored them."""
    unknown = append("a", 1, 2, Unknown())
    assert broken([unknown, append("a", 5, 6, Ok(1, 1, replay=True)), read("a", 3, 4)], "a") == []
    assert broken([unknown, append("a", 5, 6, Ok(1, 1))], "a") == []
    # Stored by the retry, so a read before it cannot have seen it.
    assert broken([unknown, append("a", 5, 6, Ok(1, 1)), read("a", 3, 4)], "a") == ["P7"]
    assert "P3" in broken([unknown, append("a", 5, 6, Ok(1, 1, replay=True))], "a a")


def test_a_replay_may_be_of_the_call_s_own_first_attempt() -> None:
    """A store that settles a lost answer by itself (R-14) finds its own events."""
    assert broken([append("a", 1, 2, Ok(1, 1, replay=True), expected_version=0)], "a") == []
    assert broken([append("a", 1, 2, Ok(1, 1, replay=True), expected_version=3)], "a") == ["P6"]


def test_a_replay_may_join_batches_that_were_stored_apart() -> None:
    """R-4: all ids stored with equal content is a replay, however they came there."""
    operations = [append("a", 1, 2, Ok(1, 1)), append("b", 3, 4, Ok(2, 2)), append("c", 5, 6, Ok(3, 3))]
    assert broken([*operations, append("c a", 7, 8, Ok(3, 1, replay=True))], "a b c") == []
    assert broken([*operations, append("c a", 7, 8, Ok(1, 3, replay=True))], "a b c") == ["P3"]


def test_a_batch_called_a_replay_too_soon_is_reported_once_and_contradicts_nothing_else() -> None:
    operations = [append("a b", 1, 2, Ok(1, 2, replay=True)), append("a b", 9, 10, Ok(1, 2))]
    operations.append(read("", 5, 6, process="other"))
    assert broken(operations, "a b") == ["P3"]


def test_an_event_of_the_log_is_accused_by_what_was_offered() -> None:
    def message(*operations: Operation) -> str:
        (violation,) = check_history(operations, {"s": FinalLog.of(events("a"))})
        return violation.message

    assert message() == "event 'a', at 1, was never offered with this content"
    assert message(append("a", 1, 2, Failed())) == "event 'a' is seen, but its append failed"
    assert message(append("a", 1, 2, Unknown(), expected_version=4)) == (
        "event 'a' is at 1, where no append of it expected to be"
    )


def test_a_batch_that_is_none_is_not_acknowledged() -> None:
    """R-4: an empty batch, and one with an id twice, are refused."""
    assert broken([append("a", 1, 2, Ok(1, 1)), append("", 3, 4, Ok(2, 1))], "a") == ["P4"]
    assert broken([append("a", 1, 2, Ok(1, 1)), append("a a", 3, 4, Ok(1, 1, replay=True))], "a") == ["P3"]
    assert broken([append("a", 1, 2, Ok(1, 1)), append("a a", 3, 4, Conflict(1), expected_version=5)], "a") == []
    assert broken([append("a", 1, 2, Ok(1, 1)), append("", 3, 4, Conflict(1), expected_version=5)], "a") == []


def test_an_id_refused_for_other_content_does_not_accuse_the_one_stored() -> None:
    other = call("append", 3, 4, Failed("content"), events=(RecordedEvent("a", "other"),))
    assert broken([append("a", 1, 2, Ok(1, 1)), other], "a") == []


def test_a_conflict_may_name_any_version_of_its_time() -> None:
    operations = [append("a", 1, 10, Ok(1, 1)), append("b", 1, 20, Ok(2, 2))]
    for actual in (0, 1, 2):
        conflict = append("c", 2, 15, Conflict(actual), expected_version=5)
        assert broken([*operations, conflict], "a b") == []


def test_sessions_are_independent() -> None:
    one = append("a", 1, 2, Ok(1, 1))
    two = msgspec.structs.replace(one, session="t")
    logs = {"s": FinalLog.of(events("a")), "t": FinalLog()}
    assert [(found.session, found.property_id) for found in check_history([one, two], logs)] == [("t", "P2")]
    assert [(found.session, found.property_id) for found in check_history([one], {})] == [("s", "P2")]


def test_a_filtered_read_shows_each_event_at_its_position() -> None:
    stored = append("a b c", 1, 2, Ok(1, 3))

    def filtered(names: str, *positions: int, version: int | None = None) -> Operation:
        return call("read", 3, 4, Seen(events(names), version, positions), window="filtered")

    assert broken([stored, filtered("a c", 1, 3)], "a b c") == []
    assert broken([stored, filtered("", version=3)], "a b c") == []
    assert broken([stored, filtered("a", 1, version=0)], "a b c") == ["P7"]
    assert broken([stored, filtered("c a", 3, 1)], "a b c") == ["P7"]
    assert broken([stored, filtered("a", 2)], "a b c") == ["P7"]
    assert broken([stored, filtered("", version=0)], "a b c") == ["P8", "P9"]


class TestDeletedSessions:
    """P11."""

    def first_life(self) -> list[Operation]:
        return [
            call("create", 0, 1, Done()),
            append("a b", 2, 3, Ok(1, 2)),
            append("c", 4, 5, Ok(3, 3)),
            read("a b c", 6, 7),
        ]

    def test_a_life_after_a_delete_has_a_log_of_its_own(self) -> None:
        again = [call("create", 20, 21, Done()), append("x", 22, 23, Ok(1, 1)), read("x", 24, 25)]
        assert broken([*self.first_life(), call("delete", 10, 11, Done()), read("", 12, 13), *again], "x") == []

    def test_an_id_may_be_offered_again_in_another_life(self) -> None:
        again = [call("create", 20, 21, Done()), append("c", 22, 23, Ok(1, 1))]
        assert broken([*self.first_life(), call("delete", 10, 11, Done()), *again], "c") == []

    def test_nothing_is_seen_after_the_delete(self) -> None:
        operations = [*self.first_life(), call("delete", 10, 11, Done())]
        assert broken([*operations, read("a b c", 12, 13)], "") == ["P11"]
        assert broken(operations, "a b c") == ["P11", "P11", "P11", "P11"]

    def test_the_session_made_again_begins_at_one(self) -> None:
        operations = [*self.first_life(), call("delete", 10, 11, Done()), call("create", 12, 13, Done())]
        entry = msgspec.structs.replace(FinalLog.of(events("x")).entries[0], position=4)
        found = check_history([*operations, append("x", 14, 15, Ok(4, 4))], {"s": FinalLog(4, (entry,))})
        assert [violation.property_id for violation in found] == ["P1", "P11"]

    def test_somebody_makes_it_again(self) -> None:
        operations = [*self.first_life(), call("delete", 10, 11, Done()), append("x", 14, 15, Ok(1, 1))]
        assert broken(operations, "x") == ["P11"]

    @pytest.mark.parametrize("shown", ["", "a b c", "x"])
    def test_a_read_during_the_delete_shows_the_old_log_or_the_new_one(self, shown: str) -> None:
        again = [call("create", 20, 21, Done()), append("x", 22, 23, Ok(1, 1))]
        during = read(shown, 10, 24, process="r")
        assert broken([*self.first_life(), call("delete", 10, 11, Done()), *again, during], "x") == []

    @pytest.mark.parametrize("shown", ["c", "b c", "a x", "x y"])
    def test_a_read_during_the_delete_shows_no_part(self, shown: str) -> None:
        again = [call("create", 20, 21, Done()), append("x", 22, 23, Ok(1, 1))]
        during = read(shown, 10, 24, process="r")
        assert broken([*self.first_life(), call("delete", 10, 11, Done()), *again, during], "x") == ["P11"]

    def test_the_life_before_the_delete_is_judged_by_its_longest_read(self) -> None:
        stale = read("a b", 8, 9, process="r")
        assert broken([*self.first_life(), stale, call("delete", 10, 11, Done())], "") == ["P8"]

    def test_an_append_during_the_delete_may_be_in_either_life(self) -> None:
        during = append("d", 9, 30, Ok(4, 4))
        delete = call("delete", 10, 11, Done())
        assert broken([*self.first_life(), during, delete], "") == []
        again = [call("create", 20, 21, Done()), append("d", 10, 30, Ok(1, 1))]
        assert broken([*self.first_life(), delete, *again], "d") == []

    def test_a_delete_of_unknown_outcome_may_have_happened_or_not(self) -> None:
        operations = [*self.first_life(), call("delete", 10, None, Unknown())]
        assert broken(operations, "") == []
        assert broken(operations, "a b c") == []
        assert set(broken(operations, "a c")) == {"P4"}

    def test_a_delete_that_found_nothing_is_no_delete(self) -> None:
        assert broken([*self.first_life(), call("delete", 10, 11, Failed())], "a b c") == []
        assert broken([*self.first_life(), call("delete", 10, 11, Absent())], "a b c") == ["P8"]

    def test_of_two_creators_one_wins(self) -> None:
        lost = call("create", 0, 2, Failed("exists"))
        assert broken([*self.first_life(), lost], "a b c") == []
        assert broken([*self.first_life(), call("create", 0, 2, Done())], "a b c") == ["P11"]


def test_every_property_has_words() -> None:
    assert list(PROPERTIES) == ["P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9", "P11"]


def test_a_long_history_is_checked_in_one_pass() -> None:
    """Comparing all pairs of 60,000 calls would not end within the time that a test is given."""
    operations = [
        append(str(place), 10 * place, 10 * place + 25, Ok(place, place), process=f"w{place % 4}")
        for place in range(1, 40_001)
    ]
    operations += [
        call(
            "read", 10 * place + 26, 10 * place + 30, Seen(events(str(place)), place), process=f"r{place % 4}", window=1
        )
        for place in range(2, 40_001, 2)
    ]
    final = FinalLog.of(event for operation in operations[:40_000] for event in operation.events)
    found = {violation.property_id for violation in check_history(operations, {"s": final})}
    assert found == set()
