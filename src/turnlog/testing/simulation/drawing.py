"""Drawing what callers do, from what the store holds then: mostly sensible, often too late, sometimes wrong."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any, Final, TypeVar

from turnlog.log.event_filter import EventFilter
from turnlog.log.events import EventMetadata, EventType, SessionEvent
from turnlog.log.messages import AssistantMessage, Message, MessageType, SystemMessage, UserMessage
from turnlog.log.session import Session, SessionAttributes
from turnlog.log.tokens import EstimatedTokens, TokenCounter
from turnlog.log.view import Boundary, ranges_of
from turnlog.storage.changes import SessionChange
from turnlog.storage.protocol import SessionRepository, Turn
from turnlog.testing import factories
from turnlog.testing.clocks import START, FixedClock
from turnlog.testing.simulation.operations import Kind, Operation
from turnlog.testing.simulation.oracle import Oracle

T = TypeVar("T")

#: Sessions that end by deletion alone; the history checker follows them.
LASTING: Final = ("a", "b")
#: Sessions with an expiry, and those that are copied into.
MORTAL: Final = ("m", "n")
COPIES: Final = ("x", "y")

_PRINCIPAL: Final = "p"
_LIVES: Final = (timedelta(seconds=8), timedelta(seconds=60))
_LEASES: Final = (timedelta(seconds=20), timedelta(seconds=60))
_FILTERS: Final = (
    EventFilter.active(),
    EventFilter.active().merge(EventFilter.last(2)),
    EventFilter.last(3),
    EventFilter.real_only(),
    EventFilter.for_branch("sub.agent"),
    EventFilter.for_branch(None).replace(active_view=True),
    EventFilter(page=1, page_size=3),
    EventFilter(message_types={MessageType.USER}, window=EventFilter.last(1).window),
    EventFilter(since=START + timedelta(seconds=2), until=START + timedelta(seconds=5)),
    EventFilter(after=2, before=9, active_view=True),
    EventFilter.keyword_search("word 1"),
    EventFilter(event_types={EventType.COMPACTION, factories.PROGRESS}),
)


class Words:
    """A token counter that is not the store's own."""

    name = "words"

    def count(self, text: str) -> int:
        """How many words there are."""
        return len(text.split())


