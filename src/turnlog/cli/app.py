"""The commands, put together."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.main import get_command

from turnlog.cli.main import reporting
from turnlog.cli.terminal import print_line

#: The commands by panel, each with its module in this package and its function or group there.
_COMMANDS: Final = {
    "Talk": {"chat": ("chat_command", "chat"), "replay": ("replay_command", "replay")},
    "Files": {
        "import": ("import_command", "import_"),
        "export": ("export_command", "export"),
        "backup": ("keeping", "backup"),
        "check": ("check_command", "check"),
    },
    "Read": {
        "sessions": ("finding", "sessions"),
        "show": ("showing", "show"),
        "expand": ("showing", "expand"),
        "search": ("finding", "search"),
    },
    "Change": {
        "compact": ("compacting", "compact"),
        "fork": ("changing", "fork"),
        "rewind": ("changing", "rewind"),
        "clear": ("changing", "clear"),
        "delete": ("changing", "delete"),
        "sweep": ("changing", "sweep"),
    },
    "Look after": {
        "doctor": ("keeping", "doctor"),
        "index": ("maintaining", "index"),
        "migrate": ("maintaining", "migrate"),
    },
}
_NAMES: Final = frozenset(name for commands in _COMMANDS.values() for name in commands)


def application(wanted: Iterable[str] = _NAMES) -> typer.Typer:
    """The application with the commands of these names; the modules of the others are not imported."""
    app = typer.Typer(
        name="turnlog",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_turnlog)
    names = frozenset(wanted)
    for panel, commands in _COMMANDS.items():
        for name, (module, attribute) in commands.items():
            if name in names:
                _add(app, name, panel, getattr(import_module(f"turnlog.cli.{module}"), attribute))
    return app


def _add(app: typer.Typer, name: str, panel: str, found: Any) -> None:
    if isinstance(found, typer.Typer):
        app.add_typer(found, name=name, rich_help_panel=panel)
    else:
        app.command(name, rich_help_panel=panel)(_reported(found))


def _reported(function: Callable[..., None]) -> Callable[..., None]:
    """The command with its errors reported here: typer has an exit code of its own for some of them."""

    @functools.wraps(function)
    def run_and_report(**options: Any) -> None:
        with reporting():
            function(**options)

    return run_and_report


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer's signature
    if wanted:
        from importlib.metadata import version

        print_line(f"turnlog {version('turnlog')}")
        raise typer.Exit


def _turnlog(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Conversation logs of LLM applications: import them, read them by turns, search, fork, rewind, export."""


def run(arguments: Sequence[str]) -> None:
    """Run one command; raises what it raises, and :class:`SystemExit` where the usage is wrong."""
    # A command is most of what has to be imported for it: the others wait until help or a mistake asks for them all.
    named = _NAMES.intersection(arguments[:1])
    get_command(application(named or _NAMES))(args=list(arguments), prog_name="turnlog")
