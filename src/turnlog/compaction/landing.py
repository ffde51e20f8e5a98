"""From a plan to the batch that is written, at whatever version it lands (A-1, C-7)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from turnlog.compaction import prompts
from turnlog.compaction.plan import CompactionPlan, CompactionResult, Summary
from turnlog.compaction.request import CompactionRequest, EventSequence
from turnlog.errors import InvalidValueError
from turnlog.log.events import EventMetadata, EventType, SessionEvent
from turnlog.log.messages import AssistantMessage, Message, UserMessage
from turnlog.log.names import new_id
from turnlog.log.tokens import message_tokens
from turnlog.log.view import Boundary, ranges_of


class Draft(Struct, frozen=True, kw_only=True):
    """A checked plan for the view at ``version``: what stays, what goes, and what both count."""

    session_id: str
    version: int
    branch: str | None
    plan: CompactionPlan
    covered: EventSequence
    summary: tuple[Message, ...]
    tokens_before: int
    tokens_after: int
    boundary_id: str

    @property
    def shrinks(self) -> bool:
        """Whether the view gets smaller."""
        return self.tokens_after < self.tokens_before

    def result(self, boundary: SessionEvent | None) -> CompactionResult:
        """What is told of it once it has landed."""
        spent = self.plan.summary or Summary("")
        return CompactionResult(
            is_unchanged=False,
            covered_events=self.covered,
            pinned_events=self.plan.pinned,
            preserved_events=self.plan.preserved,
            summary=self.summary,
            tokens_before=self.tokens_before,
            tokens_after=self.tokens_after,
            boundary=boundary,
            model=spent.model,
            usage=spent.usage,
        )


def draft(request: CompactionRequest, plan: CompactionPlan) -> Draft:
    """Check that a strategy's plan speaks of the view that it was asked about, and count it."""
    view = {event.position: event for event in request.events}
    staying = (*plan.pinned, *plan.preserved)
    kept = {event.position for event in staying}
    if not kept <= view.keys() or len(kept) < len(staying):
        raise InvalidValueError(f"strategy {plan.strategy!r} keeps an event twice, or one that is not in the view")
    summary = _summary_messages(plan.summary)
    covered = tuple(event for event in request.events if event.is_message and event.position not in kept)
    tokens_staying = request.tokens_of(staying)
    return Draft(
        session_id=request.session_id,
        version=request.version,
        branch=request.parts.base,
        plan=plan,
        covered=covered,
        summary=summary,
        tokens_before=tokens_staying + request.tokens_of(covered),
        tokens_after=tokens_staying + sum(message_tokens(message, request.counter) for message in summary),
        boundary_id=new_id(),
    )


def batch_at(draft: Draft, version: int) -> tuple[SessionEvent, ...]:
    """The boundary and its summary behind ``version``; what was appended since the draft stays in the view as it is."""
    end = version + 1 + len(draft.summary)
    overtaking = range(draft.version + 1, version + 1)
    positions = [
        *_positions(draft.plan.pinned),
        *range(version + 2, end + 1),
        *_positions(draft.plan.preserved),
        *overtaking,
    ]
    gone = _positions(draft.covered)
    spent = draft.plan.summary or Summary("")
    boundary = Boundary(
        view=ranges_of(positions),
        end=end,
        strategy=draft.plan.strategy,
        covered=(min(gone), max(gone)) if gone else None,
        tokens_before=draft.tokens_before,
        tokens_after=draft.tokens_after,
        model=spent.model,
        usage=spent.usage,
    )
    head = SessionEvent(
        id=draft.boundary_id,
        session_id=draft.session_id,
        type=EventType.COMPACTION,
        payload=boundary.payload(),
        branch=draft.branch,
    )
    return (head, *(_synthetic(draft, message) for message in draft.summary))


def _synthetic(draft: Draft, message: Message) -> SessionEvent:
    return SessionEvent(
        session_id=draft.session_id,
        message=message,
        branch=draft.branch,
        metadata={
            EventMetadata.SYNTHETIC: True,
            EventMetadata.STRATEGY: draft.plan.strategy,
            EventMetadata.BOUNDARY: draft.boundary_id,
        },
    )


def _summary_messages(summary: Summary | None) -> tuple[Message, ...]:
    """The pair that tells it: a question, and the summary as its answer."""
    if summary is None:
        return ()
    return (UserMessage(prompts.SHADOW_PROMPT), AssistantMessage(summary.text))


def _positions(events: Sequence[SessionEvent]) -> list[int]:
    return [event.position or 0 for event in events]
