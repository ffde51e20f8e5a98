"""Recording a history from threads, tasks and processes, reading it back, and checking it from the command line."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from turnlog.log.events import SessionEvent
from turnlog.log.messages import UserMessage
from turnlog.testing.history import (
    Absent,
    Conflict,
    Done,
    Failed,
    FinalLog,
    HistoryFormatError,
    HistoryRecorder,
    Ok,
    Operation,
    Outcome,
    RecordedEvent,
    Seen,
    Unknown,
    check_history,
    content_digest,
    final_logs,
    load_final_logs,
    load_history,
    recorded_event,
)
from turnlog.testing.history.__main__ import main

A, B = RecordedEvent("a", content_digest("a")), RecordedEvent("b", content_digest("b"))


@pytest.fixture(params=["memory", "file"])
def recorder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HistoryRecorder]:
    with HistoryRecorder(None if request.param == "memory" else tmp_path / "history.jsonl", process="w") as recorder:
        yield recorder


def outcomes(operations: Sequence[Operation]) -> list[Outcome]:
    return [operation.outcome for operation in operations]


def test_what_is_recorded_comes_back(recorder: HistoryRecorder) -> None:
    recorder.create("s").done()
    recorder.append("s", [A, B], expected_version=0).ok(1, 2)
    recorder.append("s", [A], expected_version=7).ok(1, 1, replay=True)
    recorder.append("s", [B], expected_version=9).conflict(2)
    recorder.append("s", [B]).failed("content")
    recorder.append("s", [B]).unknown("lost")
    recorder.read("s").seen([A, B], version=2)
    recorder.read("s", window=1).seen([B], version=2, positions=[2])
    recorder.read("s", window="filtered").seen([A], positions=[1])
    recorder.read("s").absent()
    recorder.delete("s").done()
    operations = recorder.operations()
    assert outcomes(operations) == [
        Done(),
        Ok(1, 2),
        Ok(1, 1, replay=True),
        Conflict(2),
        Failed("content"),
        Unknown("lost"),
        Seen((A, B), 2),
        Seen((B,), 2, (2,)),
        Seen((A,), None, (1,)),
        Absent(),
        Done(),
    ]
    assert [operation.kind for operation in operations] == ["create"] + ["append"] * 5 + ["read"] * 4 + ["delete"]
    assert [operation.window for operation in operations if operation.kind == "read"] == [
        "whole",
        1,
        "filtered",
        "whole",
    ]
    assert [operation.expected_version for operation in operations[1:4]] == [0, 7, 9]
    assert operations[1].events == (A, B)
    assert {(operation.process, operation.session) for operation in operations} == {("w", "s")}
    for earlier, later in pairwise(operations):
        assert earlier.invoked_ns <= (earlier.returned_ns or 0) <= later.invoked_ns


def test_a_call_without_an_answer_is_unknown(recorder: HistoryRecorder) -> None:
    recorder.append("s", [A])
    (operation,) = recorder.operations()
    assert operation.returned_ns is None
    assert isinstance(operation.outcome, Unknown)


def test_an_exception_that_escapes_leaves_the_outcome_unknown(recorder: HistoryRecorder) -> None:
    with pytest.raises(TimeoutError), recorder.append("s", [A]):
        raise TimeoutError
    assert outcomes(recorder.operations()) == [Unknown("TimeoutError")]


def test_what_the_block_says_stands(recorder: HistoryRecorder) -> None:
    def append() -> None:
        with recorder.append("s", [A]) as call:
            call.failed("refused")
            raise TimeoutError

    with pytest.raises(TimeoutError):
        append()
    assert outcomes(recorder.operations()) == [Failed("refused")]


def test_an_outcome_is_said_once_and_not_forgotten(recorder: HistoryRecorder) -> None:
    call = recorder.append("s", [A])
    call.ok(1, 1)
    with pytest.raises(RuntimeError, match="has ended before"):
        call.failed()
    with pytest.raises(RuntimeError, match="no outcome"), recorder.append("s", [B]):
        pass
    assert outcomes(recorder.operations())[0] == Ok(1, 1)


def test_threads_share_a_recorder(recorder: HistoryRecorder) -> None:
    start = threading.Barrier(8)

    def work(number: int) -> None:
        mine = recorder.worker(f"t{number}")
        start.wait()
        for count in range(200):
            mine.append("s", [RecordedEvent(f"{number}-{count}")]).ok(count + 1, count + 1)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    operations = recorder.operations()
    assert len(operations) == 1_600
    assert {operation.process for operation in operations} == {f"t{number}" for number in range(8)}
    assert len({operation.events for operation in operations}) == 1_600
    assert all(operation.outcome == _answer(operation.events[0]) for operation in operations)


def _answer(event: RecordedEvent) -> Ok:
    """What the thread that offered the event was told: each answer belongs to its own call."""
    count = int(event.id.partition("-")[2]) + 1
    return Ok(count, count)


def test_without_a_name_each_thread_is_a_process_of_its_own() -> None:
    recorder = HistoryRecorder()
    thread = threading.Thread(target=lambda: recorder.read("s").seen())
    thread.start()
    thread.join()
    recorder.read("s").seen()
    assert len({operation.process for operation in recorder.operations()}) == 2


async def test_tasks_use_a_worker_each() -> None:
    recorder = HistoryRecorder()

    async def work(name: str) -> None:
        with recorder.worker(name).append("s", [RecordedEvent(name)]) as call:
            await asyncio.sleep(0)
            call.ok(1, 1)

    await asyncio.gather(work("one"), work("two"))
    assert [operation.process for operation in recorder.operations()] == ["one", "two"]


WRITER = textwrap.dedent(
    """
    import sys
    from turnlog.testing.history import HistoryRecorder, RecordedEvent
    recorder = HistoryRecorder(sys.argv[1], process=sys.argv[2])
    for count in range(1, 301):
        recorder.append("s", [RecordedEvent(f"{sys.argv[2]}-{count}", "d" * 500)]).ok(count, count)
    recorder.append("s", [RecordedEvent("last")])
    print("ready", flush=True)
    sys.stdin.read()
    """
)


def writer(path: Path, name: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


@pytest.mark.parametrize("shared", [True, False])
def test_processes_write_one_file_or_one_each_and_a_killed_one_leaves_its_call_unknown(
    *, tmp_path: Path, shared: bool
) -> None:
    paths = [tmp_path / ("all.jsonl" if shared else f"{name}.jsonl") for name in ("x", "y", "z")]
    children = [writer(path, name) for path, name in zip(paths, ("x", "y", "z"), strict=True)]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGKILL)
        child.communicate()
    operations = load_history(*dict.fromkeys(paths))
    assert len(operations) == 3 * 301
    assert sum(isinstance(operation.outcome, Unknown) for operation in operations) == 3
    for name in ("x", "y", "z"):
        firsts = [each.outcome.first for each in operations if each.process == name and isinstance(each.outcome, Ok)]
        assert firsts == list(range(1, 301))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_both_sides_of_a_fork_write_to_the_file(tmp_path: Path) -> None:
    recorder = HistoryRecorder(tmp_path / "history.jsonl")
    child = os.fork()
    if child == 0:
        recorder.append("s", [B]).ok(2, 2)
        os._exit(0)
    recorder.append("s", [A]).ok(1, 1)
    os.waitpid(child, 0)
    assert {operation.events for operation in recorder.operations()} == {(A,), (B,)}
    assert {operation.outcome for operation in recorder.operations()} == {Ok(1, 1), Ok(2, 2)}


def test_a_line_cut_short_anywhere_spoils_no_other(tmp_path: Path) -> None:
    """A killed process may leave any beginning of a line, and another process goes on in the same file."""
    path = tmp_path / "history.jsonl"
    recorder = HistoryRecorder(path)
    recorder.append("s", [RecordedEvent("å\u20ac😀", "d")], expected_version=3).ok(4, 4)
    _, invoked, returned = path.read_bytes().split(b"\n")
    for end in range(1, len(returned)):
        path.write_bytes(b"\n" + invoked + b"\n" + returned[:end])
        with HistoryRecorder(path, process="other") as other:
            other.read("s").seen()
        first, second = load_history(path)
        assert isinstance(first.outcome, Unknown)
        assert second.outcome == Seen()
    for end in range(1, len(invoked)):
        path.write_bytes(b"\n" + invoked[:end])
        assert load_history(path) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("garbage", "line 2: JSON is malformed"),
        ('{"line": "invoke", "call": 3}', "line 2: Expected `str`, got `int`"),
        ('{"line": "else"}', "line 2: Invalid value 'else'"),
        ('{"line": "return", "call": "c", "returned_ns": 1, "outcome": {"type": "done"}}', "the call is not"),
    ],
)
def test_what_no_recorder_wrote_is_refused(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(f"\n{line}\n", encoding="utf-8")
    with pytest.raises(HistoryFormatError, match=message):
        load_history(path)


def test_a_closed_recorder_records_nothing(tmp_path: Path) -> None:
    with HistoryRecorder(tmp_path / "history.jsonl") as recorder:
        worker = recorder.worker("w")
    recorder.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        worker.read("s")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "read", "outcome": Ok(1, 1)}, "the outcome of a call to read"),
        ({"kind": "append", "outcome": Done()}, "the outcome of a call to append"),
        ({"kind": "append", "outcome": Ok(1, 1), "returned_ns": None}, "without the time"),
        ({"kind": "append", "outcome": Ok(1, 1), "returned_ns": 4}, "before it was called"),
        ({"kind": "read", "outcome": Seen((A,)), "window": "filtered"}, "needs the positions"),
    ],
)
def test_an_operation_that_cannot_be_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        possible_operation(**values)


def possible_operation(**values: Any) -> Operation:
    given: dict[str, Any] = {"process": "p", "session": "s", "invoked_ns": 5, "returned_ns": 6, **values}
    return Operation(**given)


def test_each_event_of_a_read_has_one_position() -> None:
    with pytest.raises(ValueError, match="1 events with 2 positions"):
        Seen((A,), None, (1, 2))


def test_a_digest_tells_contents_apart_and_takes_any_text() -> None:
    texts = ["", "a", "A", "\0", "\ud800", "\ud83d\ude00", "😀", "a" * 10**6]
    assert len({content_digest(text) for text in texts}) == len(texts)
    assert content_digest("å") == content_digest("å".encode())


def test_the_digest_of_an_event_stands_for_its_content() -> None:
    """R-4: metadata is not content."""
    event = SessionEvent(session_id="s", id="e", message=UserMessage("hi"))
    same = SessionEvent(session_id="s", id="e", message=UserMessage("hi"), metadata={"note": 1})
    other = SessionEvent(session_id="s", id="e", message=UserMessage("ho"))
    assert recorded_event(event) == recorded_event(same)
    assert recorded_event(event).id == recorded_event(other).id == "e"
    assert recorded_event(event) != recorded_event(other)


def test_a_long_list_of_events_is_shown_by_its_ends() -> None:
    events = tuple(RecordedEvent(f"e{number}") for number in range(1, 101))
    operation = Operation(process="p", kind="append", session="s", invoked_ns=1, events=events)
    assert str(operation) == "p append [e1, e2, … 96 more …, e99, e100] [1, …] unknown"


class TestFinalLogs:
    def test_the_last_whole_read_is_the_final_log(self, recorder: HistoryRecorder) -> None:
        recorder.append("s", [A]).ok(1, 1)
        recorder.append("s", [B])
        recorder.append("t", [A]).absent()
        recorder.read("s").seen([A], version=2)
        recorder.read("t").absent()
        assert final_logs(recorder.operations()) == {"s": FinalLog.of([A], 2), "t": FinalLog()}

    def test_a_read_before_the_last_append_came_back_does_not_do(self, recorder: HistoryRecorder) -> None:
        append = recorder.append("s", [A])
        recorder.read("s").seen([])
        append.ok(1, 1)
        with pytest.raises(ValueError, match="no read of the whole session 's'"):
            final_logs(recorder.operations())

    def test_logs_come_from_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "logs.json"
        path.write_text(
            json.dumps({"s": {"version": 1, "entries": [{"id": "a", "digest": A.digest, "position": 1}]}}),
            encoding="utf-8",
        )
        assert load_final_logs(path) == {"s": FinalLog.of([A])}
        path.write_text("[]", encoding="utf-8")
        with pytest.raises(HistoryFormatError, match="Expected `object`, got `array`"):
            load_final_logs(path)


class TestCommand:
    def record(self, path: Path, *, shown: Sequence[RecordedEvent]) -> str:
        with HistoryRecorder(path, process="w") as recorder:
            recorder.append("s", [A]).ok(1, 1)
            recorder.append("s", [B]).ok(2, 2)
            recorder.read("s").seen(shown)
        return str(path)

    def test_a_right_history_exits_0(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main([self.record(tmp_path / "h.jsonl", shown=[A, B])]) == 0
        assert capsys.readouterr().out == "3 calls on 1 sessions, 0 violations\n"

    def test_a_wrong_one_exits_1_with_the_violations(self, tmp_path: Path) -> None:
        path = self.record(tmp_path / "h.jsonl", shown=[A])
        run = subprocess.run(
            [sys.executable, "-m", "turnlog.testing.history", path], capture_output=True, text=True, check=False
        )
        assert run.returncode == 1
        assert "3 calls on 1 sessions, 1 violations" in run.stdout
        assert "P2, 1 times: every acknowledged event is in the final log" in run.stdout
        assert "event 'b' was acknowledged and is not in the log\n    w append [b]" in run.stdout
        assert not run.stderr

    def test_the_final_logs_may_come_from_a_file(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = self.record(tmp_path / "h.jsonl", shown=[A, B])
        logs = tmp_path / "logs.json"
        logs.write_bytes(msgspec.json.encode({"s": FinalLog.of([A])}))
        assert main([path, "--final", str(logs)]) == 1
        assert "P7" in capsys.readouterr().out

    def test_what_cannot_be_decided_exits_2(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "h.jsonl"
        with HistoryRecorder(path) as recorder:
            recorder.append("s", [A]).ok(1, 1)
        assert main([str(path)]) == 2
        assert main([str(tmp_path / "none.jsonl")]) == 2
        assert main([self.record(tmp_path / "i.jsonl", shown=[]), "--final", str(path)]) == 2
        assert capsys.readouterr().err.count("\n") == 3


def test_a_recorded_history_is_checked(recorder: HistoryRecorder) -> None:
    """The whole way: record, read back, check."""
    recorder.append("s", [A]).ok(1, 1)
    recorder.read("s").seen([A], version=1)
    operations = recorder.operations()
    assert check_history(operations, final_logs(operations)) == []
