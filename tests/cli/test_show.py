"""``turnlog show`` and ``expand``: turns, marks, every filter as options, and nothing that acts on a terminal."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conversations import TRIP, assistant, tool, user
from tests.cli.running import CommandLine
from turnlog.log.event_filter import EventFilter, Match
from turnlog.log.events import EventMetadata, EventType, SessionEvent
from turnlog.log.messages import (
    AssistantMessage,
    MediaPart,
    MessageType,
    ReasoningPart,
    TextPart,
    ToolMessage,
    ToolResult,
    ToolStatus,
    UserMessage,
)
from turnlog.log.session import Session
from turnlog.log.view import Boundary
from turnlog.storage.opening import open_store

FileOf = Callable[..., Path]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def trip(turnlog: CommandLine, file_of: FileOf) -> CommandLine:
    """A store with the session ``chat``."""
    turnlog.ok("import", file_of(*TRIP))
    return turnlog


def event(number: int, message: Any = None, **fields: Any) -> SessionEvent:
    moment = NOON + timedelta(minutes=number)
    return SessionEvent(session_id="deep", id=f"e{number}", message=message, timestamp=moment, **fields)


def synthetic(number: int, message: Any) -> SessionEvent:
    marks = {EventMetadata.SYNTHETIC: True, EventMetadata.STRATEGY: "summary", EventMetadata.BOUNDARY: "e5"}
    return event(number, message, metadata=marks)


#: Two turns, a sub-agent, an own type, a compaction that covers the first turn, and a third turn.
DEEP = [
    [event(1, UserMessage("Where is Rome?"))],
    [event(2, UserMessage("sub-task"), branch="orch.researcher")],
    [event(3, payload={"done": 0.5}, type=EventType.of("MY_APP.PROGRESS"))],
    [event(4, AssistantMessage("In Italy."))],
    [
        event(
            5,
            payload=Boundary(view=((6, 7),), end=7, strategy="summary", covered=(1, 4)).payload(),
            type=EventType.COMPACTION,
        ),
        synthetic(6, UserMessage("What was said?")),
        synthetic(7, AssistantMessage("Rome is in Italy.")),
    ],
    [event(8, UserMessage("And Oslo?"))],
    [event(9, AssistantMessage("In Norway."))],
]


@pytest.fixture
def deep(turnlog: CommandLine) -> CommandLine:
    """A store with the session ``deep``."""
    with open_store(str(turnlog.store)) as repository:
        repository.restore(Session(id="deep", created_at=NOON), DEEP)
    return turnlog


def test_turns_under_rules_calls_above_their_results(trip: CommandLine) -> None:
    out = trip.ok("show", "chat").out
    shown = [line for line in out.splitlines() if line]
    assert shown[0].startswith("chat: 8 events in 2 turns, created ")
    assert [line.split("  ")[0] for line in shown if line.startswith("──")] == ["── preamble", "── turn 1", "── turn 2"]
    assert [line for line in shown[1:] if not line.startswith("──")] == [
        "  1  system    You plan trips.",
        "  2  user      Where is it warm in May?",
        "  3  assistant Let me look.",
        "               → do_a {}",
        "               → do_b {}",
        "  4  tool      ← do_a Rome 24 degrees",
        "  5  tool      ← do_b Oslo 11 degrees",
        "  6  assistant Rome is warm in May.",
        "  7  user      And in June?",
        "  8  assistant Rome too.",
    ]


def test_a_window_that_begins_within_a_turn_says_so(trip: CommandLine) -> None:
    cut = trip.ok("show", "chat", "--last", 5, "--no-whole-turns").out
    assert "turn 1, from its middle on" in cut
    assert "← a (its call is not shown) Rome 24 degrees" in cut
    whole = trip.ok("show", "chat", "--last", 5).out
    assert "from its middle" not in whole
    assert "← do_a Rome 24 degrees" in whole


def test_marks_of_branches_own_types_boundaries_and_summaries(deep: CommandLine) -> None:
    out = deep.ok("show", "deep").out
    assert "  2◦ user      on branch orch.researcher" in out
    assert '  3◦ event     MY_APP.PROGRESS {"done":0.5}' in out
    assert "── 5 summary  the view is now 6-7 ──" in out
    assert "── summary  2026-01-01 12:06:00 UTC ──" in out
    assert "  6  user      written by summary\n               What was said?" in out
    assert "◦ in the log, but not in the view" in out
    assert "── turn 2  2026-01-01 12:08:00 UTC ──" in out


def test_the_view_and_the_view_as_it_was(deep: CommandLine) -> None:
    """A-3: as_of reads the view as it was at a version."""

    def positions(*options: str | int) -> list[int]:
        return [line["position"] for line in deep.ok("show", "deep", "--json", *options).json_lines()]

    assert positions() == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert positions("--view") == [6, 7, 8, 9]
    assert positions("--view", "--as-of", 4) == [1, 2, 3, 4]
    assert positions("--view", "--as-of", 6) == [1, 2, 3, 4]  # within a batch: the one before it


def test_the_headline_is_of_the_version_that_is_shown(deep: CommandLine) -> None:
    """And stands above nothing where the log has no such version."""
    assert deep.ok("show", "deep", "--as-of", 2).out.startswith("deep: 2 events in 1 turns, ")
    assert "as of version 6" in (headline := deep.ok("show", "deep", "--as-of", 6).out.splitlines()[0])
    assert headline.startswith("deep: 4 events in 1 turns, ")
    for beyond in (10, -1):
        ran = deep.run("show", "deep", "--as-of", beyond)
        assert (ran.code, ran.out) == (3, "")
        assert f"has versions 0 to 9, not {beyond}" in ran.err


def test_expand_shows_what_a_boundary_covers(deep: CommandLine) -> None:
    """A-3: of the boundary, or of an event of its summary, by position or id."""
    for event_name in ("5", "e5", "6", "e7"):
        lines = deep.ok("expand", "deep", event_name, "--json").json_lines()
        assert [line["position"] for line in lines] == [1, 2, 4]
    assert "Where is Rome?" in deep.ok("expand", "deep", 5).out
    for unknown in ("nothing", "77", "0", "9" * 30):
        deep.fails(3, "expand", "deep", unknown)
    deep.fails(2, "expand", "deep", "1")


@pytest.mark.parametrize(
    ("options", "selected"),
    [
        ([], EventFilter()),
        (["--view"], EventFilter(active_view=True)),
        (["--type", "user"], EventFilter(message_types={MessageType.USER})),
        (["-t", "user,ASSISTANT"], EventFilter(message_types={MessageType.USER, MessageType.ASSISTANT})),
        (["-t", "user", "-t", "tool"], EventFilter(message_types={MessageType.USER, MessageType.TOOL})),
        (["--event-type", "MY_APP.PROGRESS"], EventFilter(event_types={EventType("MY_APP.PROGRESS")})),
        (["--no-synthetic"], EventFilter(exclude_synthetic=True)),
        (["--since", "2026-01-01T12:03:00Z"], EventFilter(since=NOON + timedelta(minutes=3))),
        (["--until", "2026-01-01T13:03:00+01:00"], EventFilter(until=NOON + timedelta(minutes=3))),
        (["--after", "3"], EventFilter(after=3)),
        (["--before", "3"], EventFilter(before=3)),
        (["--keyword", "rome"], EventFilter(keyword="rome")),
        (["-k", "rome", "-k", "oslo"], EventFilter(keywords=("rome", "oslo"))),
        (["-k", "rome", "-k", "italy", "--match", "all"], EventFilter(keywords=("rome", "italy"), match=Match.ALL)),
        (["-k", " "], EventFilter()),
        (["--pattern", r"\bIn\b"], EventFilter(pattern=re.compile(r"\bIn\b"))),
        (["--branch", "orch.researcher"], EventFilter(branch="orch.researcher")),
        (["--branch", "orch"], EventFilter(branch="orch")),
        (["--root"], EventFilter(branch=None)),
        (["--last", "1"], EventFilter(last=1)),
        (["--last", "1", "--no-whole-turns"], EventFilter(last=1, whole_turns=False)),
        (["--last", "1", "--whole-turns", "--view"], EventFilter(last=1, active_view=True)),
        (["--page", "1", "--page-size", "4"], EventFilter(page=1, page_size=4)),
        (["--page-size", "4"], EventFilter(page_size=4)),
        (["--page", "0"], EventFilter(page=0, page_size=10)),
        (["--page", str(10**18)], EventFilter(page=10**18, page_size=10)),
        (["--page", "1", "--page-size", str(10**18)], EventFilter(page=1, page_size=10**18)),
        (["--last", str(10**18)], EventFilter(last=10**18)),
    ],
)
def test_every_criterion_is_an_option(deep: CommandLine, options: list[str], selected: EventFilter) -> None:
    """F-1, F-4: what is shown is what the filter selects from the whole log."""
    log = [item for batch in DEEP for item in batch]
    shown = [line["id"] for line in deep.ok("show", "deep", "--json", *options).json_lines()]
    assert shown == [item.id for item in selected.apply(log)]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--last", "0"], "n of a last window must be an int of at least 1, not 0"),
        (["--last", "-3"], "at least 1"),
        (["--page", "-1"], "page number"),
        (["--page-size", "0"], "page size"),
        (["--last", "1", "--page", "1"], "exclude each other"),
        (["--no-whole-turns"], "whole_turns goes with last"),
        (["--type", "critic"], "'critic' is not one of system, user, assistant, tool"),
        (["--event-type", "lower"], "event type 'lower'"),
        (["--since", "yesterday"], "--since: 'yesterday' is no time"),
        (["--since", "2026-01-01T12:00:00"], "--since: '2026-01-01T12:00:00' has no time zone"),
        (["--since", "2026-01-02T00:00:00Z", "--until", "2026-01-01T00:00:00Z"], "is later than"),
        (["--pattern", "("], "--pattern: "),
        (["--branch", "a..b"], "empty segment"),
        (["--branch", "a", "--root"], "exclude each other"),
        (["--after", "-1"], "after must be"),
        (["--as-of", "-1"], "has versions 0 to 9"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(deep: CommandLine, options: list[str], problem: str) -> None:
    assert problem in deep.fails(3 if options[0] == "--as-of" else 2, "show", "deep", *options)


def test_json_holds_all_of_an_event(deep: CommandLine) -> None:
    lines = deep.ok("show", "deep", "--json").json_lines()
    assert lines[1] == {
        "session_id": "deep",
        "position": 2,
        "turn": 1,
        "id": "e2",
        "timestamp": "2026-01-01T12:02:00Z",
        "type": "MESSAGE",
        "branch": "orch.researcher",
        "metadata": {},
        "message": {"role": "user", "content": "sub-task"},
    }
    assert lines[2]["payload"] == {"done": 0.5}
    assert "message" not in lines[2]


HOSTILE = "\x1b]0;owned\x07\x1b[31mred\x9b2J\x7f\u202etxet\u2066 [bold]markup[/bold] :smile: \ud800"


def test_nothing_in_the_data_acts_on_the_terminal(turnlog: CommandLine, file_of: FileOf) -> None:
    """Escape sequences, direction marks, surrogates and markup are shown as what they are, in every command."""
    call = assistant(HOSTILE, "c")
    call["tool_calls"][0]["function"] |= {"name": HOSTILE, "arguments": HOSTILE}
    media = {"role": "user", "content": [{"type": "file", "file": {"file_id": HOSTILE, "filename": HOSTILE}}]}
    messages = [user(HOSTILE), call, tool("c", HOSTILE), tool(HOSTILE, HOSTILE), media]
    turnlog.ok("import", file_of(*messages))
    outputs = [
        turnlog.ok("show", "chat").out,
        turnlog.ok("show", "chat", "--full").out,
        turnlog.ok("show", "chat", "--json").out,
        turnlog.ok("search", "chat", "red").out,
        turnlog.ok("search", "chat", "red", "--json").out,
        turnlog.ok("sessions").out,
        turnlog.run("show", HOSTILE.replace("\ud800", "")).err,
        turnlog.run("import", "nowhere/" + HOSTILE.replace("\ud800", "")).err,
    ]
    for output in outputs:
        assert not set(output) & set("\x1b\x07\x9b\x7f\u202e\u2066\ud800")
    shown = r"\x1b[31mred\x9b2J\x7f\u202etxet\u2066 [bold]markup[/bold] :smile: \ud800"
    assert shown.replace(" ", "") in re.sub(r"\s", "", outputs[1])
    (line, *_) = [json.loads(text) for text in outputs[2].splitlines()]
    assert line["escaped"] is True


def test_lines_fit_the_terminal_and_carry_no_trailing_space(turnlog: CommandLine, file_of: FileOf) -> None:
    text = "\n\n".join(["word " * 60, "字" * 300, "x" * 300, "\t" * 30, "👩‍👩‍👧 " * 40])
    turnlog.ok("import", file_of(user(text), assistant(text, "c"), tool("c", text)))
    for options in ([], ["--full"]):
        for line in turnlog.ok("show", "chat", *options).out.splitlines():
            assert line == line.rstrip()
            assert sum(2 if "一" <= character <= "鿿" else 1 for character in line if character != "\u200d") <= 120
            assert len(line) <= 80 or "👩" in line


def test_long_texts_are_clipped_and_say_by_how_much(turnlog: CommandLine, file_of: FileOf) -> None:
    turnlog.ok("import", file_of(user("z" * 10_000), user("x\n" * 500)))
    out = turnlog.ok("show", "chat").out
    first, second = (int(found.replace(",", "")) for found in re.findall(r"… ([\d,]+) more characters", out))
    assert out.count("z") + first == 10_000
    assert 2 * out.count("x\n") + second == 1_000
    assert len(out.splitlines()) < 40
    full = turnlog.ok("show", "chat", "--full").out
    assert full.count("z") == 10_000
    assert full.count("x\n") == 500


def test_every_kind_of_part_is_shown(turnlog: CommandLine) -> None:
    parts = (
        ReasoningPart(text="hmm"),
        ReasoningPart(data="secret"),
        TextPart("No.", refusal=True),
        MediaPart(media_type="image/png", data=bytes(1500)),
        MediaPart(url="https://e.org/" + "x" * 100),
        MediaPart(file_id="file-1", name="a.pdf", media_type="application/pdf"),
    )
    results = (
        ToolResult("c", "boom", ToolStatus.ERROR),
        ToolResult("d", None, ToolStatus.NOT_RUN),
        ToolResult("e", ""),
    )
    with open_store(str(turnlog.store)) as repository:
        batch = [[event(1, AssistantMessage(parts))], [event(2, ToolMessage(results))], [event(3, UserMessage(None))]]
        repository.restore(Session(id="deep", created_at=NOON), batch)
    out = turnlog.ok("show", "deep").out
    for shown in (
        "thinking: hmm",
        "thinking: (withheld)",
        "refused: No.",
        "[image/png: 2 kB]",
        "https://e.org/xxx",
        "[application/pdf: a.pdf, file-1]",
        "← c error (its call is not shown) boom",
        "← d not run (its call is not shown) (no content)",
        "← e (its call is not shown) (empty)",
        "  3  user      (no content)",
    ):
        assert shown in out


def test_a_call_id_that_is_used_again_names_the_newest_call(turnlog: CommandLine, file_of: FileOf) -> None:
    again = assistant(None, "c")
    again["tool_calls"][0]["function"]["name"] = "other"
    turnlog.ok("import", file_of(user("x"), assistant(None, "c"), tool("c", "1"), again, tool("c", "2")))
    out = turnlog.ok("show", "chat").out
    assert "← do_c 1" in out
    assert "← other 2" in out


def test_signs_are_ascii_where_the_output_has_no_more(trip: CommandLine) -> None:
    environment = {"PYTHONIOENCODING": "ascii", "TURNLOG_STORE": str(trip.store), "COLUMNS": "80", "PATH": ""}
    ran = subprocess.run(
        [sys.executable, "-m", "turnlog.cli.main", "show", "chat"], env=environment, capture_output=True, check=True
    )
    out = ran.stdout.decode("ascii")
    assert "-- turn 1 " in out
    assert "-> do_a {}" in out
    assert "\\u" not in out


def test_an_empty_session_and_a_filter_that_finds_nothing(trip: CommandLine, file_of: FileOf) -> None:
    trip.ok("import", file_of({"id": "empty", "messages": []}, name="e.json"))
    assert trip.ok("show", "empty").out.endswith("no events\n")
    assert trip.ok("show", "chat", "-k", "nowhere").out.endswith("no events\n")
    assert trip.ok("show", "chat", "-k", "nowhere", "--json").out == ""


def test_an_unknown_session_is_an_error(trip: CommandLine) -> None:
    """R-5: a mistyped id is no empty conversation."""
    for options in ([], ["--json"], ["--last", "1"], ["--view"]):
        assert "'nobody' does not exist or has expired" in trip.fails(3, "show", "nobody", *options)


def test_the_style_of_a_role_ends_with_it(trip: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours are there only where somebody looks, and what was said is plain."""
    assert "\x1b" not in trip.ok("show", "chat").out
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    lines = trip.ok("show", "chat").out.splitlines()
    (said,) = [line for line in lines if "Where is it warm" in line]
    assert said == "\x1b[2m  2  \x1b[0m\x1b[1;32muser      \x1b[0mWhere is it warm in May?"
    (result,) = [line for line in lines if "Oslo" in line]
    assert result.endswith("\x1b[33m← \x1b[0m\x1b[1mdo_b \x1b[0mOslo 11 degrees")
