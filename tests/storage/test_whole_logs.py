"""The store over a keeper: it asks no more of a keeper than the port says, and answers as the other stores do."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, MutableMapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import Lock, Thread, get_ident
from typing import Any, Final, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.errors import (
    AppendOutcomeUnknownError,
    InvalidBatchError,
    InvalidValueError,
    StoreBusyError,
    StoreUnavailableError,
    TurnlogError,
)
from turnlog.log.events import SessionEvent
from turnlog.log.queries import EventQuery
from turnlog.log.session import Session
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.changes import SessionChange
from turnlog.storage.opening import open_store
from turnlog.storage.protocol import Durability, SessionRepository, Turn
from turnlog.storage.records import SessionRecord, decode_record, encode_record
from turnlog.storage.whole_logs import WholeLogRepository
from turnlog.testing.clocks import START, FixedClock
from turnlog.testing.contract import INDEXED_METADATA, StoreContract
from turnlog.testing.contract.exactness import exactly
from turnlog.testing.dict_store import DictStore
from turnlog.testing.factories import assistant, own, session, summary, user
from turnlog.testing.simulation.operations import Refusal

Ask: TypeAlias = Callable[[SessionRepository], Any]
IDS: Final = ("s", "t")
HOUR: Final = timedelta(hours=1)


class StrictRecords(MutableMapping[str, SessionRecord]):
    """The records of one transaction, which is over once something is written."""

    def __init__(self, kept: dict[str, bytes]) -> None:
        self.kept = kept
        self.thread = get_ident()
        self.is_set = self.is_deleted = self.is_over = False

    def _ask(self) -> dict[str, bytes]:
        assert not self.is_over
        assert not self.is_set, "the write is the last step"
        assert get_ident() == self.thread
        return self.kept

    def __getitem__(self, session_id: str) -> SessionRecord:
        return decode_record(self._ask()[session_id])

    def __setitem__(self, session_id: str, record: SessionRecord) -> None:
        assert not self.is_deleted
        self._ask()[session_id] = encode_record(record)
        self.is_set = True

    def __delitem__(self, session_id: str) -> None:
        del self._ask()[session_id]
        self.is_deleted = True

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._ask()))

    def __len__(self) -> int:
        return len(self._ask())


class StrictKeeper:
    """Keeps bytes, and sees to it that it is used as the port says."""

    durability = Durability(None, None, "kept for a test")

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}
        self._lock = Lock()
        self._serial = 0
        self._records: StrictRecords | None = None
        self.is_closed = False

    @contextmanager
    def transaction(self) -> Generator[MutableMapping[str, SessionRecord]]:
        assert not self.is_closed
        assert self._lock.acquire(blocking=False), "one thread at a time, and no transaction in another"
        before = dict(self._kept)
        self._records = StrictRecords(self._kept)
        try:
            yield self._records
        except BaseException:
            assert self._kept == before, "an error leaves nothing to undo"
            raise
        finally:
            self._records.is_over = True
            self._records = None
            self._lock.release()

    def next_serial(self) -> int:
        assert self._records is not None
        assert not self._records.is_set
        self._serial += 3
        return self._serial

    def close(self) -> None:
        assert not self.is_closed, "closed once"
        self.is_closed = True


class TestStrictKeeper(StoreContract):
    @pytest.fixture
    def repository(self, clock: FixedClock) -> Iterator[SessionRepository]:
        with WholeLogRepository(StrictKeeper(), clock, INDEXED_METADATA) as store:
            yield store


class FailingKeeper(StrictKeeper):
    """Fails to begin, or to end, when it is told to."""

    begins: Exception | None = None
    ends: Exception | None = None

    @contextmanager
    def transaction(self) -> Generator[MutableMapping[str, SessionRecord]]:
        if self.begins:
            raise self.begins
        with super().transaction() as records:
            yield records
        if self.ends:
            raise self.ends


def test_an_append_whose_end_is_not_known_says_so() -> None:
    """R-14: and its events may be appended again."""
    keeper = FailingKeeper()
    store = WholeLogRepository(keeper)
    store.create(session())
    keeper.ends = StoreUnavailableError("no answer")
    with pytest.raises(AppendOutcomeUnknownError) as caught:
        store.append("s", [user(1), user(2)])
    assert (caught.value.session_id, caught.value.event_ids) == ("s", ("e1", "e2"))
    keeper.ends = None
    assert store.append("s", [user(1), user(2)]).is_replay


@pytest.mark.parametrize("error", [StoreUnavailableError("away"), StoreBusyError("busy")])
def test_an_append_that_did_not_begin_has_failed(error: Exception) -> None:
    keeper = FailingKeeper()
    store = WholeLogRepository(keeper)
    store.create(session())
    keeper.begins = error
    with pytest.raises(type(error)) as caught:
        store.append("s", [user(1)])
    assert caught.value is error
    keeper.begins = None
    assert store.version("s") == 0


def test_a_replay_is_told_though_the_end_is_not_known() -> None:
    """It writes nothing, so there is nothing to be in doubt about but the answer."""
    keeper = FailingKeeper()
    store = WholeLogRepository(keeper)
    store.create(session())
    store.append("s", [user(1)])
    keeper.ends = StoreUnavailableError("no answer")
    with pytest.raises(StoreUnavailableError):
        store.append("s", [user(1)])


def test_what_is_restored_may_come_from_the_store_itself() -> None:
    store = WholeLogRepository(StrictKeeper())
    store.create(session())
    store.append("s", [user(1), assistant(2)])
    ids = ["e2", "e1"]
    batches = ([event.replace(session_id="t") for event in store.find_events("s", event_ids=[one])] for one in ids)
    assert store.restore(session("t"), batches).stored == 2
    assert [event.id for event in store.events("t")] == ids


def test_close_waits_for_what_is_under_way() -> None:
    """The keeper's files are not closed under a thread that uses them."""
    keeper = StrictKeeper()

    def asked_in_a_transaction() -> datetime:
        closer.start()
        closer.join(0.1)
        assert not keeper.is_closed
        return START

    store = WholeLogRepository(keeper, clock=asked_in_a_transaction)
    closer = Thread(target=store.close)
    assert store.find("s") is None
    closer.join()
    assert keeper.is_closed


