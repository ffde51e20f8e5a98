"""Failures that comparable systems had in public, as far as reading a log goes; each by every reader."""
# ruff: noqa: N802 - the case's id

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from tests.log.readers import Reader
from tests.log.whole_windows import check_window
from turnlog.errors import InvalidBatchError
from turnlog.log.event_filter import EventFilter
from turnlog.log.events import SessionEvent
from turnlog.log.messages import MessageType
from turnlog.storage.rules import check_boundary
from turnlog.testing.clocks import START
from turnlog.testing.factories import assistant, boundary, calls, own, results, summary, system, turn, user


def check_all_windows(reader: Reader, log: list[SessionEvent]) -> None:
    """Every window of the log keeps pairs whole and begins with a turn or in the preamble."""
    written = reader.write([log])
    starts = {place for place, made in enumerate(log, 1) if made.content.type is MessageType.USER}
    for n in range(1, len(log) + 2):
        check_window(written.positions(EventFilter.last(n)), written.read(EventFilter.all()), starts, n)


def test_case_B03_a_tool_message_of_text_alone_keeps_its_call(reader: Reader) -> None:
    log = [system(1), user(2), calls(3, "123"), results(4, "123", content="only text"), user(5), assistant(6)]
    written = reader.write([log])
    assert written.positions(EventFilter.last(3)) == [2, 3, 4, 5, 6]
    assert written.positions(EventFilter.last(2)) == [5, 6]
    check_all_windows(reader, log)


def test_case_B04_many_pairs_in_one_turn_are_all_inside_or_all_outside(reader: Reader) -> None:
    pairs = [made for n in range(2, 24, 2) for made in (calls(n, f"c{n}"), results(n + 1, f"c{n}"))]
    log = [user(1), *pairs, assistant(24)]
    assert reader.write([log]).positions(EventFilter.last(2)) == list(range(1, 25))
    check_all_windows(reader, log)


def test_case_B05_and_B14_a_pinned_system_message_stays_in_the_view(reader: Reader) -> None:
    log = reader.write([[system(1)], turn(2), turn(6), summary(10, [(6, 9)], pinned=[(1, 1)])])
    assert log.positions(EventFilter.active()) == [1, 11, 12, 6, 7, 8, 9]
    assert log.positions(EventFilter.active().replace(last=7)) == [1, 11, 12, 6, 7, 8, 9]


def test_case_B06_whole_turns_are_left_out_from_the_old_end(reader: Reader) -> None:
    log = [user(1), assistant(2), user(3), calls(4, "c"), results(5, "c"), assistant(6), user(7)]
    written = reader.write([log])
    assert written.positions(EventFilter.last(6)) == [1, 2, 3, 4, 5, 6, 7]
    assert written.positions(EventFilter.last(5)) == [3, 4, 5, 6, 7]
    check_all_windows(reader, log)


def test_case_B08_a_window_does_not_begin_with_results_whose_calls_are_outside(reader: Reader) -> None:
    log = [user(1), assistant(2), user(3), calls(4, "c"), results(5, "c"), *(assistant(n) for n in range(6, 11))]
    assert log[-6].content.type is MessageType.TOOL
    assert reader.write([log]).positions(EventFilter.last(6)) == list(range(3, 11))


def test_case_B10_parallel_results_stay_with_their_message(reader: Reader) -> None:
    log = [user(1), calls(2, "1", "2"), results(3, "1", content="long" * 1000), results(4, "2"), assistant(5), user(6)]
    written = reader.write([log])
    for n in (2, 3, 4, 5):
        assert written.positions(EventFilter.last(n)) == [1, 2, 3, 4, 5, 6]
    check_all_windows(reader, log)


def test_case_B11_each_event_appears_exactly_once(reader: Reader) -> None:
    log = reader.write([[user(1), calls(2, "1", "2"), results(3, "1"), results(4, "2")], summary(5, [(1, 4)])])
    assert log.positions(EventFilter.active()) == [6, 7, 1, 2, 3, 4]
    for view in ([(1, 4), (3, 4)], [(3, 4), (3, 4)]):
        with pytest.raises(InvalidBatchError, match="named twice"):
            check_boundary([boundary(5, view)], 4)


def test_case_B12_the_open_turns_user_message_is_in_every_window(reader: Reader) -> None:
    log = [user(1), assistant(2), user(3), calls(4, "c"), results(5, "c", content="long" * 1000)]
    written = reader.write([log])
    for n in (1, 2, 3):
        assert written.positions(EventFilter.last(n)) == [3, 4, 5]


def test_case_B13_a_window_begins_at_a_user_message_however_large_the_turn(reader: Reader) -> None:
    log = [user(1), assistant(2), user(3), calls(4, "c"), results(5, "c", content="x" * 100_000), assistant(6)]
    assert reader.write([log]).positions(EventFilter.last(1)) == [3, 4, 5, 6]


