"""``check``: what a provider would refuse of a file of requests (P-2)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.running import CommandLine
from turnlog.cli.check_command import ProviderChoice, checked_requests
from turnlog.cli.importing.sources import Source
from turnlog.errors import ImportFormatError
from turnlog.formats import Problem, problems
from turnlog.formats.rules import PROVIDERS

FileOf = Callable[..., Path]

RIGHT: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello"}]}
WRONG: dict[str, Any] = {
    "messages": [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}]},
    ],
    "model": "claude-opus-4-6",
}
RULES = ["anthropic.tool-use-unanswered", "anthropic.prefill"]


def check(turnlog: CommandLine, path: Path | str, code: int, stdin: bytes = b"") -> list[Any]:
    ran = turnlog.run("check", path, "--provider", "anthropic", "--json", stdin=stdin)
    assert ran.code == code, ran.err
    return ran.json_lines()


def test_problems_are_printed_with_rule_place_and_the_providers_words(
    turnlog: CommandLine, file_of: FileOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = turnlog.run("check", file_of(RIGHT, WRONG).name, "--provider", "anthropic")
    assert ran.code == 11
    printed = " ".join(ran.out.split())
    assert "chat.jsonl, line 2: request 2" in printed
    assert "messages[1].content[0] anthropic.tool-use-unanswered" in printed
    assert "“messages.1: `tool_use` ids were found" in printed
    assert ran.err == "chat.jsonl: 2 requests, 2 problems (2 error)\n"


def test_a_right_file_ends_with_0_and_prints_nothing(turnlog: CommandLine, file_of: FileOf) -> None:
    path = file_of(RIGHT)
    ran = turnlog.ok("check", path, "--provider", "anthropic")
    assert (ran.out, ran.err) == ("", f"{path}: 1 request, no problems\n")


def test_what_only_some_models_refuse_is_no_failure(turnlog: CommandLine, file_of: FileOf) -> None:
    prefilled = {"messages": [*RIGHT["messages"], {"role": "assistant", "content": "It"}]}
    path = file_of(prefilled)
    ran = turnlog.ok("check", path, "--provider", "anthropic")
    assert "by_model" in ran.out
    assert ran.err == f"{path}: 1 request, 1 problem (1 by_model)\n"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (json.dumps(WRONG), [1]),
        (json.dumps(WRONG, indent=2), [1]),
        (f"\ufeff{json.dumps(WRONG)}\n", [1]),
        (f"{json.dumps(RIGHT)}\n\n{json.dumps(WRONG)}\n", [3]),
        (json.dumps([RIGHT, WRONG, WRONG]), [1, 1]),
        ("[\n" + ",\n".join(map(json.dumps, [WRONG, RIGHT, WRONG])) + "\n]", [2, 4]),
    ],
)
def test_every_layout_of_a_file_is_read(turnlog: CommandLine, file_of: FileOf, text: str, lines: list[int]) -> None:
    found = check(turnlog, file_of(text=text), 11)
    assert [problem["line"] for problem in found] == [line for line in lines for _ in RULES]
    assert {problem["problem"]["rule"] for problem in found} == set(RULES)


def test_a_gzipped_file_and_standard_input_are_read(turnlog: CommandLine, tmp_path: Path) -> None:
    data = json.dumps(WRONG).encode()
    path = tmp_path / "chat.json.gz"
    path.write_bytes(gzip.compress(data))
    assert check(turnlog, path, 11) == check(turnlog, "-", 11, stdin=data) != []


def test_the_json_holds_all_that_is_known_of_a_problem(turnlog: CommandLine, file_of: FileOf) -> None:
    first, _ = check(turnlog, file_of(RIGHT, WRONG), 11)
    problem = first.pop("problem")
    assert first == {"request": 2, "line": 2}
    assert set(problem) == {"rule", "level", "place", "message", "says"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "chat.jsonl: no request is in the file"),
        ("[]", "chat.jsonl: no request is in the file"),
        ("{}", "chat.jsonl:1: the request has no 'messages'"),
        ("5", "chat.jsonl:1: a request must be an object, not a number"),
        (f"{json.dumps(RIGHT)}\n{{", "chat.jsonl:2: invalid JSON: expecting property name enclosed in double quotes"),
        (f"[{json.dumps(RIGHT)}\n5]", "chat.jsonl:2: invalid JSON: expecting ',' or ']'"),
        (f'{json.dumps(RIGHT)}\n{{"messages": [5]}}', "chat.jsonl:2: messages[0] must be an object, not a number"),
    ],
)
def test_what_is_no_request_is_named_with_its_line(turnlog: CommandLine, file_of: FileOf, text: str, said: str) -> None:
    assert said in turnlog.fails(8, "check", file_of(text=text), "--provider", "anthropic")


def test_a_file_that_is_not_there_is_an_error(turnlog: CommandLine, tmp_path: Path) -> None:
    assert "No such file" in turnlog.fails(8, "check", tmp_path / "none.json", "--provider", "gemini")


def test_what_stands_in_a_request_cannot_act_on_the_terminal(turnlog: CommandLine, file_of: FileOf) -> None:
    hostile = {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "\x1b[2J[red]x"}]}]}
    ran = turnlog.run("check", file_of(hostile), "--provider", "anthropic")
    assert ran.code == 11
    assert "\x1b" not in ran.out
    assert "[red]x" in ran.out


def test_whoever_has_rules_can_be_named() -> None:
    assert [choice.value for choice in ProviderChoice] == list(PROVIDERS)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_can_be_named(turnlog: CommandLine, file_of: FileOf, provider: str) -> None:
    request: dict[str, list[Any]] = {"messages": [], "contents": [], "input": []}
    assert turnlog.run("check", file_of(request), "--provider", provider).code == 11


def test_what_is_found_is_printed_before_the_next_request_is_checked(
    turnlog: CommandLine, file_of: FileOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of any size is checked in the memory of its largest request."""
    events: list[str] = []

    def checked(request: dict[str, Any], provider: str) -> list[Problem]:
        events.append("checked")
        return problems(request, provider)

    monkeypatch.setattr("turnlog.cli.check_command.problems", checked)
    monkeypatch.setattr("turnlog.cli.check_command.print_json", lambda _: events.append("printed"))
    turnlog.run("check", file_of(*[WRONG] * 3), "--provider", "anthropic", "--json")
    assert events == ["checked", "printed", "printed"] * 3


_PIECES = st.one_of(
    st.sampled_from(
        [json.dumps(RIGHT).encode(), json.dumps(WRONG).encode(), b"[", b"]", b",", b"{", b"\n", b"\xff", b"5"]
    ),
    st.binary(max_size=4),
)


@given(st.lists(_PIECES, max_size=6), st.sampled_from(list(PROVIDERS)))
def test_whatever_bytes_a_file_holds_it_is_checked_or_refused_with_its_line(pieces: list[bytes], provider: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "any.json"
        path.write_bytes(b"".join(pieces))
        try:
            with Source(str(path)) as source, source.named():
                numbers = [checked.number for checked in checked_requests(source, provider)]
        except ImportFormatError as error:
            assert str(error).startswith(f"{path}:")  # noqa: PT017 - most files are refused, and some are not
            return
    assert numbers == list(range(1, len(numbers) + 1)) != []
