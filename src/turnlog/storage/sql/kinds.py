"""Kinds: one small number per event for everything that filters ask of its type, author, origin and place (R-11).

``kind = 2 * code + (1 on a branch)``. An index on (session, kind, position) then finds any combination of these
criteria in order, and a session's row remembers as a bit mask which kinds its log holds, so that a read never looks
for others.
"""

from __future__ import annotations

from typing import Final

from turnlog.log.events import SessionEvent
from turnlog.log.messages import MessageType

#: Real messages by author; ``START`` is a user message that starts a turn.
SYSTEM, USER, ASSISTANT, TOOL, START = range(5)
#: The same authors in synthetic events; a synthetic user message is a shadow prompt.
SYNTHETIC_SYSTEM, SHADOW_PROMPT, SYNTHETIC_ASSISTANT, SYNTHETIC_TOOL = range(5, 9)
BOUNDARY: Final = 9
OWN: Final = 10

REAL_CODES: Final = (SYSTEM, USER, ASSISTANT, TOOL, START)
CODES: Final = range(OWN + 1)

_REAL = {
    MessageType.SYSTEM: SYSTEM,
    MessageType.USER: USER,
    MessageType.ASSISTANT: ASSISTANT,
    MessageType.TOOL: TOOL,
}
_SYNTHETIC = {
    MessageType.SYSTEM: SYNTHETIC_SYSTEM,
    MessageType.USER: SHADOW_PROMPT,
    MessageType.ASSISTANT: SYNTHETIC_ASSISTANT,
    MessageType.TOOL: SYNTHETIC_TOOL,
}

#: The author of each code's message; None for events without one.
AUTHORS: Final = tuple(
    {code: author for author, code in (*_REAL.items(), *_SYNTHETIC.items())}.get(USER if code == START else code)
    for code in CODES
)


def kind_of(event: SessionEvent, *, starts_turn: bool) -> int:
    """The kind of an event at its place in the log."""
    message = event.message
    if message is None:
        code = BOUNDARY if event.is_boundary else OWN
    elif starts_turn:
        code = START
    else:
        code = (_SYNTHETIC if event.is_synthetic else _REAL)[message.type]
    return 2 * code + (event.branch is not None)


def code_of(kind: int) -> int:
    """The code of a kind."""
    return kind >> 1


def is_on_branch(kind: int) -> bool:
    """Whether the event lies on a branch, not on root."""
    return bool(kind & 1)


def is_synthetic(code: int) -> bool:
    """Whether a compaction wrote it as part of a summary."""
    return SYNTHETIC_SYSTEM <= code <= SYNTHETIC_TOOL


def only_root_messages(mask: int) -> bool:
    """Whether a mask has no other kinds than those of messages on root."""
    return not mask & ~_ROOT_MESSAGES


_ROOT_MESSAGES = sum(1 << 2 * code for code in CODES if code < BOUNDARY)


def kinds_in(mask: int) -> list[int]:
    """The kinds whose bits are set."""
    return [kind for kind in range(2 * len(CODES)) if mask >> kind & 1]
