"""Arithmetic on lists of position ranges that keep the order they are read in."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from turnlog.log.view import Range


def clipped(ranges: Sequence[Range], after: int | None, before: int | None) -> tuple[Range, ...]:
    """The parts behind ``after`` and before ``before``, both exclusive."""
    if after is None and before is None:
        return tuple(ranges)
    floor = 0 if after is None else after
    cut = ((max(low, floor + 1), high if before is None else min(high, before - 1)) for low, high in ranges)
    return tuple((low, high) for low, high in cut if low <= high)


def before_or_at(order: Sequence[Range], position: int) -> tuple[Range, ...]:
    """The order up to and including ``position``, which lies in it."""
    for index, (low, high) in enumerate(order):
        if low <= position <= high:
            return (*order[:index], (low, position))
    return ()


def behind(order: Sequence[Range], position: int) -> tuple[Range, ...]:
    """The order behind ``position``, which lies in it."""
    for index, (low, high) in enumerate(order):
        if low <= position <= high:
            rest = tuple(order[index + 1 :])
            return ((position + 1, high), *rest) if position < high else rest
    return ()


def intersection(order: Sequence[Range], chosen: Sequence[Range]) -> tuple[Range, ...]:
    """The parts of ``order``, in its order, that lie in ``chosen`` too."""
    sorted_chosen = sorted(chosen)
    ends = [high for _, high in sorted_chosen]
    parts: list[Range] = []
    for low, high in order:
        for other_low, other_high in sorted_chosen[bisect_left(ends, low) :]:
            if other_low > high:
                break
            parts.append((max(low, other_low), min(high, other_high)))
    return tuple(parts)


def slice_of(ranges: Sequence[Range], offset: int, limit: int, *, descending: bool) -> tuple[Range, ...]:
    """``limit`` positions from the start, or from the end, ``offset`` of them skipped; in the order of ``ranges``."""
    taken: list[Range] = []
    for low, high in reversed(ranges) if descending else ranges:
        size = high - low + 1
        skipped = min(offset, size)
        offset -= skipped
        kept = min(size - skipped, limit)
        limit -= kept
        if kept:
            first = high - skipped - kept + 1 if descending else low + skipped
            taken.append((first, first + kept - 1))
        if not limit:
            break
    return tuple(reversed(taken)) if descending else tuple(taken)
