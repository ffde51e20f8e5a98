"""``check``: which of a provider's rules a file of requests breaks."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Final, NamedTuple

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from turnlog.cli.escaping import one_line
from turnlog.cli.importing.importer import LONGEST_LINE
from turnlog.cli.importing.sources import Source
from turnlog.cli.options import JsonOption
from turnlog.cli.terminal import output, print_json, progress, say
from turnlog.errors import ImportFormatError, InvalidValueError
from turnlog.formats import Problem, ProblemLevel, problems
from turnlog.formats.json_fields import as_object
from turnlog.formats.json_stream import JsonStream
from turnlog.formats.json_text import InvalidJsonError

#: How the command ends when the provider would refuse a request.
REFUSED: Final = 11

_STYLES: Final = {ProblemLevel.ERROR: "red", ProblemLevel.BY_MODEL: "yellow", ProblemLevel.WARNING: "dim"}


class ProviderChoice(StrEnum):
    """What ``--provider`` takes: whoever has rules."""

    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    BEDROCK = "bedrock"


FileArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="JSON or JSON Lines, gzipped or not; - is standard input.")
]
ProviderOption = Annotated[
    ProviderChoice, typer.Option("--provider", help="Whose rules, and whose form the requests have.")
]


class Checked(NamedTuple):
    """A request of the file, from 1, the line where it begins, and what it breaks."""

    number: int
    line: int
    problems: list[Problem]


def check(file: FileArgument, provider: ProviderOption, as_json: JsonOption = False) -> None:
    """Find what a provider would refuse: one request, a list of them, or one a line.

    Ends with 11 when a problem of level error is found.
    """
    levels = Counter[ProblemLevel]()
    requests = 0
    with Source(file) as source, progress(f"checking {source.name}", source.size) as moved, source.named():
        source.on_read = moved
        for checked in checked_requests(source, provider.value):
            requests += 1
            levels.update(problem.level for problem in checked.problems)
            if as_json:
                for problem in checked.problems:
                    print_json({"request": checked.number, "line": checked.line, "problem": problem})
            elif checked.problems:
                _print(output(), source.place, checked)
    say(f"{source.place}: {requests:,} {'request' if requests == 1 else 'requests'}, {_counted(levels)}")
    if levels[ProblemLevel.ERROR]:
        sys.exit(REFUSED)


def _counted(levels: Counter[ProblemLevel]) -> str:
    total = levels.total()
    if not total:
        return "no problems"
    counts = ", ".join(f"{levels[level]:,} {level}" for level in ProblemLevel if levels[level])
    return f"{total:,} {'problem' if total == 1 else 'problems'} ({counts})"


def checked_requests(source: Source, provider: str) -> Iterator[Checked]:
    """The requests of a file, one after another; raises :class:`ImportFormatError` for what is no request."""
    reader = JsonStream(source.read_pass().read, longest=LONGEST_LINE)
    line = 0
    try:
        for number, _ in enumerate(_requests(reader), 1):
            reader.peek()
            line = reader.line
            request = as_object(reader.value(), "a request")
            yield Checked(number, line, problems(request, provider))
    except InvalidJsonError as error:
        raise ImportFormatError(source.place, error.line, f"invalid JSON: {error.reason}") from error
    except InvalidValueError as error:
        raise ImportFormatError(source.place, line, str(error)) from error
    if not line:
        raise ImportFormatError(source.place, 0, "no request is in the file")


def _requests(reader: JsonStream) -> Iterator[None]:
    """Stop at each request: the elements of a list, or values one after another, which JSON Lines are."""
    if reader.peek() == "[":
        yield from reader.array()
        reader.end()
        return
    while reader.peek():
        yield


def _print(console: Console, name: str, checked: Checked) -> None:
    console.print(Text(f"{one_line(name)}, line {checked.line}: request {checked.number:,}", style="bold"))
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(overflow="fold", ratio=2)
    table.add_column(overflow="fold", ratio=3)
    for problem in checked.problems:
        where = Text.assemble((one_line(problem.place), ""), "\n", (problem.level.value, _STYLES[problem.level]))
        what = Text.assemble((problem.rule, _STYLES[problem.level]), "\n", one_line(problem.message))
        if problem.says is not None:
            what.append(f"\n“{one_line(problem.says)}”", style="dim")
        table.add_row(where, what)
    console.print(table)
