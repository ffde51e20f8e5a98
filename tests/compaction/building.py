"""Requests over views held as lists, and services whose logs can be looked into."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from turnlog import EventFilter, SessionEvent, SessionService
from turnlog.compaction import CompactionRequest, SummaryRequest
from turnlog.log.tally import tally_of
from turnlog.log.tokens import EstimatedTokens
from turnlog.testing.factories import SESSION_ID, session

COUNTER = EstimatedTokens()


def request_of(log: Sequence[SessionEvent]) -> CompactionRequest:
    """The request about the view of a whole log."""
    placed = EventFilter().apply(log)
    view = EventFilter(active_view=True).apply(placed)
    tally = tally_of("log", placed, view, COUNTER)
    return CompactionRequest(
        session_id=SESSION_ID,
        version=tally.version,
        boundary=tally.boundary,
        turns=tally.turns,
        tokens=tally.tokens,
        counter=COUNTER,
        events=tuple(view),
    )


def service_with(url: str, batches: Sequence[Sequence[SessionEvent]]) -> SessionService:
    """A service on a store whose one session holds these batches."""
    service = SessionService.open(url, allow_system_messages=True)
    service.repository.restore(session(), batches)
    return service


def positions(events: Sequence[SessionEvent]) -> list[int]:
    return [event.position or 0 for event in events]


class Summariser:
    """Counts its calls, keeps their requests, and answers as it is told (by default in few words)."""

    def __init__(self, answer: Callable[[SummaryRequest], str] | None = None) -> None:
        self.requests: list[SummaryRequest] = []
        self._answer = answer

    def __call__(self, request: SummaryRequest) -> str:
        self.requests.append(request)
        return f"Told {len(self.requests)}." if self._answer is None else self._answer(request)
