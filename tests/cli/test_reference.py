"""The pages on the command line and its exit codes say what is so."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
from typer.main import get_command

from tests.conftest import ROOT
from turnlog import errors
from turnlog.cli.app import application

_GROUP: Any = get_command(application())
COMMANDS: dict[str, Any] = dict(_GROUP.commands)
PAGE = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")
CODES = (ROOT / "docs" / "reference" / "exit-codes.md").read_text("utf-8")


def section_of(command: str) -> str:
    """The text under the heading that names the command."""
    for heading, text in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE):
        if command in heading.split(", "):
            return str(text)
    raise AssertionError(f"no section on {command}")


def options_of(command: Any) -> set[str]:
    own: set[str] = {name for parameter in command.params for name in parameter.opts + parameter.secondary_opts}
    subcommands = getattr(command, "commands", {}).values()
    return own.union(*map(options_of, subcommands)) - {"--help", "-h"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_documented(command: str) -> None:
    section = section_of(command)
    options = {name for name in options_of(COMMANDS[command]) if name.startswith("-")}
    missing = {name for name in options if not re.search(rf"`{re.escape(name)}\b", section)}
    assert not missing
    assert f"turnlog {command}" in section


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_that_is_documented_exists(command: str) -> None:
    named = set(re.findall(r"`(--[a-z-]+)", section_of(command)))
    sections_commands = [name for name in COMMANDS if section_of(name) == section_of(command)]
    known = set[str]().union(*(options_of(COMMANDS[name]) for name in sections_commands))
    assert named <= known


ERRORS = [value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, errors.TurnlogError)]


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_stands_beside_its_codes(error: type[errors.TurnlogError]) -> None:
    (row,) = [line for line in CODES.splitlines() if f"`{error.__name__}`" in line]
    code, *_, status = [cell.strip() for cell in row.strip("|").split(" | ")]
    assert (int(code), int(status.strip("| "))) == (error.exit_code, error.http_status)
