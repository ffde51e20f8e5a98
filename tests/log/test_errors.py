"""The tree of errors: the drawing in the module's docstring is the truth."""

from __future__ import annotations

import builtins
import re

import pytest

from turnlog import errors
from turnlog.errors import TurnlogError


def drawn() -> dict[str, tuple[str, str | None]]:
    """Each drawn class with its parent and the builtin beside it."""
    found: dict[str, tuple[str, str | None]] = {}
    above: list[str] = ["TurnlogError"]
    for line in (errors.__doc__ or "").splitlines():
        if row := re.match(r"^    ([│├└─ ]+)(\w+)(?: \((\w+)\))?", line):
            depth = len(row[1]) // 4
            above[depth:] = [row[2]]
            found[row[2]] = (above[depth - 1], row[3])
    return found


CLASSES = {
    name: value for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, TurnlogError)
}


def test_every_error_is_drawn() -> None:
    assert set(drawn()) == set(CLASSES) - {"TurnlogError"}


@pytest.mark.parametrize("name", sorted(CLASSES.keys() - {"TurnlogError"}))
def test_an_error_inherits_as_drawn(name: str) -> None:
    """The parent in our tree, and the fitting builtin, so that ``except ValueError`` works."""
    parent, builtin = drawn()[name]
    bases = [base.__name__ for base in CLASSES[name].__bases__]
    assert bases == [parent, *([builtin] if builtin else [])]
    if builtin:
        assert issubclass(CLASSES[name], getattr(builtins, builtin))


@pytest.mark.parametrize("error", CLASSES.values())
def test_exit_codes_and_statuses_are_such(error: type[TurnlogError]) -> None:
    assert 1 <= error.exit_code <= 125
    assert 400 <= error.http_status <= 599
