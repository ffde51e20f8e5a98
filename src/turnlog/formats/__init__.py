"""Wire formats: to and from what providers and files hold. Pure; nothing here reads a file or talks to a network.

Whole requests go through :func:`parse_request` and :func:`render_request`; :func:`losses` says what another provider
is not given, :func:`problems` which rules of a provider a request breaks. The modules ``openai_chat``,
``openai_responses``, ``anthropic``, ``gemini`` and ``bedrock`` read and write the messages alone, and read answers
(``parse_reply``).
"""

from turnlog.formats.loss import Loss
from turnlog.formats.reply import ParsedReply, Usage
from turnlog.formats.request import Request, losses, parse_request, render_request
from turnlog.formats.rules import Problem, ProblemLevel, problems
from turnlog.formats.tools import ToolSpec

__all__ = [
    "Loss",
    "ParsedReply",
    "Problem",
    "ProblemLevel",
    "Request",
    "ToolSpec",
    "Usage",
    "losses",
    "parse_request",
    "problems",
    "render_request",
]
