"""The rule of turns stands in Python and, for an append in one statement, in SQL too: they are the same rule."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from itertools import count
from operator import methodcaller
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.postgres.comparing import SELECTS, Trio, trio
from tests.postgres.conftest import emptied
from turnlog.log.events import SessionEvent
from turnlog.log.messages import AssistantMessage, Message, SystemMessage, ToolMessage, ToolResult, UserMessage
from turnlog.log.turns import TurnState
from turnlog.storage.protocol import SessionRepository, Turn
from turnlog.storage.sql.drivers.postgres import PostgresDriver
from turnlog.testing import factories
from turnlog.testing.clocks import START

pytestmark = pytest.mark.store

#: What one step asks of every store; the event numbers go on counting.
Step: TypeAlias = Callable[[SessionRepository], Any]


class Databases(NamedTuple):
    trio: Trio
    url: str
    path: Path

    def agreed_rows(self) -> list[tuple[Any, ...]]:
        """The rows of session ``s``, which are the same in both databases: its head, then its events."""
        with psycopg.connect(self.url) as connection:
            on_server = [row for select in SELECTS for row in connection.execute(select.encode()).fetchall()]
        with closing(sqlite3.connect(self.path)) as connection:
            in_file = [row for select in SELECTS for row in connection.execute(select).fetchall()]
        assert on_server == in_file
        return on_server


@pytest.fixture(scope="module")
def databases(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    folder = tmp_path_factory.mktemp("turns")
    with trio(emptied(database), folder) as opened:
        yield Databases(opened, database, folder / "compared.db")


_MESSAGES: tuple[Message | None, ...] = (
    UserMessage("question"),
    UserMessage("and"),
    AssistantMessage("answer"),
    SystemMessage("rules"),
    ToolMessage((ToolResult("call", "found"),)),
    None,
)


class Offer(NamedTuple):
    """One event to append: its message (None: of an own type), branch, run, and the version it expects, from the log's.

    ``wait`` is how many seconds pass before it.
    """

    message: Message | None
    branch: str | None
    run: str | None
    behind: int | None
    wait: int

    def event(self, number: int) -> SessionEvent:
        place: dict[str, Any] = {"branch": self.branch, "run": self.run}
        if self.message is None:
            return factories.own(number, **place)
        return factories.event(number, self.message, **place)


def offers() -> st.SearchStrategy[Offer]:
    return st.builds(
        Offer,
        st.sampled_from(_MESSAGES),
        st.sampled_from((None, None, "a", "a.b")),
        st.sampled_from((None, "r1", "r2")),
        st.sampled_from((None, None, None, 0, 1)),
        st.sampled_from((0, 0, 1, 20, 61)),
    )


@given(offered=st.lists(offers(), max_size=12), minutes=st.sampled_from((None, 1, 2)), together=st.booleans())
def test_one_statement_places_events_as_the_rule_does(
    databases: Databases, offered: list[Offer], minutes: int | None, *, together: bool
) -> None:
    """V-5, R-7: ``TurnState.after`` folded over the log gives what each statement has stored, column by column."""
    stores, clock = databases.trio, databases.trio.clock
    stores.clear()
    life = None if minutes is None else timedelta(minutes=1)
    expires_at = None if minutes is None else START + timedelta(minutes=minutes)
    stores.agree(lambda store: store.create(factories.session(expires_at=expires_at, time_to_live=life)))
    if together:
        stores.agree(lambda store: store.append("s", [offer.event(n) for n, offer in enumerate(offered[:3], 1)] or []))
    state = TurnState()
    for number, offer in enumerate(offered[3:] if together else offered, 100):
        clock.advance(offer.wait)
        expected = None if offer.behind is None else stores.stores[0].version("s") - offer.behind
        made = offer.event(number)
        stores.agree(methodcaller("append", "s", [made], expected_version=expected))
    rows = databases.agreed_rows()
    starts: dict[int, bool] = {}
    for event in stores.stores[0].events("s"):
        state = state.after(event)
        starts[state.version] = state.turn == state.version
    if len(rows) > 1:
        head = rows[0]
        if state.version:  # an expired session keeps its rows until it is swept
            assert head[4:7] == (state.version, state.turn, state.turns)
            assert head[9:11] == (state.base, state.opening)
            assert [row[3] >> 1 == 4 for row in rows[1:]] == list(starts.values())


def turn_steps() -> st.SearchStrategy[list[tuple[str, dict[str, Any]]]]:
    token = st.sampled_from(("mine", "yours"))
    lease = st.sampled_from((timedelta(seconds=10), timedelta(seconds=60)))
    turn = st.builds(Turn, token, lease, st.booleans())
    kinds: tuple[st.SearchStrategy[tuple[str, dict[str, Any]]], ...] = (
        st.tuples(st.just("take"), st.fixed_dictionaries({"turn": turn})),
        st.tuples(st.just("renew"), st.fixed_dictionaries({"turn": turn})),
        st.tuples(st.just("release"), st.fixed_dictionaries({"token": token})),
        st.tuples(st.just("append"), st.fixed_dictionaries({"turn": st.none() | turn, "offer": offers()})),
        st.tuples(st.just("append"), st.fixed_dictionaries({"turn": st.none(), "offer": offers()})),
        st.tuples(st.just("batch"), st.fixed_dictionaries({"turn": st.none() | turn})),
        st.tuples(st.just("again"), st.fixed_dictionaries({"turn": st.none() | turn})),
        st.tuples(st.just("clear"), st.fixed_dictionaries({"strategy": st.sampled_from(("clear", "window"))})),
        st.tuples(st.just("wait"), st.fixed_dictionaries({"seconds": st.sampled_from((1, 9, 10, 11, 60))})),
    )
    return st.lists(st.one_of(kinds), max_size=14)


#: The session has expired; at the end of the lease that kept it alive it is gone, to the microsecond.
_UNTIL_THE_LEASE_ENDS: Final[list[tuple[str, dict[str, Any]]]] = [
    ("take", {"turn": Turn("mine", timedelta(seconds=60))}),
    ("wait", {"seconds": 60}),
    ("append", {"turn": None, "offer": Offer(None, None, None, None, 0)}),
]


@given(steps=turn_steps(), expires=st.booleans())
@example(steps=_UNTIL_THE_LEASE_ENDS, expires=True)
def test_turns_are_taken_held_and_lost_alike(
    databases: Databases, steps: list[tuple[str, dict[str, Any]]], *, expires: bool
) -> None:
    """H-11, R-7: who holds the turn, who waits for it, and what it keeps alive; answers and rows."""
    stores, clock = databases.trio, databases.trio.clock
    stores.clear()
    end = START + timedelta(seconds=30) if expires else None
    stores.agree(lambda store: store.create(factories.session(expires_at=end)))
    numbers = count(1)
    for what, how in steps:
        clock.advance(how.get("seconds", 0))
        stores.agree(step(what, how, next(numbers) * 10, stores.stores[0].version("s")))
        databases.agreed_rows()


def step(what: str, how: dict[str, Any], number: int, version: int) -> Step:
    match what:
        case "take":
            return lambda store: store.take_turn("s", how["turn"])
        case "renew":
            return lambda store: store.renew_turn("s", how["turn"])
        case "release":
            return lambda store: store.release_turn("s", how["token"])
        case "append":
            return lambda store: store.append("s", [how["offer"].event(number)], turn=how["turn"])
        case "batch":
            batch = [factories.user(number), factories.assistant(number + 1)]
            return lambda store: store.append("s", batch, turn=how["turn"])
        case "again":
            return lambda store: store.append("s", [factories.user(1)], expected_version=0, turn=how["turn"])
        case "clear":
            made = factories.boundary(version + 1, (), strategy=how["strategy"], id=f"e{number}")
            return lambda store: store.append("s", [made], expected_version=version)
        case _:
            return lambda store: store.find("s")


def test_a_single_event_does_go_in_one_statement(databases: Databases, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tests above would compare the ordinary plan with itself."""
    databases.trio.clear()
    store = databases.trio.stores[2]
    store.create(factories.session())

    def refuse(*_: object) -> None:
        raise AssertionError("the ordinary plan was made")

    monkeypatch.setattr(PostgresDriver, "write", refuse)
    assert store.append("s", [factories.user(1)]).version == 1
    assert store.append("s", [factories.own(2)], expected_version=1).version == 2
