"""The rules by which providers refuse a request: :func:`problems` finds what one breaks before it is sent (P-2).

Rules hold for turns: neighbouring messages of one role are read as one, as Anthropic, Gemini and Bedrock do. What the
provider's own tools left in a message is no call that waits for a result. What is no list of messages at all is an
error, not a problem.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from turnlog.errors import InvalidValueError
from turnlog.formats.json_fields import as_object
from turnlog.formats.rules import anthropic, bedrock, gemini, openai_chat, openai_responses
from turnlog.formats.rules.anthropic_table import RULES as ANTHROPIC_RULES
from turnlog.formats.rules.bedrock_table import RULES as BEDROCK_RULES
from turnlog.formats.rules.openai_responses_table import RULES as RESPONSES_RULES
from turnlog.formats.rules.problem import Problem, ProblemLevel
from turnlog.formats.rules.rule import Rule

__all__ = ["PROVIDERS", "Problem", "ProblemLevel", "problems"]

Request = TypeVar("Request")


class Provider(Struct, Generic[Request], frozen=True):
    """How a provider's request is read, and its rules."""

    read: Callable[[dict[str, Any]], Request]
    rules: tuple[Rule[Request], ...]

    def problems(self, request: dict[str, Any]) -> list[Problem]:
        """What ``request`` breaks, rule by rule."""
        found = self.read(request)
        return [problem for rule in self.rules for problem in rule.problems(found)]


#: By name.
PROVIDERS: Final[dict[str, Provider[Any]]] = {
    "openai-chat": Provider(openai_chat.read, openai_chat.RULES),
    "openai-responses": Provider(openai_responses.read, RESPONSES_RULES),
    "anthropic": Provider(anthropic.read, ANTHROPIC_RULES),
    "gemini": Provider(gemini.read, gemini.RULES),
    "bedrock": Provider(bedrock.read, BEDROCK_RULES),
}


def problems(request: dict[str, Any], provider: str) -> list[Problem]:
    """Every rule of ``provider`` that ``request`` breaks, with its places (P-2).

    ``request`` is the provider's own body: ``messages``, ``input`` or ``contents``, and beside them what rules look at
    (``model``, ``thinking``, ``store``, ``previous_response_id``, ``toolConfig``). ``provider`` is ``openai-chat``,
    ``openai-responses``, ``anthropic``, ``gemini`` or ``bedrock``. Raises :class:`InvalidValueError` for another name,
    and, naming the path, for a request in which something has the wrong type.
    """
    found = PROVIDERS.get(provider)
    if found is None:
        raise InvalidValueError(f"no rules are known for {provider!a}: choose one of {', '.join(PROVIDERS)}")
    return found.problems(as_object(request, "the request"))
