"""What an earlier attempt of a run has left in the log, and how a retry goes on (H-8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from turnlog.chat.request import Outcome
from turnlog.errors import RunMismatchError
from turnlog.log.events import SessionEvent
from turnlog.log.messages import AssistantMessage, Message, ToolMessage, ToolResult

#: In the metadata of the results that a turn ended with: how it ended.
OUTCOME: Final = "turnlog.outcome"
#: In the metadata of a partial reply whose stream was abandoned (H-7).
INTERRUPTED: Final = "turnlog.interrupted"


class EarlierRun(Struct, frozen=True):
    """What is stored of a run on one branch: the request, the steps behind it, and how it ended, if it did.

    ``opening`` is the user's messages, or the results that a caller has sent.

    ``steps`` is whole steps, a reply with all its results, but for the last, whose results may be missing.
    """

    opening: tuple[Message, ...]
    steps: tuple[Message, ...]
    outcome: Outcome | None
    #: The ids of all these messages' events, in order.
    event_ids: tuple[str, ...]

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The results of the last tool batch, where the run ended with them."""
        found: list[ToolResult] = []
        for message in reversed(self.steps):
            if not isinstance(message, ToolMessage):
                break
            found[:0] = message.results
        return tuple(found)

    @property
    def reply(self) -> AssistantMessage | None:
        """The last reply of the model."""
        replies = (message for message in reversed(self.steps) if isinstance(message, AssistantMessage))
        return next(replies, None)

    @property
    def response_event_ids(self) -> list[str]:
        """The id of the event that stored the last reply; empty without one."""
        return [] if self._last_reply is None else [self.event_ids[self._last_reply]]

    @property
    def request_event_id(self) -> str | None:
        """The id of the event before the last reply, which stored what that reply answers; None without one."""
        return self.event_ids[self._last_reply - 1] if self._last_reply else None

    @property
    def _last_reply(self) -> int | None:
        """Its index among all messages."""
        for index in range(len(self.steps) - 1, -1, -1):
            if isinstance(self.steps[index], AssistantMessage):
                return len(self.opening) + index
        return None


def earlier_run(events: Sequence[SessionEvent]) -> EarlierRun | None:
    """The run that left ``events``, all that are stored under its id on its branch, in order; None without any."""
    told = [event for event in events if event.is_message and not event.metadata.get(INTERRUPTED)]
    if not told:
        return None
    messages = [event.content for event in told]
    opened = 0
    while opened < len(messages) and not isinstance(messages[opened], AssistantMessage):
        opened += 1
    ids = tuple(event.id for event in told)
    return EarlierRun(tuple(messages[:opened]), tuple(messages[opened:]), _outcome(told[-1]), ids)


def check_opening(run: EarlierRun, session_id: str, run_id: str, opening: Sequence[Message]) -> None:
    """Refuse a retry whose user messages, as far as they are stored, are others than the run's."""
    if tuple(opening) != run.opening:
        raise RunMismatchError(session_id, run_id)


def _outcome(last: SessionEvent) -> Outcome | None:
    message = last.message
    if isinstance(message, AssistantMessage):
        return None if message.tool_calls else Outcome.REPLY
    ended = last.metadata.get(OUTCOME)
    return Outcome(ended) if isinstance(ended, str) and ended in set(Outcome) else None