@pytest.fixture(params=["memory", "sqlite", "keeper"])
def store(request: pytest.FixtureRequest, clock: FixedClock) -> Iterator[SessionRepository]:
    """Every kind of store: what follows is the same in all of them."""
    stores: dict[str, Callable[[], SessionRepository]] = {
        "memory": lambda: open_store("memory:", clock=clock),
        "sqlite": lambda: open_store("sqlite::memory:", clock=clock),
        "keeper": lambda: WholeLogRepository(StrictKeeper(), clock),
    }
    with stores[request.param]() as opened:
        yield opened


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


def test_delete_takes_what_remains_of_an_expired_session(store: SessionRepository, clock: FixedClock) -> None:
    store.create(session(expires_at=START + HOUR))
    clock.advance(HOUR)
    assert not store.delete("s")
    assert store.delete_expired(clock.now) == 0


def test_a_replay_is_told_in_the_order_of_its_batch(store: SessionRepository) -> None:
    store.create(session())
    store.append("s", [user(1), user(2)])
    again = store.append("s", [user(2), user(1)])
    assert [event.position for event in again.events] == [2, 1]


def test_an_id_that_comes_twice_in_a_restore_is_refused(store: SessionRepository) -> None:
    """Also with the same content: what is restored is one log."""
    with pytest.raises(InvalidBatchError):
        store.restore(session(), [[user(1)], [user(1)]])
    assert store.find("s") is None


@pytest.mark.parametrize("cursor", ["", "x", 7, b"", "2026-01-01T00:00:00.000000+00:00 1"])
def test_what_is_no_cursor_is_refused(cursor: Any) -> None:
    with pytest.raises(InvalidValueError, match="no cursor"):
        DictStore().list(cursor=cursor)


