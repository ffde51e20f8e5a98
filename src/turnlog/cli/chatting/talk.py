"""A chat on one session: what is said goes through the client and its advisors into the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from turnlog.chat import ChatClient, SessionAdvisors, ToolRequest
from turnlog.chat.advisor import NextToolCall
from turnlog.cli.chatting.choosing import Chosen
from turnlog.compaction import (
    CompactionResult,
    Strategy,
    SummarizingCompactionStrategy,
    TokenCountTrigger,
    WindowCompactionStrategy,
)
from turnlog.errors import RecordingEndedError
from turnlog.log.messages import ToolCall, ToolResult
from turnlog.log.session import Session, SessionAttributes
from turnlog.models.protocol import Delta
from turnlog.models.summarizer import chat_summarizer
from turnlog.service import SessionService


class CallNotes:
    """Tells of each tool call before it is made."""

    def __init__(self, on_call: Callable[[ToolCall], None]) -> None:
        self._on_call = on_call

    def around_tool_call(self, request: ToolRequest, call_next: NextToolCall) -> ToolResult:
        """Tell, and make the call."""
        self._on_call(request.call)
        return call_next(request)


class Talk:
    """The session that is talked in, which ``fork`` changes, and how many requests were made in it by this process."""

    def __init__(
        self,
        service: SessionService,
        chosen: Chosen,
        session_id: str,
        system: str | None,
        on_call: Callable[[ToolCall], None],
    ) -> None:
        self.service = service
        self.chosen = chosen
        self.session_id = session_id
        self._requests = 0
        budget = chosen.budget
        advisors = SessionAdvisors(
            service,
            compaction_trigger=None if budget is None else TokenCountTrigger(budget),
            compaction_strategy=None if budget is None else WindowCompactionStrategy(max_tokens=budget // 2),
            store_partial_replies=True,
        )
        self._client = ChatClient(
            chosen.model,
            advisors=(*advisors, CallNotes(on_call)),
            system=chosen.system if system is None else system,
            tools=chosen.tools,
            tools_at_once=1,
        )

    def say(self, text: str) -> Iterator[Delta]:
        """One turn; the pieces of the reply as they come. Left before its end, what has come is stored, and marked."""
        if self.chosen.requests and self._requests >= len(self.chosen.requests):
            raise RecordingEndedError(self._requests)
        self._requests += 1
        stream = self._client.stream(
            text, session_id=self.session_id, session_metadata={SessionAttributes.AGENT_MODEL: self.chosen.name}
        )
        with stream:
            yield from stream

    def next_request(self) -> str | None:
        """What the user's side of the example says next; None at its end, and where there is a model."""
        requests = self.chosen.requests
        if self._requests >= len(requests):
            return None
        return "\n".join(message.text for message in requests[self._requests])

    @property
    def is_begun(self) -> bool:
        """Whether the session is there yet."""
        return self.service.find(self.session_id) is not None

    def compact(self, turns: int) -> CompactionResult:
        """Keep the newest turns; the others are summarised by the model, or where there is none, covered."""
        window = WindowCompactionStrategy(last_turns=turns)
        strategy: Strategy = window
        if not self.chosen.requests:
            most = None if self.chosen.budget is None else self.chosen.budget // 10
            summarize = chat_summarizer(self.chosen.model)
            strategy = SummarizingCompactionStrategy(summarize, window, max_summary_tokens=most)
        return self.service.compact(self.session_id, strategy)

    def fork(self, new_id: str | None) -> Session:
        """Go on in a copy of the session."""
        session = self.service.fork(self.session_id, new_id)
        self.session_id = session.id
        return session
