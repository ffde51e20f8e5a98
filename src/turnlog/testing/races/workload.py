"""What a worker in a race does next: decided from its seed and the answers so far, without touching a store."""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from datetime import timedelta
from typing import Final, TypeAlias

from msgspec import Struct

from turnlog.log.event_filter import EventFilter
from turnlog.log.events import EventType, SessionEvent
from turnlog.log.messages import AssistantMessage, MessageType, UserMessage
from turnlog.testing.clocks import START
from turnlog.testing.history import Conflict, Failed, Ok, Outcome, Seen, Unknown, Window

_NOTE: Final = EventType.of("RACE.NOTE")
_LONGEST_BATCH: Final = 5
#: After so many conflicts in a row a batch is appended whatever the version.
_MOST_CONFLICTS: Final = 3

#: What a read asks for, as a history names it; 0 is a look at the version alone.
_READS: Final[tuple[tuple[Window, EventFilter | None], ...]] = (
    (0, None),
    (1, EventFilter.last(1, whole_turns=False)),
    (5, EventFilter.last(5)),
    (20, EventFilter.last(20, whole_turns=False)),
    ("filtered", EventFilter(message_types={MessageType.ASSISTANT}, last=5, whole_turns=False)),
    ("filtered", EventFilter(event_types={_NOTE}, branch="race", last=3)),
)
#: How many of the events of a race are of which sort; the branch is only ever that of notes.
_SORTS: Final = 4
#: What a worker does for its next append, and how often in a hundred times.
_CHOICES: Final = {"single": 50, "batch": 16, "expecting": 18, "shared": 10, "altered": 3, "partial": 3}
_RETRIES: Final = 0.12


class Workload(Struct, frozen=True, kw_only=True):
    """What one of several workers does.

    Args:
        worker: its number, from 0.
        workers: how many there are; all must be given the same sessions.
        sessions: the ids of the sessions, which exist.
        appends: it ends when so many appends of its own have been stored; replays, conflicts and refusals come on top.
        reads: how many reads there are for each call to append, about.
        seed: another seed is another race.
    """

    worker: int
    workers: int
    sessions: tuple[str, ...]
    appends: int = 1_000
    reads: float = 0.2
    seed: int = 0

    @property
    def name(self) -> str:
        """Names the worker in a history."""
        return f"worker-{self.worker}"


class AppendStep(Struct, frozen=True):
    """Append this batch; ``sure_to_fail`` where a store must refuse it."""

    session: str
    events: tuple[SessionEvent, ...]
    expected_version: int | None = None
    sure_to_fail: bool = False


class ReadStep(Struct, frozen=True):
    """Read through this filter, or, without one, ask for the version. ``window`` is its name in a history."""

    session: str
    window: Window
    filter: EventFilter | None


Step: TypeAlias = AppendStep | ReadStep
Steps: TypeAlias = Generator[Step, Outcome, None]


class RaceReport(Struct, frozen=True):
    """How a worker fared: appends stored, replays, conflicts, batches refused as they must be, and errors."""

    stored: int = 0
    replayed: int = 0
    conflicts: int = 0
    refused: int = 0
    errors: tuple[str, ...] = ()


def report_of(ended: Sequence[tuple[Step, Outcome]]) -> RaceReport:
    """The report on a worker's steps and how they ended."""
    appended = [outcome for step, outcome in ended if isinstance(step, AppendStep)]
    acknowledged = [outcome for outcome in appended if isinstance(outcome, Ok)]
    replayed = sum(outcome.replay for outcome in acknowledged)
    return RaceReport(
        stored=len(acknowledged) - replayed,
        replayed=replayed,
        conflicts=sum(isinstance(outcome, Conflict) for outcome in appended),
        refused=sum(isinstance(outcome, Failed) for outcome in appended),
        errors=tuple(outcome.reason for _, outcome in ended if isinstance(outcome, Unknown)),
    )


def steps(workload: Workload) -> Steps:
    """The worker's calls, one after the other; send in how each ended."""
    return _Worker(workload).steps()


