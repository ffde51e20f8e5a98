"""What the pages say of one another and of the code: links, the index, the table of errors."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.docs.test_snippets import PAGES, ROOT
from turnlog import errors

DOCS = ROOT / "docs"
ERRORS = DOCS / "reference" / "errors.md"

_LINK = re.compile(r"\]\(([^)\s]+)\)")


def links_of(page: Path) -> Iterator[tuple[Path, str]]:
    """The file and the anchor of each link that stays in the repository."""
    for target in _LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            yield (page.parent / path).resolve() if path else page, anchor


def anchors_of(page: Path) -> set[str]:
    """The headings, as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere() -> None:
    broken = [f"{page.relative_to(ROOT)}: {path}" for page in PAGES for path, _ in links_of(page) if not path.exists()]
    assert not broken, broken


def test_anchors_lead_to_headings() -> None:
    found = ((page, path, anchor) for page in PAGES for path, anchor in links_of(page) if anchor and path.exists())
    broken = [f"{page.relative_to(ROOT)}: #{anchor}" for page, path, anchor in found if anchor not in anchors_of(path)]
    assert not broken, broken


def test_every_page_is_in_the_index() -> None:
    listed = {path for path, _ in links_of(DOCS / "README.md")} | {
        path for path, _ in links_of(DOCS / "decisions/README.md")
    }
    unlisted = [str(page.relative_to(ROOT)) for page in DOCS.rglob("*.md") if page not in listed]
    assert unlisted == ["docs/README.md"]


def test_every_page_begins_with_its_one_title() -> None:
    titles = {page: re.findall(r"^# .+$", _without_blocks(page), re.MULTILINE) for page in PAGES}
    wrong = [str(page.relative_to(ROOT)) for page, found in titles.items() if len(found) != 1]
    assert not wrong, wrong


def _without_blocks(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


class ErrorClass(NamedTuple):
    """A row of the page's tables, or what the module says."""

    name: str
    is_also: str
    attributes: tuple[str, ...]


def documented() -> set[ErrorClass]:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|(.*?)\| .+ \|$", ERRORS.read_text(encoding="utf-8"), re.MULTILINE)
    return {ErrorClass(name, base, tuple(re.findall(r"`(\w+)`", attributes))) for name, base, attributes in rows}


def defined() -> set[ErrorClass]:
    """Each class with the attributes that its constructor sets, and its builtin base or else its own parent."""
    assert errors.__file__ is not None
    tree = ast.parse(Path(errors.__file__).read_text(encoding="utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return {ErrorClass(node.name, _base(node), tuple(_attributes(node))) for node in classes}


def _base(node: ast.ClassDef) -> str:
    names = [base.id for base in node.bases if isinstance(base, ast.Name)]
    return next((name for name in names if hasattr(builtins, name)), names[0])


def _attributes(node: ast.ClassDef) -> Iterator[str]:
    for statement in ast.walk(node):
        if isinstance(statement, ast.Assign):
            yield from (target.attr for target in statement.targets if isinstance(target, ast.Attribute))


def test_the_page_of_errors_lists_every_class_as_it_is() -> None:
    assert documented() == defined() - {ErrorClass("TurnlogError", "Exception", ())}
