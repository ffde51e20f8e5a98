"""What the name of a model says about who answers."""

from __future__ import annotations

import re
from typing import Final

from turnlog.formats.rules.problem import ProblemLevel

#: The open models of OpenAI's are served by others; `openai.gpt-…` is Bedrock's name for the closed ones.
_OPENAI: Final = re.compile(r"(?:.*/)?(?:ft:)?(?:gpt-(?!oss)|chatgpt|o\d|codex|computer-use)")
_OPUS: Final = re.compile(r"claude-opus-(?:4-(?:[6-9]|\d\d(?!\d))|[5-9])")
_GEMINI: Final = re.compile(r"gemini-(\d+)")


def openai_or_unsure(model: str | None) -> ProblemLevel:
    """The level of what OpenAI itself refuses, and others who speak its API take."""
    return ProblemLevel.ERROR if model is None or _OPENAI.match(model) else ProblemLevel.BY_MODEL


def refuses_prefill(model: str | None) -> bool:
    """Whether this model of Anthropic's is known to refuse to go on with an assistant message."""
    return model is not None and _OPUS.search(model) is not None


def gemini_generation(model: str | None) -> int | None:
    """2 for ``gemini-2.5-flash``; None where the name does not say."""
    found = None if model is None else _GEMINI.search(model)
    return None if found is None else int(found[1][:4])
