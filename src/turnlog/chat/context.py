"""What one call carries along: a dict that advisors and tools share, by string keys (H-5), and typed access to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from turnlog.errors import InvalidValueError, MissingSessionIdError
from turnlog.log.event_filter import EventFilter
from turnlog.log.names import check_branch, check_name

#: The session that a call runs on; every call that uses session advisors must name one.
SESSION_ID: Final = "chat_memory_conversation_id"
#: Metadata for a session that the call creates; ignored for one that exists.
SESSION_METADATA: Final = "chat_memory_session_metadata"
#: A filter for the history of this call, merged over the advisor's.
EVENT_FILTER: Final = "chat_memory_event_filter"
#: Set by the memory advisor: the id of the last event that stored the request; absent when nothing was stored.
REQUEST_EVENT_ID: Final = "chat_memory_request_event_id"
#: Set by the memory advisor: the ids of the events that stored the reply; an empty list when none was.
RESPONSE_EVENT_IDS: Final = "chat_memory_response_event_ids"

#: The attempt's turn (H-8), the branch that the call runs on (H-12), its principal (H-10), and a turn that it joins.
RUN_ID: Final = "turnlog_run_id"
BRANCH: Final = "turnlog_branch"
PRINCIPAL: Final = "turnlog_principal"
TURN: Final = "turnlog_turn"

#: Where advisors keep what is theirs alone during a call; not in the result's context.
_PRIVATE: Final = "turnlog_private_"


def private_key(name: str) -> str:
    """A key for what lives as long as the call and is nobody else's."""
    return _PRIVATE + name


def public(context: Mapping[str, Any]) -> dict[str, Any]:
    """The context without what is private."""
    return {key: value for key, value in context.items() if not key.startswith(_PRIVATE)}


def of_call(*given: Mapping[str, Any]) -> dict[str, Any]:
    """The context that a call begins with: what is given, the later over the earlier, without the ids of another."""
    context = {key: value for each in given for key, value in each.items()}
    for out in (REQUEST_EVENT_ID, RESPONSE_EVENT_IDS):
        context.pop(out, None)
    return public(context)


def checked_filter(value: object) -> EventFilter:
    """Return ``value`` if it is a filter."""
    if not isinstance(value, EventFilter):
        raise InvalidValueError(f"an event filter must be an EventFilter, not {type(value).__name__}")
    return value


def dict_of(value: object, what: str) -> dict[str, Any]:
    """A copy of a mapping; an empty dict for None."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidValueError(f"{what} must be a dict, not {type(value).__name__}")
    return dict(cast("Mapping[str, Any]", value))


class CallContext:
    """Typed, checked reading of a call's context."""

    def __init__(self, context: Mapping[str, Any]) -> None:
        self._context = context

    @property
    def session_id(self) -> str:
        """The session; :class:`MissingSessionIdError` without one, as a default would merge what strangers said."""
        value = self._context.get(SESSION_ID)
        if not isinstance(value, str) or not value.strip():
            raise MissingSessionIdError(
                f"a call with session advisors names its session: call(..., session_id='…'), or {SESSION_ID!r} in the "
                f"context; {'there is none' if value is None else f'{value!r:.60} is no id'}"
            )
        return check_name("session id", value)

    @property
    def session_metadata(self) -> dict[str, Any]:
        """Metadata for a session that the call creates."""
        return dict_of(self._context.get(SESSION_METADATA), SESSION_METADATA)

    @property
    def event_filter(self) -> EventFilter | None:
        """The call's own filter."""
        value = self._context.get(EVENT_FILTER)
        return None if value is None else checked_filter(value)

    @property
    def run_id(self) -> str | None:
        """The run id that the caller gave."""
        return self._name(RUN_ID)

    @property
    def branch(self) -> str | None:
        """The branch, None for root."""
        return check_branch(self._context.get(BRANCH))

    @property
    def principal(self) -> str | None:
        """Whose session it must be; None asks nothing."""
        return self._name(PRINCIPAL)

    @property
    def turn(self) -> str | None:
        """The token of a turn that this call is part of."""
        return self._name(TURN)

    @property
    def request_event_id(self) -> str | None:
        """The last event that stored the request, None when nothing was stored."""
        return self._context.get(REQUEST_EVENT_ID)

    @property
    def response_event_ids(self) -> list[str]:
        """The events that stored the reply."""
        return list(self._context.get(RESPONSE_EVENT_IDS) or ())

    def _name(self, key: str) -> str | None:
        value = self._context.get(key)
        return None if value is None else check_name(key, value)
