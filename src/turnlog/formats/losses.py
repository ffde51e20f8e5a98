"""What a rendering leaves out: named, never silent (P-1)."""

from __future__ import annotations

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
    """Collects the losses of one rendering, and which messages went back exactly as their provider sent them."""

    def __init__(self) -> None:
        self.losses: list[Loss] = []
        self.kept: set[int] = set()

    def lost(self, place: str, what: str, why: str) -> None:
        """Note a loss."""
        self.losses.append(Loss(place, what, why))
