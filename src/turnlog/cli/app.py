"""The commands, put together."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.main import get_command

from turnlog.cli import (
    changing,
    chat_command,
    check_command,
    compacting,
    export_command,
    finding,
    import_command,
    keeping,
    maintaining,
    replay_command,
    showing,
)
from turnlog.cli.main import reporting
from turnlog.cli.terminal import print_line

app = typer.Typer(
    name="turnlog",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer's signature
    if wanted:
        print_line(f"turnlog {version('turnlog')}")
        raise typer.Exit


def _reported(function: Callable[..., None]) -> Callable[..., None]:
    """The command with its errors reported here: typer has an exit code of its own for some of them."""

    @functools.wraps(function)
    def run_and_report(**options: Any) -> None:
        with reporting():
            function(**options)

    return run_and_report


_COMMANDS: dict[str, dict[str, Callable[..., None]]] = {
    "Talk": {"chat": chat_command.chat, "replay": replay_command.replay},
    "Files": {
        "import": import_command.import_,
        "export": export_command.export,
        "backup": keeping.backup,
        "check": check_command.check,
    },
    "Read": {"sessions": finding.sessions, "show": showing.show, "expand": showing.expand, "search": finding.search},
    "Change": {
        "compact": compacting.compact,
        "fork": changing.fork,
        "rewind": changing.rewind,
        "clear": changing.clear,
        "delete": changing.delete,
        "sweep": changing.sweep,
    },
    "Look after": {"doctor": keeping.doctor, "index": maintaining.index},
}
for panel, commands in _COMMANDS.items():
    for name, function in commands.items():
        app.command(name, rich_help_panel=panel)(_reported(function))

app.add_typer(maintaining.migrate, name="migrate", rich_help_panel="Look after")


@app.callback()
def _turnlog(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Conversation logs of LLM applications: import them, read them by turns, search, fork, rewind, export."""


def run(arguments: Sequence[str]) -> None:
    """Run one command; raises what it raises, and :class:`SystemExit` where the usage is wrong."""
    get_command(app)(args=list(arguments), prog_name="turnlog")
