"""What an earlier attempt of a run has left in the log, and how a retry goes on (H-8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from turnlog.chat.request import Outcome
from turnlog.errors import RunMismatchError
from turnlog.log.events import SessionEvent
from turnlog.log.messages import AssistantMessage, Message, ToolMessage, ToolResult, UserMessage

#: In the metadata of the results that a turn ended with: how it ended.
OUTCOME: Final = "turnlog.outcome"
#: In the metadata of a partial reply whose stream was abandoned (H-7).
INTERRUPTED: Final = "turnlog.interrupted"


class EarlierRun(Struct, frozen=True):
    """What is stored of a run on one branch: the user's messages, the steps behind them, and how it ended, if it did.

    ``steps`` is whole steps, a reply with all its results, but for the last, whose results may be missing.
    """

    opening: tuple[Message, ...]
    steps: tuple[Message, ...]
    outcome: Outcome | None
    last_event: SessionEvent

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


def earlier_run(events: Sequence[SessionEvent]) -> EarlierRun | None:
    """The run that left ``events``, all that are stored under its id on its branch, in order; None without any."""
    told = [event for event in events if event.is_message and not event.metadata.get(INTERRUPTED)]
    if not told:
        return None
    messages = [event.content for event in told]
    opened = 0
    while opened < len(messages) and isinstance(messages[opened], UserMessage):
        opened += 1
    return EarlierRun(tuple(messages[:opened]), tuple(messages[opened:]), _outcome(told[-1]), told[-1])


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