class _Worker:
    """Where one worker has got to."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._random = random.Random(f"{workload.seed}/{workload.worker}")  # noqa: S311 - a repeatable race
        self._stored = 0
        self._made = 0
        self._shared = dict.fromkeys(workload.sessions, 0)
        self._version = dict.fromkeys(workload.sessions, 0)
        self._batches: list[AppendStep] = []

    def steps(self) -> Steps:
        while self._stored < self._workload.appends:
            session = self._random.choice(self._workload.sessions)
            yield from self._append(session)
            if self._batches and self._random.random() < _RETRIES:
                yield from self._retry()
            if self._random.random() < self._workload.reads:
                yield from self._read(session, *self._random.choice(_READS))
        yield from self._read(self._random.choice(self._workload.sessions), "whole", EventFilter.all())

    def _append(self, session: str) -> Steps:
        match self._random.choices(list(_CHOICES), list(_CHOICES.values()))[0]:
            case "single":
                yield from self._offer(session, self._fresh(session, 1))
            case "batch":
                yield from self._offer(session, self._fresh(session, self._random.randint(2, _LONGEST_BATCH)))
            case "expecting":
                yield from self._expecting(session, self._fresh(session, self._random.randint(1, 2)))
            case "shared":
                yield from self._offer(session, self._next_shared(session))
            case "altered":
                yield from self._alter()
            case _:
                yield from self._offer_partly()

    def _offer(self, session: str, batch: tuple[SessionEvent, ...], expected_version: int | None = None) -> Steps:
        step = AppendStep(session, batch, expected_version)
        outcome = yield step
        if isinstance(outcome, Ok):
            self._stored += not outcome.replay
            self._batches.append(step)
            self._version[session] = max(self._version[session], outcome.last)
        elif isinstance(outcome, Conflict):
            self._version[session] = outcome.actual

    def _expecting(self, session: str, batch: tuple[SessionEvent, ...]) -> Steps:
        for _ in range(_MOST_CONFLICTS):
            before = len(self._batches)
            yield from self._offer(session, batch, self._version[session])
            if len(self._batches) > before:
                return
        yield from self._offer(session, batch)

    def _retry(self) -> Steps:
        """The same again, as after a lost answer: whatever version it expects, it is a replay (R-4)."""
        again = self._random.choice(self._batches)
        expected = self._random.choice((None, 0, again.expected_version, self._version[again.session]))
        yield AppendStep(again.session, again.events, expected)

    def _alter(self) -> Steps:
        """A stored id with other content."""
        if self._batches:
            stored = self._random.choice(self._batches)
            altered = stored.events[-1].replace(type=EventType.MESSAGE, payload=None, message=UserMessage("altered"))
            yield AppendStep(stored.session, (*stored.events[:-1], altered), sure_to_fail=True)

    def _offer_partly(self) -> Steps:
        """A batch of which one event is stored and one is not."""
        if self._batches:
            stored = self._random.choice(self._batches)
            batch = [stored.events[0], *self._fresh(stored.session, 1)]
            self._random.shuffle(batch)
            yield AppendStep(stored.session, tuple(batch), sure_to_fail=True)

    def _read(self, session: str, window: Window, filter_: EventFilter | None) -> Steps:
        outcome = yield ReadStep(session, window, filter_)
        if isinstance(outcome, Seen) and outcome.version is not None:
            self._version[session] = outcome.version

    def _fresh(self, session: str, count: int) -> tuple[SessionEvent, ...]:
        first = self._made
        self._made += count
        ids = (f"{self._workload.worker}-{number}" for number in range(first, first + count))
        return tuple(_event(session, event_id, number) for number, event_id in enumerate(ids, first))

    def _next_shared(self, session: str) -> tuple[SessionEvent, ...]:
        """A batch that every worker offers, at about the same time: one stores it, for the others it is a replay."""
        number = self._shared[session]
        self._shared[session] += 1
        return tuple(_event(session, f"shared-{number}-{index}", number + index) for index in range(1 + number % 3))


def _event(session: str, event_id: str, number: int) -> SessionEvent:
    """The event of this id: always the same content."""
    sort = number % _SORTS
    note = sort == _SORTS - 1
    text = f"{event_id} says {'something ' * (number % 7)}"
    return SessionEvent(
        session_id=session,
        id=event_id,
        timestamp=START + timedelta(milliseconds=number),
        type=_NOTE if note else EventType.MESSAGE,
        payload={"text": text} if note else None,
        message=None if note else (UserMessage(text) if sort == 0 else AssistantMessage(text)),
        branch="race" if note else None,
    )