def questions() -> st.SearchStrategy[tuple[str, Ask]]:
    """Everything that may be asked of a store, from a vocabulary so small that the answers depend on one another."""
    ids = st.sampled_from(IDS)
    versions = st.none() | st.integers(0, 5)
    return st.one_of(
        st.builds(lambda made: ("create", lambda store: store.create(made)), sessions()),
        st.builds(
            lambda id_, numbers, text, version, turn: (
                f"append {numbers}",
                lambda store: store.append(id_, events(id_, numbers, text), expected_version=version, turn=turn),
            ),
            ids,
            numbers(),
            st.sampled_from(("question", "another")),
            versions,
            st.none() | turns(),
        ),
        st.builds(
            lambda id_, first: (
                "summarise",
                lambda store: store.append(id_, summary(first, [], session_id=id_)),
            ),
            ids,
            st.integers(1, 4),
        ),
        st.builds(
            lambda made, batches: (
                f"restore {batches}",
                lambda store: restored(store, made, [events(made.id, batch) for batch in batches]),
            ),
            sessions(),
            st.lists(numbers(), max_size=3),
        ),
        st.builds(
            lambda id_, target, at: ("fork", lambda store: store.fork(id_, target, at=at)), ids, sessions(), versions
        ),
        st.builds(lambda id_, change: ("update", lambda store: store.update(id_, change)), ids, changes()),
        st.builds(lambda id_: ("delete", lambda store: store.delete(id_)), ids),
        st.builds(lambda hours: ("sweep", lambda store: store.delete_expired(START + hours * HOUR)), st.integers(0, 3)),
        st.builds(lambda id_, turn: ("take", lambda store: store.take_turn(id_, turn)), ids, turns()),
        st.builds(lambda id_, turn: ("renew", lambda store: store.renew_turn(id_, turn)), ids, turns()),
        st.builds(lambda id_, turn: ("release", lambda store: store.release_turn(id_, turn.token)), ids, turns()),
        st.builds(
            lambda id_, as_of: ("as of", lambda store: list(store.iter_batches(id_, as_of=as_of))), ids, versions
        ),
        st.builds(
            lambda id_, numbers: (
                "by id",
                lambda store: store.find_events(id_, event_ids=[f"e{number}" for number in numbers]),
            ),
            ids,
            numbers(),
        ),
    )


def sessions() -> st.SearchStrategy[Session]:
    """Sessions that live for ever, for an hour, or slide; ``channel`` is indexed and may be no name."""
    lives: list[dict[str, Any]] = [
        {},
        {"expires_at": START + HOUR},
        {"expires_at": START + HOUR, "time_to_live": HOUR},
    ]
    return st.builds(
        lambda id_, life, channel: session(id_, metadata={"channel": channel}, **life),
        st.sampled_from(IDS),
        st.sampled_from(lives),
        st.sampled_from(("web", "mail", 7)),
    )


def changes() -> st.SearchStrategy[SessionChange]:
    return st.sampled_from(
        [
            SessionChange(principal="ann"),
            SessionChange(set={"channel": "web"}),
            SessionChange(set={"channel": ""}),
            SessionChange(time_to_live=HOUR),
            SessionChange(expires_at=None),
        ]
    )


def turns() -> st.SearchStrategy[Turn]:
    return st.builds(Turn, st.sampled_from("xy"), st.sampled_from([HOUR, HOUR / 4]), st.booleans())


def numbers() -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(1, 5), max_size=3)


def events(session_id: str, numbers: list[int], text: str = "question") -> list[SessionEvent]:
    """The even ones are of a type of their own."""
    return [
        user(number, text, session_id=session_id) if number % 2 else own(number, session_id=session_id)
        for number in numbers
    ]


def restored(store: SessionRepository, made: Session, batches: list[list[SessionEvent]]) -> Any:
    """What came of a restore; which of several faults is told is nowhere promised."""
    try:
        return store.restore(made, batches)
    except TurnlogError:
        return "refused"


def told(store: SessionRepository, ask: Ask) -> Any:
    """The answer as it is compared."""
    try:
        return exactly(ask(store))
    except TurnlogError as error:
        return Refusal.of(error)


def everything(store: SessionRepository) -> Any:
    """All that can be seen of a store."""
    tallies = [store.tally(id_) for id_ in IDS]
    return [
        list(walk(store)),
        store.list(newest_first=True).sessions,
        store.list(principal="ann").sessions,
        store.find_by_metadata("channel", "web").sessions,
        [store.search(id_, EventQuery.keyword("question")) for id_ in IDS],
        [store.version(id_) for id_ in IDS],
        [list(store.iter_batches(id_)) for id_ in IDS],
        [tally and (tally.version, tally.boundary, tally.turns, tally.tokens) for tally in tallies],
    ]


def walk(store: SessionRepository) -> Iterator[Session]:
    """Every session, one a page."""
    page = store.list(limit=1)
    yield from page
    while page.cursor:
        page = store.list(limit=1, cursor=page.cursor)
        yield from page


@given(st.lists(st.tuples(st.sampled_from([0, 0, 1, 3600]), questions()), max_size=25))
def test_it_answers_as_the_memory_store_does(asked: list[tuple[int, tuple[str, Ask]]]) -> None:
    clock = FixedClock()
    counter = EstimatedTokens()
    memory = open_store("memory:", clock=clock, indexed_metadata=INDEXED_METADATA, token_counter=counter)
    store = WholeLogRepository(StrictKeeper(), clock, INDEXED_METADATA, counter)
    for pause, (what, ask) in asked:
        clock.advance(pause)
        assert told(store, ask) == told(memory, ask), what
    assert told(store, everything) == told(memory, everything)
