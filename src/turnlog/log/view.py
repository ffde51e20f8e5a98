"""The active view: which positions of the log are in it, and in which order (A-1 to A-5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, cast

from msgspec import Struct

from turnlog.errors import InvalidValueError

#: The most ranges that a boundary may name (A-3).
MOST_RANGES = 1_000

Range = tuple[int, int]


class BoundaryError(InvalidValueError):
    """A boundary's payload that names no view; the reader says where it stands."""


class Boundary(Struct, frozen=True, kw_only=True):
    """What a ``COMPACTION`` event says, as kept in its payload.

    ``view`` is an ordered list of closed position ranges: pinned events, the summary, the preserved events. ``end`` is
    the position of the last event of the boundary's own batch; everything behind it is in the view too.
    """

    view: tuple[Range, ...]
    end: int
    strategy: str
    covered: Range | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    model: str | None = None
    usage: Mapping[str, Any] | None = None

    def payload(self) -> dict[str, Any]:
        """The JSON value that is stored."""
        payload: dict[str, Any] = {
            "view": [list(span) for span in self.view],
            "end": self.end,
            "strategy": self.strategy,
        }
        if self.covered is not None:
            payload["covered"] = list(self.covered)
        for name in ("tokens_before", "tokens_after", "model"):
            if getattr(self, name) is not None:
                payload[name] = getattr(self, name)
        if self.usage is not None:
            payload["usage"] = dict(self.usage)
        return payload


def read_boundary(payload: Mapping[str, Any] | None, position: int) -> Boundary:
    """The boundary that stands at ``position``; raises :class:`BoundaryError` where the payload makes no sense."""
    payload = payload or {}
    end = payload.get("end")
    if type(end) is not int or end < position:
        raise BoundaryError(f"the boundary ends at {end!r}, before itself")
    spans = cast("list[Any]", payload.get("view"))
    if not isinstance(spans, list) or len(spans) > MOST_RANGES:
        raise BoundaryError(f"a boundary names at most {MOST_RANGES} position ranges")
    view = tuple(_checked_span(span, position, end) for span in spans)
    _check_disjoint(view)
    strategy = payload.get("strategy")
    if not isinstance(strategy, str):
        raise BoundaryError(f"a boundary names its strategy, not {strategy!r}")
    covered = payload.get("covered")
    return Boundary(
        view=view,
        end=end,
        strategy=strategy,
        covered=None if covered is None else _checked_span(covered, position, position),
        tokens_before=payload.get("tokens_before"),
        tokens_after=payload.get("tokens_after"),
        model=payload.get("model"),
        usage=payload.get("usage"),
    )


def _checked_span(span: object, position: int, end: int) -> Range:
    match cast("Any", span):
        # JSON's true would match int() too.
        case [int() as low, int() as high] if type(low) is int is type(high):
            if 1 <= low <= high <= end and not low <= position <= high:
                return (low, high)
        case _:
            pass
    raise BoundaryError(f"{span!a:.60} is no range of positions up to {end} without the boundary itself")


def _check_disjoint(view: tuple[Range, ...]) -> None:
    ordered = sorted(view)
    for (_, high), (low, _) in pairwise(ordered):
        if low <= high:
            raise BoundaryError(f"position {low} is named twice")


def segments(boundary: Boundary | None, version: int) -> tuple[Range, ...]:
    """The view at ``version`` as position ranges in view order; without a boundary the view is the log."""
    if boundary is None:
        return ((1, version),) if version else ()
    tail = ((boundary.end + 1, version),) if version > boundary.end else ()
    return boundary.view + tail


def ranges_of(positions: Iterable[int]) -> tuple[Range, ...]:
    """The shortest list of ranges that walks these positions in this order."""
    ranges: list[Range] = []
    for position in positions:
        if ranges and position == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], position)
        else:
            ranges.append((position, position))
    return tuple(ranges)


def positions_of(ranges: Iterable[Range]) -> Iterator[int]:
    """The positions that a list of ranges walks."""
    for low, high in ranges:
        yield from range(low, high + 1)


def without(ranges: Iterable[Range], removed: Iterable[Range]) -> tuple[Range, ...]:
    """``ranges`` in their order, less every position of ``removed``: what a boundary covers (A-2)."""
    holes = sorted(removed)
    left: list[Range] = []
    for low, high in ranges:
        start = low
        for hole_low, hole_high in holes:
            if hole_high < start or hole_low > high:
                continue
            if hole_low > start:
                left.append((start, hole_low - 1))
            start = hole_high + 1
        if start <= high:
            left.append((start, high))
    return tuple(left)
