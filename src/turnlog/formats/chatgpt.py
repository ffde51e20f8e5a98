"""ChatGPT's data export: ``conversations.json``, a list of conversations, each a tree of messages.

:func:`paths` gives the ways through one conversation: the one that was on the screen last (``current_node``), and one
for each other leaf, which a regenerated reply or an edited question left behind. :func:`read` gives a way's entries.
Calls have no ids in the export: a call gets that of its message, and the tool messages behind it are its result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct

from turnlog.errors import InvalidValueError
from turnlog.formats.chatgpt_content import OTHERS, read_parts, spoken_text
from turnlog.formats.foreign import Entry, Facts
from turnlog.formats.json_fields import as_object, is_object, json_name, object_at, optional_text_at, text_at
from turnlog.log.events import EventType
from turnlog.log.messages import (
    AssistantMessage,
    Part,
    ReasoningPart,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolResult,
    ToolStatus,
    UserMessage,
)

_HIDDEN: Final = EventType.of("CHATGPT.HIDDEN")
_OTHER: Final = EventType.of("CHATGPT.OTHER")

_FACTS: Final = {"title": "title", "gizmo_id": "gizmo_id", "default_model_slug": "model"}
_ROLES: Final = ("system", "user", "assistant", "tool")


class Node(Struct, frozen=True):
    """A message of the tree. ``message`` is None in nodes that only hold others together."""

    id: str
    place: str
    message: dict[str, Any] | None


class Way(Struct, frozen=True):
    """A way through a conversation, from its root. ``leaf`` is None on the one that was on the screen last."""

    nodes: tuple[Node, ...]
    leaf: str | None = None
    #: The last message that a way has in common with the one on the screen.
    forked_at: str | None = None


def looks_like(value: object) -> bool:
    """Whether a value is a conversation of ChatGPT's."""
    return is_object(value) and is_object(value.get("mapping"))


def facts_of(conversation: dict[str, Any]) -> Facts:
    """What stands beside the messages; raises :class:`InvalidValueError` that names the path."""
    where = "the conversation"
    facts = Facts(fields={}, left_out=Counter())
    facts.id = optional_text_at(conversation, "conversation_id", where) or optional_text_at(conversation, "id", where)
    facts.created_at = _moment(conversation.get("create_time"), "create_time")
    for key, name in _FACTS.items():
        found = optional_text_at(conversation, key, where)
        if found:
            facts.fields[name] = found
    return facts


def paths(conversation: dict[str, Any]) -> Iterator[Way]:
    """The way that was on the screen last, then one for each other leaf that says something, in the order of the file.

    Raises :class:`InvalidValueError` that names the path where the tree is none.
    """
    mapping = object_at(conversation, "mapping", "the conversation")
    nodes = {key: as_object(node, f"mapping[{key[:40]!a}]") for key, node in mapping.items()}
    parents = {key: optional_text_at(node, "parent", f"mapping[{key[:40]!a}]") for key, node in nodes.items()}
    inner = set(parents.values())
    leaves = [key for key in nodes if key not in inner]
    current = optional_text_at(conversation, "current_node", "the conversation")
    if current not in nodes:
        current = max(leaves, key=lambda key: _made_at(nodes[key]), default=next(iter(nodes), None))
    main = [] if current is None else _up(current, parents)
    on_screen = set(main)
    yield Way(tuple(_node(key, nodes[key]) for key in main))
    for leaf in leaves:
        way = _up(leaf, parents)
        own = [key for key in way if key not in on_screen]
        if leaf not in on_screen and any(_says_something(nodes[key]) for key in own):
            shared = [key for key in way if key in on_screen]
            found = tuple(_node(key, nodes[key]) for key in way)
            yield Way(found, leaf=leaf, forked_at=shared[-1] if shared else None)


def _up(leaf: str, parents: dict[str, str | None]) -> list[str]:
    """The nodes from the root to ``leaf``. A parent that is missing, or a circle, ends it."""
    way: dict[str, None] = {}
    at: str | None = leaf
    while at is not None and at in parents and at not in way:
        way[at] = None
        at = parents[at]
    return list(reversed(way))


def _node(key: str, fields: dict[str, Any]) -> Node:
    message = fields.get("message")
    place = f"mapping[{key[:40]!a}].message"
    return Node(key, place, None if message is None else as_object(message, place))


def _made_at(node: dict[str, Any]) -> int | float:
    message = node.get("message")
    made = message.get("create_time") if is_object(message) else None
    return made if isinstance(made, (int, float)) else 0


def _says_something(node: dict[str, Any]) -> bool:
    message = node.get("message")
    return is_object(message) and message.get("content") is not None


def read(way: Way, facts: Facts, line: int) -> Iterator[Entry]:
    """The entries of a way; raises :class:`InvalidValueError` that names the path of what is wrong.

    What becomes no entry is counted in ``facts``.
    """
    facts.left_out.clear()
    reader = _Reader(facts, line)
    for node in way.nodes:
        if node.message is not None:
            yield from reader.take(node, node.message)
    yield from reader.end()


