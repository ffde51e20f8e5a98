"""What has to be known of a whole session file before its lines can be placed. Wrong lines are looked over here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, Final

from msgspec import Struct

from turnlog.formats.foreign import Facts, Line, moment_or_none
from turnlog.formats.json_fields import is_array, is_object

#: Lines that hold what was said.
SPOKEN: Final = ("user", "assistant")

_TITLES: Final = {"summary": "summary", "custom-title": "customTitle", "ai-title": "aiTitle"}
_KEPT_FACTS: Final = {"cwd": "cwd", "gitBranch": "git_branch", "version": "version"}


class _Place(Enum):
    """Where a line lies, seen from the newest one."""

    ON_PATH = "on path"
    #: Behind a line of the path, but not on it: the user went back and said something else.
    BESIDE = "beside"
    #: In no connection with the path that the file would show.
    APART = "apart"


class _Node(Struct):
    line: int
    parent: str | None
    is_spoken: bool
    message_id: str | None
    calls: tuple[str, ...]
    answers: tuple[str, ...]


class Survey(Struct):
    """What :func:`survey` found. Lines are named by their numbers."""

    facts: Facts
    #: Lines that say again what an earlier line with the same id said.
    repeated: set[int]
    #: Lines that the user left behind by going back.
    left_behind: set[int]
    #: How many lines make up each message that spans several.
    parts: Counter[str]
    calls: Counter[str]
    results: Counter[str]
    #: Whether the file is that of a sub-agent, all of which is one side chain.
    is_agent: bool


def looks_like(value: object) -> bool:
    """Whether a line's value is one of Claude Code's."""
    if not is_object(value) or type(value.get("type")) is not str or "payload" in value:
        return False
    return type(value.get("sessionId")) is str or (
        value["type"] in {"summary", "file-history-snapshot"} and bool({"leafUuid", "messageId"} & value.keys())
    )


def survey(lines: Iterable[Line]) -> Survey:
    """Read all lines once. It never raises: what is wrong with a line is said when it is read."""
    nodes: dict[str, _Node] = {}
    repeated = set[int]()
    facts = Facts(fields={}, left_out=Counter())
    side_agents = set[str]()
    has_main = False
    agent: str | None = None
    head: str | None = None
    for number, value in lines:
        if not is_object(value):
            continue
        _note_facts(value, facts)
        uuid = value.get("uuid")
        if type(uuid) is not str:
            # Nothing can follow it; what it says counts all the same.
            uuid = f"\0{number}"
        if uuid in nodes:
            repeated.add(number)
            continue
        is_side = value.get("isSidechain") is True
        node = _node(number, value, is_main=not is_side)
        nodes[uuid] = node
        if value.get("type") in SPOKEN:
            has_main |= not is_side
            agent = value["agentId"] if type(value.get("agentId")) is str else agent
            if is_side and agent is not None:
                side_agents.add(agent)
        if node.is_spoken:
            head = uuid
    is_agent = not has_main and len(side_agents) == 1
    if is_agent and facts.id is not None:
        facts.fields["parent_session"] = facts.id
        facts.id = f"{facts.id}/agent-{agent}"
    left_behind = _left_behind(nodes, head)
    return Survey(facts, repeated, left_behind, *_counts(nodes, left_behind), is_agent)


def _node(number: int, value: dict[str, Any], *, is_main: bool) -> _Node:
    message = value.get("message")
    parent = value.get("parentUuid")
    if parent is None:
        parent = value.get("logicalParentUuid")
    blocks = list(_blocks(message))
    message_id = message.get("id") if is_object(message) and value.get("type") == "assistant" else None
    return _Node(
        line=number,
        parent=parent if type(parent) is str else None,
        # A summary hangs beside the messages that a compaction has kept; nobody went back behind it.
        is_spoken=is_main and value.get("type") in SPOKEN and value.get("isCompactSummary") is not True,
        message_id=message_id if type(message_id) is str else None,
        calls=_ids(blocks, "tool_use", "id"),
        answers=_ids(blocks, "tool_result", "tool_use_id"),
    )


def _blocks(message: object) -> Iterator[dict[str, Any]]:
    content = message.get("content") if is_object(message) else None
    if is_array(content):
        yield from (block for block in content if is_object(block))


def _ids(blocks: list[dict[str, Any]], kind: str, key: str) -> tuple[str, ...]:
    ids = (block.get(key) for block in blocks if block.get("type") == kind)
    return tuple(id_ for id_ in ids if type(id_) is str)


def _note_facts(value: dict[str, Any], facts: Facts) -> None:
    # A session that was resumed may hold lines of the one before: the newest id is its own.
    if type(value.get("sessionId")) is str:
        facts.id = value["sessionId"]
    if facts.created_at is None:
        facts.created_at = moment_or_none(value.get("timestamp"))
    for key, name in _KEPT_FACTS.items():
        if type(value.get(key)) is str and value[key]:
            facts.fields[name] = value[key]
    title = value.get(_TITLES.get(str(value.get("type")), ""))
    if type(title) is str:
        facts.fields["title"] = title


def _left_behind(nodes: dict[str, _Node], head: str | None) -> set[int]:
    """The lines that were left behind: those beside the path, but for what belongs to messages on it.

    Calls of one reply are answered in parallel, so their results, and parts of the reply itself, branch off the path.
    """
    places: dict[str, _Place] = {}
    at = head
    while at is not None and at not in places and at in nodes:
        places[at] = _Place.ON_PATH
        at = nodes[at].parent
    beside = {uuid for uuid, node in nodes.items() if node.is_spoken and _place(uuid, nodes, places) is _Place.BESIDE}
    kept_messages = {node.message_id for uuid, node in nodes.items() if uuid not in beside} - {None}
    beside = {uuid for uuid in beside if nodes[uuid].message_id not in kept_messages}
    kept_calls = {call for uuid, node in nodes.items() if uuid not in beside for call in node.calls}
    return {nodes[uuid].line for uuid in beside if not kept_calls.intersection(nodes[uuid].answers)}


def _place(uuid: str, nodes: dict[str, _Node], places: dict[str, _Place]) -> _Place:
    trail: list[str] = []
    at: str | None = uuid
    place = _Place.APART
    while at is not None and at in nodes:
        known = places.get(at)
        if known is not None:
            place = _Place.BESIDE if known is _Place.ON_PATH and trail else known
            break
        # A mark of its own ends a circle.
        places[at] = _Place.APART
        trail.append(at)
        at = nodes[at].parent
    for step in trail:
        places[step] = place
    return place


def _counts(nodes: dict[str, _Node], left_behind: set[int]) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Lines of each message, and ids in calls and in results, of what is not left behind."""
    parts, calls, results = Counter[str](), Counter[str](), Counter[str]()
    for node in nodes.values():
        if node.line not in left_behind:
            if node.message_id is not None:
                parts[node.message_id] += 1
            calls.update(node.calls)
            results.update(node.answers)
    return parts, calls, results
