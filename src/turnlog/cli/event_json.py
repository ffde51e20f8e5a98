"""Events and sessions as JSON for programs."""

from __future__ import annotations

from typing import Any

from turnlog.cli.turn_index import TurnIndex
from turnlog.log.events import SessionEvent
from turnlog.log.session import Session


def event_json(event: SessionEvent, turns: TurnIndex) -> dict[str, Any]:
    """All that an event holds, and the number of its turn (0 in the preamble)."""
    position = event.position or 0
    fields: dict[str, Any] = {
        "session_id": event.session_id,
        "position": position,
        "turn": turns.number_at(position),
        "id": event.id,
        "timestamp": event.timestamp,
        "type": event.type.name,
        "branch": event.branch,
        "metadata": event.metadata,
    }
    return fields | ({"payload": event.payload} if event.message is None else {"message": event.message})


def session_json(session: Session, version: int) -> dict[str, Any]:
    """All that a session holds, and the version of its log."""
    return {
        "id": session.id,
        "version": version,
        "created_at": session.created_at,
        "expires_at": session.expires_at,
        "time_to_live": None if session.time_to_live is None else session.time_to_live.total_seconds(),
        "metadata": session.metadata,
    }
