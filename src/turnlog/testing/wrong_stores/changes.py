"""What a wrong store is: the right one with a few lines changed, as the pages beside this module write it down."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Any, Final

from turnlog.storage import whole_logs
from turnlog.storage.protocol import Clock, SessionRepository
from turnlog.testing import dict_store
from turnlog.testing.contract import INDEXED_METADATA
from turnlog.testing.wrong_stores import interleaving, wrong_reads, wrong_values

#: Between the two modules that are the right store: what it does, and where it keeps it.
_SEAM: Final = "# turnlog.testing.dict_store\n"
_SOURCE: Final = inspect.getsource(whole_logs) + _SEAM + inspect.getsource(dict_store)
_STORE = re.compile(r"^## ([^\n]+)\n\n([^\n]+)\n\nBreaks: ([^\n]+)\n\n```diff\n(.+?)^```\n", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class WrongStore:
    """``DictStore`` with a fault.

    ``patch`` changes its source: pieces between lines of ``@@``, each found by its own lines alone. ``breaks`` holds
    the ids of the properties that the store breaks, and it breaks no others.
    """

    name: str
    fault: str
    breaks: frozenset[str]
    patch: str

    @cached_property
    def source(self) -> str:
        """The sources of ``turnlog.storage.whole_logs`` and ``turnlog.testing.dict_store`` with the fault in them."""
        # From the end, so that the places found stay what they are.
        source = _SOURCE
        for place, right, wrong in sorted(map(self._found, self.patch.split("@@\n")), reverse=True):
            source = source[:place] + wrong + source[place + len(right) :]
        return source

    def _found(self, piece: str) -> tuple[int, str, str]:
        """Where a piece stands in the right store, what stands there, and what shall."""
        lines = piece.splitlines(keepends=True)
        right = "".join(line[1:] for line in lines if line[0] in " -")
        wrong = "".join(line[1:] for line in lines if line[0] in " +")
        if f"\n{_SOURCE}".count(f"\n{right}") != 1:
            raise AssertionError(f"{self.name}: stands there not at all, or more than once:\n{right}")
        return f"\n{_SOURCE}".index(f"\n{right}"), right, wrong

    def open(self, clock: Clock) -> SessionRepository:
        """A new empty store, as the contract's ``repository`` fixture opens it."""
        operations, keeping = self._names
        store: SessionRepository = operations["WholeLogRepository"](keeping["DictKeeper"](), clock, INDEXED_METADATA)
        return store

    @cached_property
    def _names(self) -> tuple[dict[str, Any], ...]:
        """What each of the two modules defines, with the fault in it."""
        modules: list[dict[str, Any]] = []
        for source in self.source.split(_SEAM):
            names: dict[str, Any] = {
                "__name__": __name__,
                "race": interleaving,
                "reads": wrong_reads,
                "values": wrong_values,
            }
            exec(compile(source, f"<{self.name}>", "exec"), names)  # noqa: S102 - our own source, changed
            modules.append(names)
        return tuple(modules)


def written_down() -> Iterator[WrongStore]:
    """The wrong stores of every page."""
    pages = sorted(resources.files("turnlog.testing.wrong_stores").iterdir(), key=lambda page: page.name)
    for page in pages:
        if page.name.endswith(".md"):
            for name, fault, breaks, patch in _STORE.findall(page.read_text(encoding="utf-8")):
                yield WrongStore(name, fault, frozenset(breaks.split()), patch)
