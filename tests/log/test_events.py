"""Events and their types (V-3, V-4, V-6)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.log.untyped import untyped
from turnlog.errors import InvalidValueError, UnstorableError
from turnlog.log.events import EventMetadata, EventType, SessionEvent, as_utc
from turnlog.log.messages import AssistantMessage, UserMessage
from turnlog.testing.factories import PROGRESS, assistant, boundary, event, own, results, summary, system, user
from turnlog.testing.strategies import events

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


def test_a_message_event_needs_nothing_but_session_and_message() -> None:
    made = SessionEvent(session_id="s", message=UserMessage("hi"))
    assert made.type == EventType.MESSAGE
    assert made.content == UserMessage("hi")
    assert (made.position, made.branch, made.payload, made.metadata) == (None, None, None, {})
    assert made.id != SessionEvent(session_id="s", message=UserMessage("hi")).id
    assert abs(made.timestamp - datetime.now(UTC)) < timedelta(minutes=5)
    assert made.timestamp.tzinfo is UTC


def test_message_needs_a_message_and_forbids_a_payload() -> None:
    with pytest.raises(InvalidValueError, match="a MESSAGE event needs a message, not NoneType"):
        SessionEvent(session_id="s")
    with pytest.raises(InvalidValueError, match="a MESSAGE event needs a message, not str"):
        SessionEvent(session_id="s", message=untyped("hi"))
    with pytest.raises(InvalidValueError, match="a MESSAGE event has no payload"):
        SessionEvent(session_id="s", message=UserMessage("hi"), payload={})


@pytest.mark.parametrize("kind", [EventType.COMPACTION, PROGRESS])
def test_every_other_type_has_a_payload_and_forbids_a_message(kind: EventType) -> None:
    assert SessionEvent(session_id="s", type=kind, payload={"a": 1}).payload == {"a": 1}
    with pytest.raises(InvalidValueError, match=f"a {kind.name} event has a payload, not a message"):
        SessionEvent(session_id="s", type=kind, message=UserMessage("hi"), payload={"a": 1})
    with pytest.raises(UnstorableError, match="payload: must be a dict, not list"):
        SessionEvent(session_id="s", type=kind, payload=untyped([1]))


def test_asking_another_event_for_its_message_raises() -> None:
    with pytest.raises(InvalidValueError, match=r"event 'e1' is TEST\.PROGRESS and holds no message"):
        _ = own(1).content
    assert own(1).message is None
    made = user(1, "hi")
    assert made.content is made.message


@pytest.mark.parametrize("field", ["session_id", "id"])
@pytest.mark.parametrize("bad", ["", "x" * 256, "a\n", "\ud800", None, 1])
def test_ids_are_names(field: str, bad: object) -> None:
    with pytest.raises(InvalidValueError):
        user(1).replace(**{field: bad})


@pytest.mark.parametrize("bad", ["", "a..b", ".", "a\0", "x" * 256, 1])
def test_a_branch_is_a_path(bad: object) -> None:
    with pytest.raises(InvalidValueError, match="branch"):
        user(1, branch=bad)


@pytest.mark.parametrize("bad", [0, -1, True, 1.0, "1"])
def test_a_position_counts_from_one(bad: object) -> None:
    with pytest.raises(InvalidValueError, match="position must be a positive int"):
        user(1, position=bad)
    assert user(1, position=1).position == 1


@pytest.mark.parametrize("bad", ["MESSAGE", None, 1, EventType])
def test_a_type_is_an_event_type(bad: object) -> None:
    with pytest.raises(InvalidValueError, match="type must be an EventType"):
        event(1, UserMessage("hi"), type=bad)


@pytest.mark.parametrize("name", ["A", "MY_APP.PROGRESS", "X9", "A.", "A_", "A" * 64])
def test_a_type_is_a_value_around_a_name(name: str) -> None:
    made = EventType.of(name)
    assert (made.name, str(made)) == (name, name)
    assert made == EventType(name)
    assert hash(made) == hash(EventType(name))


@pytest.mark.parametrize(
    "name",
    ["", "a", "Message", "9A", "_A", ".A", "A-B", "A B", "A\n", "Ä", "A" * 65, "\u0661", "A\u0661", None, 1, b"A"],
)
def test_another_name_is_no_type(name: object) -> None:
    with pytest.raises(InvalidValueError, match="event type"):
        EventType.of(untyped(name))


def test_the_built_in_types_are_values_like_any_other() -> None:
    assert EventType.of("MESSAGE") == EventType.MESSAGE
    assert EventType.of("COMPACTION") == EventType.COMPACTION
    assert user(1, type=EventType.of("MESSAGE")).is_message
    assert event(1, type=EventType.of("COMPACTION")).is_boundary
    assert len({EventType.MESSAGE, EventType.of("MESSAGE"), PROGRESS}) == 2


def test_a_naive_timestamp_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="timestamp 2026-01-01T00:00:00 is naive"):
        user(1, timestamp=datetime(2026, 1, 1))  # noqa: DTZ001 - it is the point
    with pytest.raises(InvalidValueError, match="timestamp must be a datetime, not str"):
        user(1, timestamp="2026-01-01T00:00:00Z")


class _NoOffset(tzinfo):
    def utcoffset(self, dt: datetime | None, /) -> timedelta | None:
        return None

    def dst(self, dt: datetime | None, /) -> timedelta | None:
        return None

    def tzname(self, dt: datetime | None, /) -> str | None:
        return None


def test_a_zone_without_an_offset_names_no_moment() -> None:
    with pytest.raises(InvalidValueError, match="naive"):
        user(1, timestamp=datetime(2026, 1, 1, tzinfo=_NoOffset()))


@pytest.mark.parametrize("zone", [timezone(timedelta(hours=-5)), ZoneInfo("America/New_York"), ZoneInfo("UTC"), UTC])
def test_case_B104_a_timestamp_is_the_same_instant_in_utc(zone: tzinfo) -> None:  # noqa: N802 - the case's id
    made = user(1, timestamp=NOON.astimezone(zone))
    assert made.timestamp == NOON
    assert made.timestamp.tzinfo is UTC
    assert made.timestamp.isoformat() == "2026-07-01T12:00:00+00:00"


def test_the_two_times_of_a_repeated_hour_differ() -> None:
    zone = ZoneInfo("Europe/Berlin")
    first, second = (as_utc(datetime(2026, 10, 25, 2, 30, tzinfo=zone, fold=fold), "t") for fold in (0, 1))
    assert second - first == timedelta(hours=1)


@pytest.mark.parametrize(
    "moment",
    [
        datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))),
    ],
)
def test_a_time_outside_of_the_calendar_is_refused(moment: datetime) -> None:
    with pytest.raises(InvalidValueError, match="outside the years 1 to 9999"):
        as_utc(moment, "timestamp")


@pytest.mark.parametrize("moment", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
def test_the_ends_of_the_calendar_are_times(moment: datetime) -> None:
    assert as_utc(moment, "timestamp") == moment


AWARE = st.datetimes(timezones=st.timezones(), allow_imaginary=False).filter(lambda moment: 1 < moment.year < 9999)


@given(AWARE)
def test_any_aware_time_keeps_its_instant_and_its_microseconds(moment: datetime) -> None:
    kept = as_utc(moment, "timestamp")
    assert kept.tzinfo is UTC
    assert kept.microsecond == moment.microsecond
    assert kept - moment.astimezone(UTC) == timedelta()
    assert kept.replace(tzinfo=None) == moment.replace(tzinfo=None) - (moment.utcoffset() or timedelta())


@pytest.mark.parametrize("empty", [True, False])
def test_metadata_and_payload_are_copies(*, empty: bool) -> None:
    """B36: what the caller does to its dict later does not reach the event."""
    given_dict: dict[str, Any] = {} if empty else {"list": [1]}
    made = own(1, given_dict).replace(metadata=given_dict, payload=given_dict)
    given_dict["list"] = given_dict.get("list", [])
    given_dict["list"].append(2)
    assert made.metadata == made.payload == ({} if empty else {"list": [1]})


def test_unstorable_values_name_their_path() -> None:
    with pytest.raises(UnstorableError) as caught:
        user(1, metadata={"at": NOON})
    assert caught.value.path == "metadata['at']"
    with pytest.raises(UnstorableError) as caught:
        own(1, {"a": [float("inf")]})
    assert caught.value.path == "payload['a'][0]"


def test_the_events_of_a_summary_are_synthetic_and_its_boundary_is_not() -> None:
    """V-6"""
    batch = summary(5)
    assert [made.is_synthetic for made in batch] == [False, True, True]
    assert [made.is_shadow_prompt for made in batch] == [False, True, False]
    assert [made.is_boundary for made in batch] == [True, False, False]
    assert batch[1].metadata[EventMetadata.BOUNDARY] == batch[0].id
    assert batch[1].metadata[EventMetadata.STRATEGY] == "summary"


@pytest.mark.parametrize("made", [boundary(1, ()), own(1)])
def test_no_mark_makes_a_boundary_or_an_own_type_synthetic(made: SessionEvent) -> None:
    """V-6: the boundary itself is not synthetic, whatever its metadata says."""
    marked = made.replace(metadata={EventMetadata.SYNTHETIC: True})
    assert not marked.is_synthetic
    assert not marked.is_shadow_prompt


@pytest.mark.parametrize("mark", [False, 1, "true", None, {}])
def test_only_true_marks_a_synthetic_event(mark: object) -> None:
    assert not user(1, metadata={EventMetadata.SYNTHETIC: mark}).is_synthetic


def test_a_real_message_is_neither_boundary_nor_synthetic() -> None:
    for made in (user(1), assistant(1), system(1), results(1, "c")):
        assert made.is_message
        assert not made.is_boundary
        assert not made.is_synthetic
        assert not made.is_shadow_prompt
    assert not own(1).is_message


def test_the_run_is_read_from_the_metadata() -> None:
    assert user(1, run="r1").run_id == "r1"
    assert user(1).run_id is None
    assert user(1, metadata={EventMetadata.RUN_ID: None}).run_id is None


@pytest.mark.parametrize("bad", [5, ["r"], {}, True, "", "r\n", "x" * 256, "\ud800"], ids=ascii)
def test_a_run_id_is_a_name(bad: object) -> None:
    """R-8: stores index it."""
    with pytest.raises(InvalidValueError, match="run id"):
        user(1, metadata={EventMetadata.RUN_ID: bad})


def test_an_event_is_placed_without_a_second_look() -> None:
    made = user(1, "hi", run="r")
    placed = made.at(7)
    assert placed == made.replace(position=7)
    assert made.position is None


def test_replace_makes_a_changed_copy_and_validates_again() -> None:
    made = user(1, "hi", branch="a", metadata={"k": 1})
    changed = made.replace(position=7)
    assert (changed.position, changed.branch, changed.content, changed.id) == (7, "a", UserMessage("hi"), "e1")
    assert made.position is None
    with pytest.raises(InvalidValueError):
        made.replace(payload={})
    with pytest.raises(TypeError):
        made.replace(colour="red")


def test_events_are_frozen() -> None:
    made = user(1)
    with pytest.raises(AttributeError):
        untyped(made).position = 3


def test_events_compare_by_all_that_they_hold() -> None:
    made = user(1, "hi")
    assert made == user(1, "hi")
    for changed in ({"id": "x"}, {"position": 1}, {"branch": "a"}, {"metadata": {"a": 1}}, {"timestamp": NOON}):
        assert made.replace(**changed) != made
    assert made != user(1, "ho")


def test_a_repr_never_prints_megabytes() -> None:
    huge = "x" * 1_000_000
    for made in (
        user(1, huge, metadata={"k": huge}),
        own(1, {"k": huge}),
        results(1, *("c" * 1000 for _ in range(100))),
        event(1, AssistantMessage(huge), branch="b" * 255, session_id="s" * 255, id="i" * 255),
    ):
        assert len(repr(made)) < 1_000
    assert repr(user(1, "hi", position=3, branch="a")) == "<SessionEvent 3 of 's' on a: UserMessage('hi')>"


@given(events())
def test_an_event_equals_its_rebuilt_self(made: SessionEvent) -> None:
    assert made.replace() == made
    assert len(repr(made)) < 1_000
