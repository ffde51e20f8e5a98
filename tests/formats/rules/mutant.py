"""A request changed so that its verdict is known by how it was made."""

from __future__ import annotations

from typing import Any, NamedTuple


class Mutant(NamedTuple):
    """``rules``: one of these must be named. ``place``: and it must name this place."""

    how: str
    request: dict[str, Any]
    rules: frozenset[str] | set[str] = frozenset()
    place: str | None = None
