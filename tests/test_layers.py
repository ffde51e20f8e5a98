"""Who may import whom: every import of every module, read from its syntax tree.

Imports under ``TYPE_CHECKING`` and inside functions count too: a layer that must name another's types depends on it.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ROOT

SOURCE = ROOT / "src"

# Top to bottom: a package may import those above it, never one below.
LAYERS = (
    "errors",
    "log",
    "observability",
    "formats",
    "compaction",
    "storage",
    "recall",
    "service",
    "models",
    "chat",
    "integrations",
    "testing",
    "cli",
    "web",
)

# What a plain install has. Anything else is imported in the function that needs it, where its absence can be explained.
INSTALLED = frozenset({"msgspec", "turnlog"})

# The shells are only imported by those who installed their extra.
EXTRAS = {
    "cli": frozenset({"rich", "typer"}),
    "testing": frozenset({"pytest"}),
}
# A driver is imported by name when a store of its kind is opened; its package says which extra is missing.
DRIVERS = {"turnlog.storage.sql.drivers.postgres": frozenset({"psycopg", "psycopg_pool"})}


@dataclass(frozen=True)
class Import:
    """One imported module. ``deferred``: inside a function or under ``TYPE_CHECKING``, so not run by importing."""

    module: str
    line: int
    deferred: bool


def imports(text: str, module: str, *, is_package: bool = False) -> Iterator[Import]:
    """Every import in a module's text, relative ones made absolute."""
    package = module if is_package else module.rpartition(".")[0]
    yield from _imports(ast.parse(text), package, deferred=False)


def _imports(node: ast.AST, package: str, *, deferred: bool) -> Iterator[Import]:
    match node:
        case ast.Import(names=names):
            yield from (Import(alias.name, node.lineno, deferred) for alias in names)
        case ast.ImportFrom(module=name, names=names, level=level):
            parent = ".".join(package.split(".")[: len(package.split(".")) - level + 1]) if level else ""
            base = ".".join(part for part in (parent, name) if part)
            # `from turnlog import log` names the layer only in its second half.
            yield from (Import(f"{base}.{alias.name}", node.lineno, deferred) for alias in names)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            deferred = True
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            deferred = True
        case _:
            pass
    for child in ast.iter_child_nodes(node):
        yield from _imports(child, package, deferred=deferred)


def layer_faults(module: str, text: str, *, is_package: bool = False) -> Iterator[str]:
    """The imports of one turnlog module that go down, around the layers, or to a package that may be missing."""
    layer = _layer(module)
    if layer not in LAYERS:
        yield f"{module} belongs to no layer: add it to LAYERS, in its place"
        return
    for found in imports(text, module, is_package=is_package):
        root = found.module.partition(".")[0]
        if root == "turnlog":
            yield from _direction_fault(module, layer, found)
        elif not found.deferred and root not in _at_module_level(module, layer):
            yield f"{module}:{found.line} imports {root} at module level, which a plain install does not have"


def _at_module_level(module: str, layer: str) -> frozenset[str]:
    drivers = (extra for package, extra in DRIVERS.items() if module == package or module.startswith(f"{package}."))
    return sys.stdlib_module_names | INSTALLED | EXTRAS.get(layer, frozenset()) | next(drivers, frozenset())


def _direction_fault(module: str, layer: str, found: Import) -> Iterator[str]:
    target = _layer(found.module)
    if target not in LAYERS:
        yield f"{module}:{found.line} imports {found.module}: name the module that defines it, not the package's front"
    elif LAYERS.index(target) > LAYERS.index(layer):
        yield f"{module}:{found.line} imports {found.module}: {layer} lies above {target}"


def _layer(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def _modules() -> Iterator[tuple[str, Path]]:
    for path in sorted((SOURCE / "turnlog").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        # The front re-exports from every layer; `python -m turnlog` starts the CLI.
        if module not in {"turnlog", "turnlog.__main__"}:
            yield module, path


def test_no_module_imports_from_a_layer_below_it() -> None:
    modules = list(_modules())
    faults = [
        fault
        for module, path in modules
        for fault in layer_faults(module, path.read_text(encoding="utf-8"), is_package=path.name == "__init__.py")
    ]
    assert modules, f"no modules below {SOURCE}"
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("module", "text", "fault"),
    [
        ("turnlog.log.events", "from turnlog.storage.memory import MemoryStore", "log lies above storage"),
        ("turnlog.log.events", "import turnlog.service", "log lies above service"),
        ("turnlog.log.events", "from ..storage import memory", "log lies above storage"),
        ("turnlog.log.events", "def f():\n    from turnlog import service", "log lies above service"),
        ("turnlog.log.events", "if TYPE_CHECKING:\n    from turnlog.cli.main import main", "log lies above cli"),
        ("turnlog.cli.main", "from turnlog import Session", "not the package's front"),
        ("turnlog.elsewhere.x", "", "belongs to no layer"),
        ("turnlog.storage.sql", "import sqlalchemy.orm", "imports sqlalchemy at module level"),
        ("turnlog.storage.sql", "try:\n    import psycopg\nexcept ImportError:\n    psycopg = None", "imports psycopg"),
        ("turnlog.log.events", "import typer", "imports typer at module level"),
    ],
)
def test_a_wrong_import_is_found(module: str, text: str, fault: str) -> None:
    (found,) = layer_faults(module, text)
    assert fault in found


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("turnlog.storage.memory", "from turnlog.log.events import SessionEvent"),
        ("turnlog.storage.memory", "from . import protocol"),
        ("turnlog.storage.memory", "import sqlite3, msgspec"),
        ("turnlog.storage.memory", "def open():\n    import psycopg"),
        ("turnlog.storage.memory", "if TYPE_CHECKING:\n    import psycopg"),
        ("turnlog.cli.main", "import typer"),
    ],
)
def test_a_right_import_passes(module: str, text: str) -> None:
    assert not list(layer_faults(module, text))


def test_turnlog_can_be_imported_where_nothing_but_its_dependency_is_installed() -> None:
    program = f"""
import sys
from importlib.abc import MetaPathFinder

class PlainInstall(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] not in sys.stdlib_module_names | {set(INSTALLED)!r}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, PlainInstall())
import turnlog
print(all(hasattr(turnlog, name) for name in turnlog.__all__))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout == "True\n", run.stderr
