"""What a rendering leaves out: named, never silent (P-1)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class Loss(Struct, frozen=True):
    """Something that a provider is not given.

    ``place`` counts in the request (``messages[3].content[0]``, ``rest.temperature``), ``what`` names it, ``why`` says
    what stands in its way.
    """

    place: str
    what: str
    why: str


class Notes:
    """Collects the losses of one rendering, and which messages went back exactly as their provider sent them.

    ``indices`` says where the messages that are rendered stand in the request, where that is not the same.
    """

    def __init__(self, indices: Sequence[int] | None = None) -> None:
        self.losses: list[Loss] = []
        self.kept: set[int] = set()
        self._indices = indices

    def lost(self, index: int, path: str, what: str, why: str) -> None:
        """Note that something in the message with that index is left out."""
        self.losses.append(Loss(f"messages[{self._index(index)}]{path}", what, why))

    def keep(self, index: int, count: int = 1) -> None:
        """Note that so many messages from ``index`` on went back as they came."""
        self.kept.update(map(self._index, range(index, index + count)))

    def _index(self, index: int) -> int:
        return index if self._indices is None else self._indices[index]