class _Reader:
    """Holds a call until its results are complete, and thoughts until what they led to is there."""

    def __init__(self, facts: Facts, line: int) -> None:
        self._facts = facts
        self._line = line
        self._thoughts: list[Part] = []
        self._thought_at: datetime | None = None
        self._call: ToolCall | None = None
        #: None until the tool has said something.
        self._results: list[Part] | None = None
        self._result_at: datetime | None = None
        self._status = ToolStatus.OK

    def take(self, node: Node, message: dict[str, Any]) -> Iterator[Entry]:
        """What can be said now that this message came."""
        role = self._role(node, message)
        content = object_at(message, "content", node.place)
        kind = text_at(content, "content_type", f"{node.place}.content")
        at = _moment(message.get("create_time"), f"{node.place}.create_time")
        if role == "tool" and self._call is not None:
            self._results = (self._results or []) + read_parts(content, kind, f"{node.place}.content")
            self._result_at = self._result_at or at
            self._status = ToolStatus.ERROR if kind == "system_error" else self._status
            return
        if _is_hidden(message) or kind in OTHERS:
            yield from self._aside(node, _HIDDEN, role, content, at)
            return
        if role == "tool":
            yield from self._aside(node, _OTHER, role, content, at)
            return
        parts = read_parts(content, kind, f"{node.place}.content")
        if role == "assistant":
            yield from self._of_assistant(node, message, parts, at)
            return
        yield from self.end()
        if not parts:
            self._facts.left_out["empty"] += 1
            return
        made = UserMessage(parts) if role == "user" else SystemMessage(parts)
        yield self._entry(made, at, message)

    def end(self) -> Iterator[Entry]:
        """What is held."""
        if self._call is not None and self._results is not None:
            result = ToolResult(self._call.id, self._results or None, self._status, self._call.name)
            yield Entry(line=self._line, message=ToolMessage((result,)), timestamp=self._result_at)
        self._call, self._results, self._result_at, self._status = None, None, None, ToolStatus.OK
        if self._thoughts:
            yield Entry(line=self._line, message=AssistantMessage(self._thoughts), timestamp=self._thought_at)
        self._thoughts = []

    def _of_assistant(
        self, node: Node, message: dict[str, Any], parts: list[Part], at: datetime | None
    ) -> Iterator[Entry]:
        recipient = optional_text_at(message, "recipient", node.place) or "all"
        is_call = recipient not in {"all", "assistant"}
        if not is_call and not parts:
            self._facts.left_out["empty"] += 1
            return
        if self._call is not None:
            yield from self.end()
        if not is_call and all(isinstance(part, ReasoningPart) for part in parts):
            self._thoughts += parts
            self._thought_at = self._thought_at or at
            return
        thoughts, self._thoughts = self._thoughts, []
        if not is_call:
            yield self._entry(AssistantMessage([*thoughts, *parts]), at, message)
            return
        self._call = ToolCall(_id_of(node, message), recipient, spoken_text(parts))
        yield self._entry(AssistantMessage(thoughts or None, tool_calls=(self._call,)), at, message)

    def _aside(
        self, node: Node, kind: EventType, role: str, content: dict[str, Any], at: datetime | None
    ) -> Iterator[Entry]:
        yield from self.end()
        payload = {"role": role, "id": node.id, "content": content}
        yield Entry(line=self._line, type=kind, payload=payload, timestamp=at)

    def _entry(
        self, made: UserMessage | SystemMessage | AssistantMessage, at: datetime | None, message: dict[str, Any]
    ) -> Entry:
        about: dict[str, Any] = {"id": message.get("id")}
        metadata = message.get("metadata")
        if is_object(metadata):
            about["model"] = metadata.get("model_slug")
        kept = {key: value for key, value in about.items() if type(value) is str}
        return Entry(line=self._line, message=made, timestamp=at, metadata={"chatgpt": kept} if kept else {})

    def _role(self, node: Node, message: dict[str, Any]) -> str:
        place = f"{node.place}.author"
        role = text_at(object_at(message, "author", node.place), "role", place)
        if role not in _ROLES:
            raise InvalidValueError(f"{place}.role is {role[:40]!a}, not one of {', '.join(_ROLES)}")
        return role


def _is_hidden(message: dict[str, Any]) -> bool:
    metadata = message.get("metadata")
    return is_object(metadata) and metadata.get("is_visually_hidden_from_conversation") is True


def _id_of(node: Node, message: dict[str, Any]) -> str:
    return optional_text_at(message, "id", node.place) or node.id


def _moment(value: object, where: str) -> datetime | None:
    """Seconds since 1970."""
    if value is None:
        return None
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise InvalidValueError(f"{where} must be a number or null, not {json_name(value)}")
    try:
        return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        raise InvalidValueError(f"{where} is no time: {str(value)[:40]}") from None
