"""Counting tokens: one renderer for everything that is counted or summarised, and the counters (C-9)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final, Protocol, runtime_checkable

from msgspec import Struct

from turnlog.errors import InvalidValueError, MissingExtraError
from turnlog.log.messages import AssistantMessage, Content, MediaPart, Message, ReasoningPart, ToolMessage

#: What one image, sound or file counts: about a large image at OpenAI's and Anthropic's published rates. Never its
#: base64.
MEDIA_TOKENS: Final = 800
#: What a message costs beside its content (role and separators, in OpenAI's published recipe).
MESSAGE_TOKENS: Final = 4


VOCABULARIES: Final = ("o200k_base", "cl100k_base")
_MORE_THAN_ANY_TEXT: Final = 2**31
COUNTER_VARIABLE: Final = "TURNLOG_TOKEN_COUNTER"


@runtime_checkable
class TokenCounter(Protocol):
    """Counts the tokens of a text. ``name`` says by which vocabulary: counts are kept under it."""

    @property
    def name(self) -> str:
        """A name that changes whenever the counts would."""
        ...

    def count(self, text: str) -> int:
        """How many tokens the text has; 0 for an empty one."""
        ...


class EstimatedTokens(Struct, frozen=True):
    """Four characters a token: the usual rule of thumb for English. Needs nothing."""

    @property
    def name(self) -> str:
        """``characters/4``."""
        return "characters/4"

    def count(self, text: str) -> int:
        """A quarter of the characters, rounded up."""
        return (len(text) + 3) // 4


class VocabularyTokens(Struct, frozen=True):
    """Exact counts by a provider's vocabulary, offline: ``o200k_base`` (GPT-4o and later) or ``cl100k_base`` (GPT-4).

    Needs the ``tokens`` extra. The first count loads the vocabulary, which takes about a second.
    """

    vocabulary: str = "o200k_base"

    def __post_init__(self) -> None:
        if self.vocabulary not in VOCABULARIES:
            raise InvalidValueError(f"{self.vocabulary!r} is no vocabulary that is known: {', '.join(VOCABULARIES)}")
        if not has_vocabularies():
            raise MissingExtraError("tokens", "toktok-rs")

    @property
    def name(self) -> str:
        """The vocabulary's name."""
        return self.vocabulary

    def count(self, text: str) -> int:
        """How many tokens the vocabulary makes of the text; a lone surrogate counts as the replacement character."""
        try:
            return _count(text, self.vocabulary)
        except UnicodeEncodeError:
            return _count(text.encode("utf-8", "replace").decode(), self.vocabulary)


def _count(text: str, vocabulary: str) -> int:
    # Cutting to more tokens than there are counts them all; the call that counts a batch starts a thread for it.
    count: int = _truncate()(text, _MORE_THAN_ANY_TEXT, vocabulary)[1]
    return count


@cache
def _truncate() -> Any:
    return import_module("toktok").truncate  # by its name: the package ships no types


@cache
def has_vocabularies() -> bool:
    """Whether the package that ships the vocabularies is installed."""
    from importlib.util import find_spec

    return find_spec("toktok") is not None


def default_counter() -> TokenCounter:
    """The counter that the environment variable ``TURNLOG_TOKEN_COUNTER`` names; without it, exact if that is possible.

    That is ``o200k_base`` where the ``tokens`` extra is installed, else the estimate.
    """
    name = os.environ.get(COUNTER_VARIABLE)
    if name:
        return counter_named(name)
    return VocabularyTokens() if has_vocabularies() else EstimatedTokens()


def counter_named(name: str) -> TokenCounter:
    """``characters/4``, ``o200k_base`` or ``cl100k_base``."""
    if name == EstimatedTokens().name:
        return EstimatedTokens()
    return VocabularyTokens(name)


def message_tokens(message: Message, counter: TokenCounter) -> int:
    """What a message costs in a prompt: its text as rendered, its media at the stated figure, a little for itself."""
    media = sum(isinstance(part, MediaPart) for part in _parts(message))
    return MESSAGE_TOKENS + media * MEDIA_TOKENS + sum(counter.count(text) for text in rendered_parts(message))


def rendered_parts(message: Message) -> list[str]:
    """The texts of a message as a model reads them: content, reasoning, calls, results."""
    texts = [text for part in _parts(message) if (text := _part_text(part))]
    if isinstance(message, AssistantMessage):
        texts += (f"{call.name}({call.arguments})" for call in message.tool_calls)
    return texts


def _parts(message: Message) -> Sequence[object]:
    if isinstance(message, ToolMessage):
        return [part for result in message.results for part in _content_parts(result.content)]
    return _content_parts(message.content)


def _content_parts(content: Content) -> Sequence[object]:
    return [content] if isinstance(content, str) else content or ()


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, ReasoningPart):
        return part.text or part.data or ""
    return "" if isinstance(part, MediaPart) else getattr(part, "text", "")
