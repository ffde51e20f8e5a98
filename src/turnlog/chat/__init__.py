"""The chat client and the session advisors: one call is one turn of a session (H-1 to H-13).

Begin with :class:`ChatClient` (or :class:`AsyncChatClient`), a model, and :class:`SessionAdvisors`.
"""

from turnlog.chat._async.advisors import AsyncSessionAdvisors, AsyncSessionMemoryAdvisor, AsyncSessionTurnAdvisor
from turnlog.chat._async.client import AsyncChatClient
from turnlog.chat._sync.advisors import SessionAdvisors, SessionMemoryAdvisor, SessionTurnAdvisor
from turnlog.chat._sync.client import ChatClient
from turnlog.chat.advisor import (
    Advisor,
    AsyncAdvisor,
    AsyncModelCallAdvisor,
    AsyncToolCallAdvisor,
    AsyncTurnAdvisor,
    ModelCallAdvisor,
    ToolCallAdvisor,
    TurnAdvisor,
)
from turnlog.chat.context import (
    BRANCH,
    EVENT_FILTER,
    PRINCIPAL,
    REQUEST_EVENT_ID,
    RESPONSE_EVENT_IDS,
    RUN_ID,
    SESSION_ID,
    SESSION_METADATA,
    TURN,
    CallContext,
)
from turnlog.chat.guard import Guarded, guarded
from turnlog.chat.limits import Limits, OnBreach
from turnlog.chat.request import ChatResult, ModelRequest, Outcome, ToolRequest, TurnRequest
from turnlog.chat.streaming import AsyncChatStream, ChatStream
from turnlog.chat.tools import Tool, ToolContext, ToolError, schema_tool, tool
from turnlog.log.message_filter import MessageFilter

__all__ = [
    "BRANCH",
    "EVENT_FILTER",
    "PRINCIPAL",
    "REQUEST_EVENT_ID",
    "RESPONSE_EVENT_IDS",
    "RUN_ID",
    "SESSION_ID",
    "SESSION_METADATA",
    "TURN",
    "Advisor",
    "AsyncAdvisor",
    "AsyncChatClient",
    "AsyncChatStream",
    "AsyncModelCallAdvisor",
    "AsyncSessionAdvisors",
    "AsyncSessionMemoryAdvisor",
    "AsyncSessionTurnAdvisor",
    "AsyncToolCallAdvisor",
    "AsyncTurnAdvisor",
    "CallContext",
    "ChatClient",
    "ChatResult",
    "ChatStream",
    "Guarded",
    "Limits",
    "MessageFilter",
    "ModelCallAdvisor",
    "ModelRequest",
    "OnBreach",
    "Outcome",
    "SessionAdvisors",
    "SessionMemoryAdvisor",
    "SessionTurnAdvisor",
    "Tool",
    "ToolCallAdvisor",
    "ToolContext",
    "ToolError",
    "ToolRequest",
    "TurnAdvisor",
    "TurnRequest",
    "guarded",
    "schema_tool",
    "tool",
]