class Drawing:
    """Draws operations; ``oracle`` says what there is to act on."""

    def __init__(self, random: Random, oracle: Oracle, clock: FixedClock) -> None:
        self._random = random
        self._oracle = oracle
        self._clock = clock
        self._made = 0
        self._caller = ""
        self._offered: list[tuple[SessionEvent, ...]] = []
        chances: dict[Callable[[], Operation], int] = {
            self._append: 30,
            self._append_again: 10,
            self._create: 6,
            self._delete: 3,
            self._update: 5,
            self._hold: 10,
            self._restore: 3,
            self._fork: 3,
            self._sweep: 7,
            self._read_log: 12,
            self._read_filtered: 10,
            self._look_up: 6,
        }
        self._draws, self._weights = tuple(chances), tuple(chances.values())

    def operation(self, caller: str) -> Operation:
        """What the caller does next."""
        self._caller = caller
        return self._random.choices(self._draws, self._weights)[0]()

    def first(self, number: int) -> Operation:
        """What the caller of that number does first: most make a session."""
        return self._create((LASTING + MORTAL)[number % 4])

    def _create(self, session_id: str | None = None) -> Operation:
        """A session made; mostly of one that is gone or has expired."""
        made = self._session(session_id or self._missing(LASTING + MORTAL))
        kind: Kind = "create" if made.id in LASTING else "other"
        return Operation(kind, made.id, f"create {made.id}", lambda store: store.create(made))

    def _append(self) -> Operation:
        session = self._known(LASTING * 2 + MORTAL + COPIES)
        version = self._oracle.version(session)
        expected = self._one_of((None, None, None, version, version, max(version - 1, 0), version + 1))
        turn = self._one_of((None,) * 4 + (self._turn(), self._turn(take=True)))
        return self._appending(session, tuple(self._batch(session, version)), expected, turn)

    def _appending(
        self, session: str, batch: tuple[SessionEvent, ...], expected: int | None, turn: Turn | None
    ) -> Operation:
        ids = " ".join(event.id[:8] for event in batch)
        text = f"append {ids} to {session}, expected {expected}, turn {turn and (turn.token, turn.take)}"
        call = partial(_append_to, session=session, batch=batch, expected=expected, turn=turn)
        kind: Kind = "append" if session in LASTING else "other"
        self._offered.append(batch)
        return Operation(kind, session, text, call, batch=batch, expected_version=expected)

    def _append_again(self) -> Operation:
        """A replay; or part of a batch, a batch with more, or with other content under a known id."""
        if not self._offered:
            return self._append()
        batch = self._one_of(self._offered)
        session = batch[0].session_id
        match self._random.randrange(8):
            case 0:
                batch = batch[: max(1, len(batch) - 1)]
            case 1 if not batch[0].is_boundary:
                batch = (*batch, self._event(session, UserMessage("more")))
            case 2 if batch[0].is_message:
                batch = (batch[0].replace(message=UserMessage("other")), *batch[1:])
            case _:
                pass
        expected = self._one_of((None, None, self._oracle.version(session), 0))
        return self._appending(session, batch, expected, None)

    def _delete(self) -> Operation:
        session = self._known(LASTING + MORTAL + COPIES)
        kind: Kind = "delete" if session in LASTING else "other"
        return Operation(kind, session, f"delete {session}", lambda store: store.delete(session))

    def _update(self) -> Operation:
        session = self._known(LASTING + MORTAL)
        number = self._next()
        change = self._one_of(
            (
                SessionChange(set={self._caller: number}),
                SessionChange(set={"last": self._caller}, principal=self._one_of((_PRINCIPAL, "q", None))),
                SessionChange(metadata={"only": number}),
            )
        )
        return Operation("other", session, f"update {session} {number}", lambda store: store.update(session, change))

    def _hold(self) -> Operation:
        session = self._known(LASTING + MORTAL * 2)
        turn = self._turn()
        match self._random.randrange(4):
            case 0 | 1:
                return Operation("other", session, f"take {session}", lambda store: store.take_turn(session, turn))
            case 2:
                return Operation("other", session, f"renew {session}", lambda store: store.renew_turn(session, turn))
            case _:
                text = f"release {session}"
                return Operation("other", session, text, lambda store: store.release_turn(session, turn.token))

    def _restore(self) -> Operation:
        made = self._session(self._one_of(COPIES))
        version, batches = self._oracle.version(made.id), list[tuple[SessionEvent, ...]]()
        mine = [batch for batch in self._offered if batch[0].session_id == made.id and not batch[0].is_boundary]
        if mine and self._random.random() < 0.5:
            batches.append(self._one_of(mine))
        for _ in range(self._random.randrange(1, 3)):
            batches.append(tuple(self._messages(made.id)))
            self._offered.append(batches[-1])
        text = f"restore {made.id} with {len(batches)} batches at {version}"
        return Operation("other", made.id, text, lambda store: store.restore(made, iter(batches)))

    def _fork(self) -> Operation:
        source, made = self._known(LASTING + MORTAL + COPIES), self._session(self._one_of(COPIES))
        at = self._one_of((None, self._random.randint(0, self._oracle.version(source) + 1)))
        text = f"fork {source} at {at} into {made.id}"
        return Operation("other", made.id, text, lambda store: store.fork(source, made, at=at))

    def _sweep(self) -> Operation:
        before = self._clock.now + timedelta(seconds=self._one_of((0, -30)))
        text = f"sweep {before:%H:%M:%S}"
        return Operation("sweep", "", text, lambda store: store.delete_expired(before), before=before)

    def _read_log(self) -> Operation:
        session = self._known(LASTING * 2 + MORTAL + COPIES)
        match self._random.randrange(4):
            case 0:
                return _read(session, f"version of {session}", lambda store: store.version(session), window=0)
            case 1:
                window = EventFilter.last(3, whole_turns=False)
                text = f"last 3 of {session}"
                return _read(session, text, lambda store: store.events(session, window), window=3)
            case 2:
                size = self._random.randint(1, 4)
                walk = partial(_walked, session=session, size=size)
                return _read(session, f"walk through {session} by {size}", walk, window="whole")
            case _:
                return _read(session, f"events of {session}", lambda store: store.events(session), window="whole")

    def _read_filtered(self) -> Operation:
        session, filter_ = self._known(LASTING + MORTAL + COPIES), self._one_of(_FILTERS)
        version = self._oracle.version(session)
        as_of = self._one_of((None, None, None, self._random.randint(0, version + 1)))
        place = f"filter {_FILTERS.index(filter_)} of {session} as of {as_of}"
        if self._random.random() < 0.2:
            return _read(session, f"count {place}", lambda store: store.count(session, filter_, as_of=as_of))
        ordered = not filter_.active_view and as_of is None
        read = partial(_events, session=session, filter_=filter_, as_of=as_of)
        return _read(session, place, read, window="filtered" if ordered else None)

    def _look_up(self) -> Operation:
        session = self._known(LASTING + MORTAL + COPIES)
        match self._random.randrange(5):
            case 0:
                return _read(session, f"find {session}", lambda store: store.find(session))
            case 1:
                return _read("", "list", lambda store: store.list(principal=_PRINCIPAL))
            case 2:
                counter: TokenCounter = EstimatedTokens() if self._random.random() < 0.5 else Words()
                text = f"tally {session} by {counter.name}"
                return _read(session, text, lambda store: store.tally(session, counter))
            case 3:
                return _read(
                    session,
                    f"batches of {session}",
                    lambda store: [len(batch) for batch in store.iter_batches(session)],
                )
            case _:
                ids = [event.id for batch in self._offered[-3:] for event in batch] or ["none"]
                return _read(session, f"find ids in {session}", lambda store: store.find_events(session, event_ids=ids))

    def _session(self, session_id: str) -> Session:
        fields: dict[str, Any] = {}
        if session_id in MORTAL:
            life = self._one_of(_LIVES)
            fields["expires_at"] = self._clock.now + life
            if self._random.random() < 0.7:
                fields["time_to_live"] = life
        elif session_id in COPIES and self._random.random() < 0.2:
            # Copies keep the expiry of what they are made from, which may be over.
            fields["expires_at"] = self._clock.now + self._one_of((timedelta(), timedelta(seconds=-5), _LIVES[0]))
        owner = {SessionAttributes.PRINCIPAL_NAME: _PRINCIPAL, "number": self._next()}
        created = START + timedelta(seconds=self._random.randrange(3))
        return Session(id=session_id, created_at=created, metadata=owner, **fields)

    def _batch(self, session: str, version: int) -> list[SessionEvent]:
        chance = self._random.random()
        if chance < 0.1 and version:
            return [self._boundary(session, view=(), end=version + 1, strategy="clear")]
        if chance < 0.22 and version:
            return self._summary(session, version)
        if chance < 0.3:
            return [self._event(session, None, type=factories.PROGRESS, payload={"n": self._next()})]
        return self._messages(session)

    def _messages(self, session: str) -> list[SessionEvent]:
        run = self._one_of((None, None, "run-1"))
        metadata = {} if run is None else {EventMetadata.RUN_ID: run}
        opening = self._event(session, UserMessage(f"word {self._next()}"), metadata=metadata)
        reply = self._event(session, AssistantMessage("answer"))
        branched = self._event(session, UserMessage("aside"), branch=self._one_of(("sub", "sub.agent", "other")))
        system = self._event(session, SystemMessage("rules"))
        whole = [opening, branched, reply]
        return self._one_of([[opening], [opening, reply], [reply], whole, [system], [branched]])

    def _summary(self, session: str, version: int) -> list[SessionEvent]:
        seen = self._oracle.view(session)
        kept = seen[self._random.randrange(len(seen) + 1) :]
        view = ((version + 2, version + 3), *ranges_of(kept))
        boundary = self._boundary(session, view=view, end=version + 3, strategy="summary")
        made = {EventMetadata.SYNTHETIC: True, EventMetadata.BOUNDARY: boundary.id, EventMetadata.STRATEGY: "summary"}
        prompt = self._event(session, UserMessage("so far?"), metadata=made)
        return [boundary, prompt, self._event(session, AssistantMessage("this"), metadata=made)]

    def _boundary(self, session: str, **fields: Any) -> SessionEvent:
        payload = Boundary(**fields).payload()
        return self._event(session, None, type=EventType.COMPACTION, payload=payload)

    def _event(self, session: str, message: Message | None, **fields: Any) -> SessionEvent:
        # Half of the ids are stored as text, half as the sixteen bytes of a UUID; times need not rise.
        number = self._next()
        made = f"e{number}" if number % 2 else str(uuid.UUID(int=self._random.getrandbits(128)))
        time = START + timedelta(seconds=self._random.randrange(10))
        return SessionEvent(session_id=session, id=made, message=message, timestamp=time, **fields)

    def _turn(self, *, take: bool = False) -> Turn:
        return Turn(f"turn of {self._caller}", self._one_of(_LEASES), take)

    def _next(self) -> int:
        self._made += 1
        return self._made

    def _known(self, sessions: Sequence[str]) -> str:
        """Mostly one that is there."""
        known = [session for session in sessions if self._oracle.knows(session, self._clock.now)]
        return self._one_of(known if known and self._random.random() < 0.95 else sessions)

    def _missing(self, sessions: Sequence[str]) -> str:
        """Mostly one that is not."""
        missing = [session for session in sessions if not self._oracle.knows(session, self._clock.now)]
        return self._one_of(missing if missing and self._random.random() < 0.8 else sessions)

    def _one_of(self, choices: Sequence[T]) -> T:
        return choices[self._random.randrange(len(choices))]


def _read(session: str, text: str, call: Callable[[SessionRepository], Any], window: Any = None) -> Operation:
    return Operation("read", session, text, call, reads=True, window=window if session in LASTING else None)


def _append_to(
    store: SessionRepository, session: str, batch: tuple[SessionEvent, ...], expected: int | None, turn: Turn | None
) -> Any:
    return store.append(session, batch, expected_version=expected, turn=turn)


def _events(store: SessionRepository, session: str, filter_: EventFilter, as_of: int | None) -> Any:
    return store.events(session, filter_, as_of=as_of)


def _walked(store: SessionRepository, session: str, size: int) -> Any:
    return [event for part in store.iter_events(session, batch_size=size) for event in part]