def test_case_B46_what_comes_behind_the_cut_is_kept(reader: Reader) -> None:
    log = reader.write([[user(1), assistant(2), user(3), assistant(4)], summary(5, [(3, 4)])])
    assert log.positions(EventFilter.active()) == [6, 7, 3, 4]


def test_case_B58_text_before_a_boundary_can_be_read(reader: Reader) -> None:
    log = reader.write([turn(1), turn(5), summary(9, [(5, 8)]), turn(12), summary(16, [(12, 15)])])
    assert log.positions(EventFilter.all()) == list(range(1, 19))
    assert log.positions(EventFilter(keyword="question 1")) == [1, 12]
    assert log.positions(EventFilter.active()) == [17, 18, 12, 13, 14, 15]


def test_case_B88_and_B98_the_order_is_that_of_appending_whatever_the_clock_said(reader: Reader) -> None:
    """Equal times and times that run back; E: B101 and B102, too."""
    moments = [5, 5, 3, 5, 0, 5]
    log = [user(n, f"{n}", timestamp=START + timedelta(seconds=moment)) for n, moment in enumerate(moments, 1)]
    written = reader.write([log[:2], log[2:]])
    assert [made.content.text for made in written.read(EventFilter.all())] == ["1", "2", "3", "4", "5", "6"]
    assert written.positions(EventFilter(since=START + timedelta(seconds=5))) == [1, 2, 4, 6]
    assert written.positions(EventFilter(since=START + timedelta(seconds=5), last=2, whole_turns=False)) == [4, 6]
    assert written.positions(EventFilter(until=START + timedelta(seconds=3))) == [3, 5]


def test_case_B106_a_time_is_read_back_as_the_same_instant(reader: Reader) -> None:
    moment = START + timedelta(microseconds=123_457)
    made = user(1, timestamp=moment)
    assert reader.write([[made]]).read(EventFilter.all())[0].timestamp == moment
    assert reader.write([[made]]).positions(EventFilter(since=moment, until=moment)) == [1]


def test_case_B108_older_messages_are_reached_by_a_position_that_survives_appends(reader: Reader) -> None:
    log = [user(n) for n in range(1, 101)]
    for written in (reader.write([log]), reader.write([log, [user(101), user(102)]])):
        assert written.positions(EventFilter(before=81, last=20)) == list(range(61, 81))
        assert written.positions(EventFilter(after=60, before=81)) == list(range(61, 81))


@pytest.mark.parametrize("term", ["%", "_", "*", "a') OR 1=1 --", '"', "don't", "a-b", "@nasa", "park.", "NEAR(", "\\"])
def test_case_B111_B113_B153_a_keyword_means_itself(reader: Reader, term: str) -> None:
    log = reader.write([[user(1, "nothing of the kind"), assistant(2, f"so {term} it is"), user(3, "")]])
    assert log.positions(EventFilter(keyword=term)) == [2]
    assert log.positions(EventFilter(keywords=[term, "absent"])) == [2]
    assert log.positions(EventFilter(pattern=re.compile(re.escape(term)))) == [2]
    assert reader.write([[user(1, "nothing")]]).positions(EventFilter(keyword=term)) == []


def test_case_B115_chinese_is_found(reader: Reader) -> None:
    assert reader.write([[user(1, "这是中文"), user(2, "这是")]]).positions(EventFilter(keyword="中文")) == [1]


def test_case_B116_and_B119_a_log_holds_its_own_events_only(reader: Reader) -> None:
    first, second = reader.write([turn(1), turn(5)]), reader.write([[user(1), assistant(2)]])
    assert second.positions(EventFilter.all()) == [1, 2]
    assert second.positions(EventFilter.last(5)) == [1, 2]
    assert len(first.positions(EventFilter.last(10))) == 8


def test_case_B122_a_time_alone_is_enough(reader: Reader) -> None:
    log = reader.write([[user(n) for n in range(1, 10)], [own(10)]])
    evening = EventFilter(since=START + timedelta(seconds=3), until=START + timedelta(seconds=5))
    assert log.positions(evening) == [3, 4, 5]


@pytest.mark.parametrize("text", ["\udc88", "ünïcödé \udc88", "\0", "👩‍👩‍👧", "x" * 5_000])
def test_case_B129_B149_B150_text_is_kept_and_never_rewritten(reader: Reader, text: str) -> None:
    log = reader.write([[user(1, text), results(2, "c", content=text)]])
    question, answer = log.read(EventFilter.all())
    assert question.content.text == text
    assert answer == results(2, "c", content=text, position=2)
    assert log.positions(EventFilter(keyword=text)) == [1, 2]
