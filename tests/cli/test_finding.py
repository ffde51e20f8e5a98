"""``turnlog sessions`` and ``search``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.conversations import TRIP, assistant, user
from tests.cli.running import CommandLine
from turnlog.cli.snippets import snippet
from turnlog.log.search_text import contains_folded

FileOf = Callable[..., Path]


@pytest.fixture
def five(turnlog: CommandLine, file_of: FileOf) -> CommandLine:
    """Five sessions, of ada and of bob."""
    turnlog.ok("import", file_of({"id": "s1", "messages": TRIP}, name="1.jsonl"), "--principal", "ada")
    for number in range(2, 5):
        turnlog.ok("import", file_of([user(f"hello {number}\nthere")], name=f"s{number}.json"), "--principal", "bob")
    long_id = "long/" + "x" * 250
    turnlog.ok("import", file_of({"id": long_id, "messages": []}, name="5.jsonl"))
    return turnlog


def test_sessions_one_a_line_the_newest_first(five: CommandLine) -> None:
    lines = five.ok("sessions").out.splitlines()
    assert lines[0].split() == ["session", "events", "created", "(UTC)", "owner", "begins", "with"]
    assert lines[1] == "long/" + "x" * 250  # whole, to be copied
    assert lines[2].split()[0] == "0"
    assert [line.split()[0] for line in lines[3:]] == ["s4", "s3", "s2", "s1"]
    assert lines[3].endswith("bob  hello 4 there")
    assert lines[6].split()[1] == "8"


def test_sessions_page_by_page(five: CommandLine) -> None:
    seen: list[str] = []
    cursor: list[str] = []
    while True:
        ran = five.ok("sessions", "--limit", 2, "--oldest-first", "--json", *cursor)
        seen += [line["id"] for line in ran.json_lines()]
        if not ran.err:
            break
        cursor = ran.err.removeprefix("more: ").split()
    assert seen == ["s1", "s2", "s3", "s4", "long/" + "x" * 250]


def test_sessions_of_an_owner_or_with_some_metadata(five: CommandLine) -> None:
    def ids(*options: str) -> list[str]:
        return [line["id"] for line in five.ok("sessions", "--json", *options).json_lines()]

    assert ids("--principal", "bob") == ["s4", "s3", "s2"]
    assert ids("--metadata", "principal_name=ada") == ["s1"]
    assert "is not indexed" in five.fails(3, "sessions", "--metadata", "color=red")
    five.fails(2, "sessions", "--metadata", "color")
    five.fails(2, "sessions", "--metadata", "principal_name=ada", "--principal", "ada")
    assert five.ok("sessions", "--principal", "nobody").err == "no sessions\n"


@pytest.mark.parametrize("options", [["--limit", "0"], ["--cursor", "nonsense"], ["--limit", "-1"]])
def test_a_page_that_makes_no_sense_is_refused(five: CommandLine, options: list[str]) -> None:
    five.fails(2, "sessions", *options)


def test_search_finds_literally_in_any_case(five: CommandLine) -> None:
    out = five.ok("search", "s1", "ROME").out.splitlines()
    assert [line.split()[:4] for line in out] == [
        ["turn", "1", "4", "tool"],
        ["turn", "1", "6", "assistant"],
        ["turn", "2", "8", "assistant"],
    ]
    assert five.ok("search", "s1", "rom.").err == "nothing found\n"


def test_search_with_every_criterion(five: CommandLine) -> None:
    def found(*options: str) -> list[int]:
        return [line["position"] for line in five.ok("search", "s1", "--json", *options).json_lines()]

    assert found("rome", "oslo") == [4, 5, 6, 8]
    assert found("rome", "warm", "--match", "all") == [6]
    assert found("rome", "--type", "tool") == [4]
    assert found("--type", "user") == [2, 7]
    assert found("rome", "--after", "4") == [6, 8]
    assert found("rome", "--page-size", "2", "--page", "1") == [8]
    assert found("--since", "2000-01-01T00:00:00Z", "--until", "2000-01-02T00:00:00Z") == []
    assert "--after 6" in five.ok("search", "s1", "rome", "--page-size", "2").err


@pytest.mark.parametrize(
    "options", [[], [""], ["x" * 201], ["x"] * 21, ["x", "--page", "-1"], ["x", "--page", "1", "--after", "3"]]
)
def test_a_search_that_makes_no_sense_is_refused(five: CommandLine, options: list[str]) -> None:
    five.fails(2, "search", "s1", *options)


def test_search_in_an_unknown_session_is_an_error(five: CommandLine) -> None:
    five.fails(3, "search", "nobody", "x")


def test_covered_events_are_found(five: CommandLine) -> None:
    """A-4: what left the view stays in the log and is found."""
    five.ok("clear", "s1")
    assert "turn 2" in five.ok("search", "s1", "rome").out


def test_a_hit_is_marked_in_any_case_and_where_folding_makes_a_character_longer() -> None:
    def marked(text: str, *terms: str) -> list[str]:
        shown = snippet(text, terms, 80)
        return [shown.plain[span.start : span.end] for span in shown.spans]

    assert marked("in Rome and ROME", "rome") == ["Rome", "ROME"]
    assert marked("die Straße", "STRASSE") == ["Straße"]
    assert marked("a\n\nb c", "a b") == ["a b"]
    assert marked("nothing", "x") == []


@given(st.text(max_size=300), st.lists(st.text(min_size=1, max_size=5), max_size=3), st.integers(20, 90))
def test_a_snippet_fits_its_line_and_shows_the_first_hit(text: str, terms: list[str], width: int) -> None:
    shown = snippet(text, terms, width)
    assert shown.cell_len <= width
    assert "\n" not in shown.plain
    assert not any(contains_folded(shown.plain, term.casefold()) for term in terms if "\x1b" in term)


def test_a_hit_far_behind_is_shown(turnlog: CommandLine, file_of: FileOf) -> None:
    turnlog.ok("import", file_of(user("x " * 5000 + "needle" + " y" * 5000), assistant("needle")))
    out = turnlog.ok("search", "chat", "needle").out
    assert out.count("needle") == 2
    assert all(len(line) <= 80 for line in out.splitlines())


def test_metadata_is_said_as_key_and_value(five: CommandLine) -> None:
    for said in ("team", "=x"):
        assert "write KEY=VALUE" in five.fails(2, "sessions", "--metadata", said)
    assert "turnlog index KEY" in five.fails(3, "sessions", "--metadata", "team=x")
