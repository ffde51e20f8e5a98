"""Carrying a compaction out: measure, decide, summarise, and land (C-1, C-6, C-7, C-8)."""

from __future__ import annotations

import threading
from typing import TypeVar

from msgspec import Struct

from turnlog.compaction.landing import Draft, batch_at, draft
from turnlog.compaction.plan import CompactionPlan, CompactionResult, Strategy, Summary, SummaryNeeded
from turnlog.compaction.request import CompactionRequest, EventSequence, EventsNeededError
from turnlog.compaction.triggers import Trigger
from turnlog.errors import InvalidValueError, SessionNotFoundError, VersionConflictError
from turnlog.log.event_filter import EventFilter
from turnlog.log.tally import Tally
from turnlog.service.calling import call_async
from turnlog.storage.protocol import AsyncSessionRepository

_VIEW = EventFilter(active_view=True)
#: Sessions whose sums are remembered.
_MOST_REMEMBERED = 4_096
#: Appends that may overtake one compaction before it stands down (C-7).
_MOST_OVERTAKINGS = 5
#: A failed attempt is repeated when the view has grown by a fifth.
_GROWTH = 6 / 5

V = TypeVar("V")


class _Refusal(Struct, frozen=True):
    """Why the last attempt came to nothing, and how large the view was."""

    log: str
    tokens: int
    reason: str


class AsyncCompactor:
    """The compactions of one service: one at a time for each session, with what is remembered of the last ones."""

    def __init__(self, repository: AsyncSessionRepository) -> None:
        self._repository = repository
        self._tallies: dict[str, Tally] = {}
        self._refusals: dict[str, _Refusal] = {}
        self._running: set[str] = set()
        self._lock = threading.Lock()

    async def compact(
        self, session_id: str, strategy: Strategy, trigger: Trigger, *, dry_run: bool
    ) -> CompactionResult:
        """See ``AsyncSessionService.compact``."""
        with self._lock:
            if session_id in self._running:
                return _unchanged("another compaction of this session is running")
            self._running.add(session_id)
        try:
            return await self._compact(session_id, strategy, trigger, dry_run=dry_run)
        finally:
            with self._lock:
                self._running.discard(session_id)

    async def _compact(
        self, session_id: str, strategy: Strategy, trigger: Trigger, *, dry_run: bool
    ) -> CompactionResult:
        tally = await self._tally(session_id)
        if not await self._is_due(session_id, trigger, tally):
            return _unchanged("the trigger did not fire")
        request = self._request(session_id, tally, await self._view(session_id, tally))
        plan = await self._decided(request, strategy, self._why_no_summary(tally, session_id))
        if plan.reason:
            return self._refused(tally, request, plan)
        drafted = draft(request, plan)
        if not drafted.shrinks:
            why = f"the view would not shrink: {drafted.tokens_before} tokens to {drafted.tokens_after}"
            return self._refused(
                tally, request, CompactionPlan(strategy=plan.strategy, summary=plan.summary, reason=why)
            )
        return drafted.result(None) if dry_run else await self._landed(tally, drafted)

    async def _tally(self, session_id: str) -> Tally:
        tally = await self._repository.tally(session_id, known=self._tallies.get(session_id))
        if tally is None:
            raise SessionNotFoundError(session_id)
        _remember(self._tallies, session_id, tally)
        return tally

    async def _is_due(self, session_id: str, trigger: Trigger, tally: Tally) -> bool:
        try:
            return bool(trigger(self._request(session_id, tally, None)))
        except EventsNeededError:
            return bool(trigger(self._request(session_id, tally, await self._view(session_id, tally))))

    async def _view(self, session_id: str, tally: Tally) -> EventSequence:
        return tuple(await self._repository.events(session_id, _VIEW, as_of=tally.version))

    def _request(self, session_id: str, tally: Tally, events: EventSequence | None) -> CompactionRequest:
        return CompactionRequest(
            session_id=session_id,
            version=tally.version,
            boundary=tally.boundary,
            turns=tally.turns,
            tokens=tally.tokens,
            counter=self._repository.token_counter,
            events=events,
        )

    def _why_no_summary(self, tally: Tally, session_id: str) -> str:
        """Why none is asked for now: the last came to nothing, and the view has not grown by a fifth since (C-6)."""
        refusal = self._refusals.get(session_id)
        if refusal is None or refusal.log != tally.log or tally.tokens >= refusal.tokens * _GROWTH:
            return ""
        return f"{refusal.reason} (tried before, at {refusal.tokens} tokens)"

    async def _decided(self, request: CompactionRequest, strategy: Strategy, no_summary: str) -> CompactionPlan:
        """What the strategy decides, with the summaries that it asks for; a plain window needs none."""
        outcome = strategy(request)
        while isinstance(outcome, SummaryNeeded):
            if no_summary:
                return CompactionPlan(strategy="summary", reason=no_summary)
            try:
                summary = _as_summary(await call_async(outcome.summarize, outcome.request))
            except Exception as error:  # noqa: BLE001 - whatever a user's summariser raises changes nothing (C-6)
                reason = f"the summary failed: {type(error).__name__}: {error}"
                return CompactionPlan(strategy="summary", reason=reason, summary=Summary(""))
            outcome = outcome.resume(summary)
        if not isinstance(outcome, CompactionPlan):
            raise InvalidValueError(f"a strategy returns a CompactionPlan or SummaryNeeded, not {outcome!r}")
        return outcome

    def _refused(self, tally: Tally, request: CompactionRequest, plan: CompactionPlan) -> CompactionResult:
        """Nothing changes; an attempt that cost a summary is not repeated until the view has grown."""
        if plan.summary is not None:
            _remember(self._refusals, request.session_id, _Refusal(tally.log, tally.tokens, plan.reason))
        spent = plan.summary or Summary("")
        return CompactionResult(is_unchanged=True, reason=plan.reason, model=spent.model, usage=spent.usage)

    async def _landed(self, tally: Tally, drafted: Draft) -> CompactionResult:
        """Write it behind the newest version, with the same summary however often appends overtake it."""
        version = tally.version
        for _ in range(_MOST_OVERTAKINGS + 1):
            try:
                batch = batch_at(drafted, version)
                stored = await self._repository.append(drafted.session_id, batch, expected_version=version)
            except VersionConflictError:
                now = await self._tally(drafted.session_id)
                if now.log != tally.log or now.boundary != tally.boundary:
                    return _unchanged("another compaction, a clear or a rewind came first")
                version = now.version
            else:
                self._refusals.pop(drafted.session_id, None)
                return drafted.result(stored.events[0])
        return _unchanged(f"appends have overtaken it {_MOST_OVERTAKINGS + 1} times")


def _unchanged(reason: str) -> CompactionResult:
    return CompactionResult(is_unchanged=True, reason=reason)


def _as_summary(value: object) -> Summary:
    if isinstance(value, Summary):
        return value
    if isinstance(value, str):
        return Summary(value)
    raise InvalidValueError(f"a summariser returns a str or a Summary, not {type(value).__name__}")


def _remember(held: dict[str, V], session_id: str, value: V) -> None:
    held.pop(session_id, None)
    while len(held) >= _MOST_REMEMBERED:
        held.pop(next(iter(held)), None)
    held[session_id] = value
