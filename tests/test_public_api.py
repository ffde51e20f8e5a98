"""The public names: one flat, explicit, documented list that changes only on purpose."""

from __future__ import annotations

import inspect
from pathlib import Path

import turnlog

FROZEN = Path(__file__).with_name("public_api.txt")
HOW_TO_CHANGE = (
    "The public names are frozen in tests/public_api.txt. If the change is meant: put the sorted names of "
    "turnlog.__all__ there, one a line, say so in CHANGELOG.md (a name taken away breaks users: deprecate it first), "
    "and use the new name in tests/typing/api.py."
)


def test_the_list_of_public_names_is_frozen() -> None:
    frozen = FROZEN.read_text(encoding="utf-8").split()
    assert list(turnlog.__all__) == frozen, HOW_TO_CHANGE


def test_the_list_is_sorted_and_without_doubles() -> None:
    assert list(turnlog.__all__) == sorted(set(turnlog.__all__))


def test_every_public_name_can_be_imported() -> None:
    missing = [name for name in turnlog.__all__ if not hasattr(turnlog, name)]
    assert not missing


def test_no_other_public_name_hides_in_the_package_front() -> None:
    """Modules aside, what can be reached from ``turnlog`` is in the list, so that nobody depends on an accident."""
    reachable = {
        name for name, value in vars(turnlog).items() if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert reachable - {"annotations", "TYPE_CHECKING"} <= set(turnlog.__all__)


def test_every_public_class_and_function_has_a_docstring_of_its_own() -> None:
    """An inherited docstring, or the signature that ``dataclass`` writes, documents nothing."""
    undocumented = [name for name in turnlog.__all__ if not _documented(name, getattr(turnlog, name))]
    assert not undocumented


def _documented(name: str, value: object) -> bool:
    if inspect.isclass(value):
        docstring = vars(value).get("__doc__") or ""
        return bool(docstring) and not docstring.startswith(f"{name}(")
    return not callable(value) or bool(getattr(value, "__doc__", None))
