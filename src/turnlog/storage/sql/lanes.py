"""Lanes: the index ranges in which a filter's criteria on type, author, origin and branch all hold.

The rows of a lane lie in the order of their positions, so the newest of several lanes are found by merging them: a
window reads what it returns, however rare its events are in the log (R-11).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from turnlog.log.event_filter import ANY_BRANCH, EventFilter
from turnlog.log.events import EventType
from turnlog.log.names import branch_chain
from turnlog.storage.sql import kinds


class Lane(Struct, frozen=True):
    """Equal values in an index: of ``kind``, and of ``branch`` and own ``type`` where they are given."""

    kind: int
    branch: str | None = None
    type: str | None = None


#: Stands for every row there is: no restriction at all.
EVERY_ROW: tuple[Lane, ...] = (Lane(-1),)

#: What starts a turn in the view beside real user messages: the prompts of summaries (V-5).
VIEW_STARTS = tuple(Lane(2 * code + bit) for code in (kinds.START, kinds.SHADOW_PROMPT) for bit in (0, 1))


def lanes_of(filter_: EventFilter, present: int) -> tuple[Lane, ...]:
    """The lanes of the filter among the kinds of the mask ``present``; empty where nothing can match."""
    if filter_.active_view:
        present &= ~(0b11 << 2 * kinds.BOUNDARY)  # a boundary is never part of the view
    if filter_.branch is ANY_BRANCH and not (filter_.messages_only or filter_.event_types or filter_.exclude_synthetic):
        return EVERY_ROW if present else ()
    held = kinds.kinds_in(present)
    if all(_takes_all_of(filter_, kind) for kind in held):
        return EVERY_ROW if held else ()
    return tuple(lane for kind in held if _takes_some_of(filter_, kind) for lane in _lanes_of_kind(filter_, kind))


def matches_lane(lanes: Sequence[Lane], kind: int, branch: str | None, type_: str | None) -> bool:
    """Whether a row with these values lies in one of the lanes."""
    if lanes is EVERY_ROW:
        return True
    return any(lane.kind == kind and lane.branch in (None, branch) and lane.type in (None, type_) for lane in lanes)


def chunks(lanes: Sequence[Lane], size: int) -> Iterator[Sequence[Lane]]:
    """The lanes, ``size`` at a time: engines bound the arms of one statement."""
    return (lanes[start : start + size] for start in range(0, len(lanes), size))


def _takes_some_of(filter_: EventFilter, kind: int) -> bool:
    """Whether events of this kind can pass the criteria on type, author and origin, and on root or branch."""
    code = kinds.code_of(kind)
    author = kinds.AUTHORS[code]
    if filter_.messages_only and author is None:
        return False
    if filter_.message_types and author not in filter_.message_types:
        return False
    if filter_.exclude_synthetic and kinds.is_synthetic(code):
        return False
    if filter_.event_types and not _takes_type_of(filter_.event_types, code):
        return False
    return filter_.branch is not None or not kinds.is_on_branch(kind)


def _takes_type_of(types: Iterable[EventType], code: int) -> bool:
    if code == kinds.OWN:
        return bool(_own_names(types))
    return (EventType.COMPACTION if code == kinds.BOUNDARY else EventType.MESSAGE) in types


def _takes_all_of(filter_: EventFilter, kind: int) -> bool:
    if not _takes_some_of(filter_, kind):
        return False
    if kinds.code_of(kind) == kinds.OWN and filter_.event_types:
        return False
    return filter_.branch is ANY_BRANCH or not kinds.is_on_branch(kind)


def _lanes_of_kind(filter_: EventFilter, kind: int) -> Iterator[Lane]:
    names = _own_names(filter_.event_types) if kinds.code_of(kind) == kinds.OWN else []
    branches = branch_chain(filter_.branch) if isinstance(filter_.branch, str) and kinds.is_on_branch(kind) else ()
    for name in names or (None,):
        for branch in branches or (None,):
            yield Lane(kind, branch, name)


def _own_names(types: Iterable[EventType]) -> list[str]:
    return sorted(type_.name for type_ in types if type_ not in (EventType.MESSAGE, EventType.COMPACTION))
