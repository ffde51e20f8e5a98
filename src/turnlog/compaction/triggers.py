"""Triggers: whether it is time (C-2). Small values, composable with ``|`` and ``&``, and with any callable."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast

from msgspec import Struct

from turnlog.compaction.request import CompactionRequest
from turnlog.errors import InvalidValueError
from turnlog.log.messages import AssistantMessage, MessageMetadata
from turnlog.log.windows import check_count

Trigger: TypeAlias = Callable[[CompactionRequest], bool]


class _Composable(Struct, frozen=True):
    def __or__(self, other: Trigger) -> AnyOf:
        return AnyOf(_callable(self), _callable(other))

    def __ror__(self, other: Trigger) -> AnyOf:
        return AnyOf(_callable(other), _callable(self))

    def __and__(self, other: Trigger) -> AllOf:
        return AllOf(_callable(self), _callable(other))

    def __rand__(self, other: Trigger) -> AllOf:
        return AllOf(_callable(other), _callable(self))


class AnyOf(_Composable, frozen=True):
    """Fires when one of the two does."""

    first: Trigger
    second: Trigger

    def __call__(self, request: CompactionRequest) -> bool:
        """Ask the second only if the first does not fire."""
        return self.first(request) or self.second(request)


class AllOf(_Composable, frozen=True):
    """Fires when both do."""

    first: Trigger
    second: Trigger

    def __call__(self, request: CompactionRequest) -> bool:
        """Ask the second only if the first fires."""
        return self.first(request) and self.second(request)


class Always(_Composable, frozen=True):
    """Fires whenever it is asked."""

    def __call__(self, request: CompactionRequest) -> bool:  # noqa: ARG002 - what every trigger is called with
        """Fire."""
        return True


def always() -> Always:
    """The trigger that always fires."""
    return Always()


class TurnCountTrigger(_Composable, frozen=True):
    """Fires at ``turns`` real turns in the view, or more."""

    turns: int

    def __post_init__(self) -> None:
        check_count("turns", self.turns, least=1)

    def __call__(self, request: CompactionRequest) -> bool:
        """Compare the view's real turns; its events are not read."""
        return request.turns >= self.turns


class TokenCountTrigger(_Composable, frozen=True):
    """Fires at ``tokens`` tokens in the view, or more: tool traffic, pinned messages and summary included."""

    tokens: int

    def __post_init__(self) -> None:
        check_count("tokens", self.tokens, least=1)

    def __call__(self, request: CompactionRequest) -> bool:
        """Compare the view's tokens; its events are not read."""
        return request.tokens >= self.tokens


class ContextWindowTrigger(_Composable, frozen=True):
    """Fires when the last reply's reported input filled ``share`` of a model's ``window``, or more.

    The report knows what the log does not: system prompt and tool schemas as sent. One from before the newest
    boundary speaks of another view and is not used; without a report the view's own tokens are.
    """

    share: float
    window: int

    def __post_init__(self) -> None:
        check_count("window", self.window, least=1)
        if isinstance(self.share, bool) or not isinstance(self.share, (int, float)) or not 0 < self.share <= 1:
            raise InvalidValueError(f"share is a number above 0 and up to 1, not {self.share!r}")

    def __call__(self, request: CompactionRequest) -> bool:
        """Compare what the last reply reported, or else the view's tokens."""
        reported = reported_input_tokens(request)
        used = request.tokens if reported is None else reported
        return used >= self.share * self.window


def reported_input_tokens(request: CompactionRequest) -> int | None:
    """The input tokens that the newest reply behind the boundary reported, if there is one and it did."""
    replies = [
        event
        for event in request.events
        if isinstance(event.message, AssistantMessage) and (event.position or 0) > request.boundary
    ]
    newest = next((event.content for event in reversed(replies) if not event.is_synthetic), None)
    usage = None if newest is None else newest.metadata.get(MessageMetadata.USAGE)
    tokens = cast("dict[str, object]", usage).get("input_tokens") if isinstance(usage, dict) else None
    return tokens if type(tokens) is int else None


def _callable(trigger: object) -> Trigger:
    if not callable(trigger):
        raise InvalidValueError(f"a trigger is a callable on the request, not {trigger!r}")
    return cast("Trigger", trigger)
