"""What has to be known of a whole rollout before its lines can be placed. Wrong lines are looked over here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from turnlog.formats.foreign import Facts, Line, moment_or_none
from turnlog.formats.json_fields import is_array, is_object

#: What the items are wrapped in, by the kind of line.
# Tuples: a value from a file may be a list, which no set can be asked for.
WRAPPERS: Final = ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state")
OUTPUTS: Final = ("function_call_output", "custom_tool_call_output")
CALLS: Final = ("function_call", "custom_tool_call", "local_shell_call")
_INSTRUCTORS: Final = ("developer", "system")

#: How text begins that Codex puts into the user's mouth.
_INJECTED: Final = (
    *("<environment_context>", "<user_instructions>", "<permissions instructions>", "<collaboration_mode>"),
    *("<multi_agent_mode>", "<apps_instructions>", "<skills_instructions>", "<INSTRUCTIONS>", "# AGENTS.md"),
    *("<turn_aborted>", "<subagent_notification>", "<skill>", "<user_shell_command>", "<model_switch>"),
)
_HEAD_KEYS: Final = frozenset({"id", "timestamp", "instructions", "git"})
_FACTS: Final = {"cwd": "cwd", "cli_version": "version", "originator": "originator", "forked_from_id": "forked_from"}


class Survey(Struct):
    """What :func:`survey` found. Lines are named by their numbers."""

    facts: Facts
    #: The standing orders of the session, and the line that says them.
    instructions: tuple[int, str] | None
    #: Lines of turns that were rolled back.
    rolled_back: set[int]
    calls: Counter[str]
    results: Counter[str]


def looks_like(value: object) -> bool:
    """Whether a line's value is one of Codex's."""
    if not is_object(value):
        return False
    kind = value.get("type")
    if kind in WRAPPERS and is_object(value.get("payload")):
        return True
    return is_head(value) or value == {"record_type": "state"}


def is_head(value: dict[str, Any]) -> bool:
    """Whether a line is the first one of the older layout."""
    return type(value.get("id")) is str and type(value.get("timestamp")) is str and value.keys() <= _HEAD_KEYS


def item_of(value: dict[str, Any]) -> dict[str, Any] | None:
    """The item that a line holds, in either layout."""
    if value.get("type") == "response_item":
        payload = value.get("payload")
        return payload if is_object(payload) else None
    is_bare = type(value.get("type")) is str and value["type"] not in WRAPPERS and "payload" not in value
    return value if is_bare else None


def is_users_own(item: dict[str, Any]) -> bool:
    """Whether an item is what the user typed."""
    return item.get("type") == "message" and item.get("role") == "user" and not is_injected(item)


def is_injected(item: dict[str, Any]) -> bool:
    """Whether a message is what Codex told the model by itself."""
    return item.get("role") in _INSTRUCTORS or _first_text(item).lstrip().startswith(_INJECTED)


def _first_text(item: dict[str, Any]) -> str:
    content = item.get("content")
    if is_array(content) and content and is_object(content[0]):
        content = content[0].get("text")
    return content if isinstance(content, str) else ""


def survey(lines: Iterable[Line]) -> Survey:
    """Read all lines once. It never raises: what is wrong with a line is said when it is read."""
    facts = Facts(fields={}, left_out=Counter())
    instructions: tuple[int, str] | None = None
    calls, results = Counter[str](), Counter[str]()
    turns: list[list[int]] = []
    rolled_back = set[int]()
    for number, value in lines:
        if not is_object(value):
            continue
        if facts.created_at is None:
            facts.created_at = moment_or_none(value.get("timestamp"))
        meta = _meta_of(value)
        if meta is not None and facts.id is None:
            instructions = _note_meta(meta, number, facts)
        item = item_of(value)
        if item is not None:
            if is_users_own(item):
                turns.append([])
            if turns:
                turns[-1].append(number)
            _count(item, calls, results)
        for _ in range(min(_rolled_back(value), len(turns))):
            rolled_back.update(turns.pop())
    return Survey(facts, instructions, rolled_back, calls, results)


def _meta_of(value: dict[str, Any]) -> dict[str, Any] | None:
    if value.get("type") == "session_meta":
        payload = value.get("payload")
        return payload if is_object(payload) else None
    return value if "type" not in value and is_head(value) else None


def _note_meta(meta: dict[str, Any], number: int, facts: Facts) -> tuple[int, str] | None:
    for key in ("id", "session_id"):
        if type(meta.get(key)) is str and meta[key]:
            facts.id = meta[key]
            break
    for key, name in _FACTS.items():
        if type(meta.get(key)) is str:
            facts.fields[name] = meta[key]
    git = meta.get("git")
    if is_object(git) and type(git.get("branch")) is str:
        facts.fields["git_branch"] = git["branch"]
    base = meta.get("base_instructions")
    text = base.get("text") if is_object(base) else meta.get("instructions")
    return (number, text) if type(text) is str and text.strip() else None


def _count(item: dict[str, Any], calls: Counter[str], results: Counter[str]) -> None:
    call_id = item.get("call_id")
    if type(call_id) is not str:
        return
    if item.get("type") in OUTPUTS:
        results[call_id] += 1
    elif item.get("type") in CALLS:
        calls[call_id] += 1


def _rolled_back(value: dict[str, Any]) -> int:
    payload = value.get("payload")
    if value.get("type") != "event_msg" or not is_object(payload) or payload.get("type") != "thread_rolled_back":
        return 0
    count = payload.get("num_turns")
    return count if type(count) is int and count > 0 else 0
