"""What is wrong with a request, as a value."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class ProblemLevel(StrEnum):
    """How sure it is that a request is refused. The value is what ``turnlog check`` prints."""

    #: The provider refuses it.
    ERROR = "error"
    #: Some models, or services that speak this API, refuse it; others take it, or the request does not say enough.
    BY_MODEL = "by_model"
    #: It is accepted, or was when it was tried, and is still hardly what was meant.
    WARNING = "warning"


class Problem(Struct, frozen=True):
    """One rule of a provider that a request breaks, and where (P-2).

    ``rule`` is a stable id such as ``anthropic.tool-use-unanswered``; ``place`` a path into the request as it was
    given, such as ``messages[3].content[0]``; ``message`` what is wrong and what to do; ``says`` the provider's own
    words, with ids and places filled in, None where they are not known.
    """

    rule: str
    level: ProblemLevel
    place: str
    message: str
    says: str | None = None
