"""The n-th message to the server comes to grief, for every operation and every n: what is left is the truth (R-14)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, Final, TypeAlias

import psycopg
import pytest
from msgspec import Struct

from tests.faults.operations import READS, WRITES, AnyRepository, Operation, clock, outcome
from tests.faults.stores import Dump, close, opened
from tests.faults.test_nth_call import Expected, check_repeated, check_same, noting
from tests.postgres.conftest import new_database
from tests.postgres.states import Database
from turnlog.errors import AppendOutcomeUnknownError, StoreError, StoreUnavailableError
from turnlog.log.tokens import EstimatedTokens
from turnlog.storage.protocol import AppendResult
from turnlog.storage.sql import AsyncSqlRepository, SqlRepository
from turnlog.storage.sql.driver import CommitFailedError
from turnlog.storage.sql.drivers.postgres import AsyncPostgresDriver, PostgresDriver, PostgresOptions
from turnlog.storage.sql.drivers.postgres.errors import LostError
from turnlog.storage.sql.drivers.postgres.migrating import migrate
from turnlog.storage.sql.statements import Rows, Statement

Opening: TypeAlias = "Callable[[Database, NthMessage], AnyRepository]"

pytestmark = [pytest.mark.store, pytest.mark.slow]


class Fault(Struct, frozen=True):
    """One way to come to grief: an error with this SQLSTATE, or the connection is gone, before or after the effect."""

    code: str = ""
    takes_effect: bool = False

    @property
    def is_loss(self) -> bool:
        return not self.code


FAULTS: Final = {
    "connection lost": Fault(),
    "answer and connection lost": Fault(takes_effect=True),
    "serialisation failure": Fault("40001"),
    "deadlock": Fault("40P01"),
    "disk full": Fault("53100"),
    "lock not free in time": Fault("55P03"),
}
_UNDONE: Final = ("40001", "40P01")


class NthMessage:
    """Lets the ``number``-th message fail, from 1; with ``lasting`` every one from then on."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.fault: Fault | None = None
        self.number = 0
        self.lasting = False
        self.sent = 0
        self.struck: list[str] = []

    def arm(self, fault: Fault, number: int, *, lasting: bool = False) -> None:
        self.fault, self.number, self.lasting, self.sent = fault, number, lasting, 0
        self.struck = []

    def heal(self) -> None:
        self.fault = None

    def due(self, statements: Sequence[Statement]) -> Fault | None:
        self.sent += 1
        if self.fault is None or not (self.sent == self.number or (self.lasting and self.sent > self.number)):
            return None
        self.struck.append("; ".join(statement.sql for statement in statements))
        return self.fault

    def lose(self, connection: psycopg.BaseConnection[Any]) -> LostError:
        """The connection ends, and the server has noticed."""
        self._database.terminate(connection.info.backend_pid)
        connection.pgconn.finish()
        cause = StoreUnavailableError("injected: the connection is gone")
        cause.__cause__ = psycopg.OperationalError("injected")
        return LostError(cause)


def raising(code: str) -> Statement:
    return Statement(f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{code}'; END $$")


def sync_store(database: Database, faults: NthMessage) -> SqlRepository:
    driver = PostgresDriver(PostgresOptions(conninfo=database.url, pool_max=1))
    send = driver._send

    def faulty(connection: Any, statements: Sequence[Statement]) -> list[Rows]:
        fault = faults.due(statements)
        if fault is None:
            return send(connection, statements)
        if fault.code:
            return send(connection, [raising(fault.code)])
        if fault.takes_effect:
            send(connection, statements)
        raise faults.lose(connection)

    driver._send = faulty  # type: ignore[method-assign]
    return SqlRepository(driver, clock(), token_counter=EstimatedTokens())


def async_store(database: Database, faults: NthMessage) -> AsyncSqlRepository:
    driver = AsyncPostgresDriver(PostgresOptions(conninfo=database.url, pool_max=1))
    send = driver._send

    async def faulty(connection: Any, statements: Sequence[Statement]) -> list[Rows]:
        fault = faults.due(statements)
        if fault is None:
            return await send(connection, statements)
        if fault.code:
            return await send(connection, [raising(fault.code)])
        if fault.takes_effect:
            await send(connection, statements)
        raise faults.lose(connection)

    driver._send = faulty  # type: ignore[method-assign]
    return AsyncSqlRepository(driver, clock(), token_counter=EstimatedTokens())


@pytest.fixture(scope="module")
def prepared(admin_url: str) -> Iterator[Database]:
    with new_database(admin_url) as url:
        migrate(PostgresOptions(conninfo=url))
        database = Database(url)
        yield database
        database.close()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between tries there is nothing to wait for here."""
    for colour in ("_sync", "_async"):
        monkeypatch.setattr(f"turnlog.storage.sql.drivers.postgres.{colour}._pause", lambda _: 0.0)


#: The ways that differ most, for each run of the tests; all of them, once and for good, in the soak.
_FEW: Final = (
    ("connection lost", False),
    ("answer and connection lost", False),
    ("serialisation failure", False),
    ("disk full", False),
    ("serialisation failure", True),
)
_ALL: Final = tuple((kind, lasting) for kind in FAULTS for lasting in (False, True))


@pytest.mark.parametrize("operation", WRITES, ids=str)
async def test_the_nth_message_of_a_write_fails(operation: Operation, prepared: Database) -> None:
    await check(sync_store, operation, prepared, _FEW)


@pytest.mark.parametrize("operation", READS, ids=str)
async def test_the_nth_message_of_a_read_fails(operation: Operation, prepared: Database) -> None:
    await check(sync_store, operation, prepared, _FEW[:1])


@pytest.mark.parametrize("operation", [each for each in WRITES if each.is_append], ids=str)
async def test_so_it_does_for_tasks(operation: Operation, prepared: Database) -> None:
    await check(async_store, operation, prepared, _FEW[1:2])


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("opening", [sync_store, async_store])
@pytest.mark.parametrize("operation", [*WRITES, *READS], ids=str)
async def test_the_nth_message_fails_in_every_way(opening: Opening, operation: Operation, prepared: Database) -> None:
    await check(opening, operation, prepared, _ALL)


async def check(opening: Opening, operation: Operation, database: Database, ways: Sequence[tuple[str, bool]]) -> None:
    faults = NthMessage(database)
    store = await opened(opening(database, faults))
    sound = await expected(store, operation, database, faults)
    for kind, lasting in ways:
        await check_each(store, operation, sound, database, faults, kind, lasting=lasting)
    await close(store)


async def check_each(
    store: Any,
    operation: Operation,
    sound: Expected,
    database: Database,
    faults: NthMessage,
    kind: str,
    *,
    lasting: bool,
) -> None:
    for number in count(1):
        database.reset()
        faults.arm(FAULTS[kind], number, lasting=lasting)
        came_of_it = await outcome(store, operation)
        faults.heal()
        with noting(f"{kind}, message {number}, lasting: {lasting}, {faults.struck} -> {came_of_it!r}"):
            assert not database.open_transactions(), "the failed call has left its transaction open"
            state = database.dump()
            judge(operation, sound, FAULTS[kind], faults.struck, came_of_it, state)
            again = await outcome(store, operation)
            check_repeated(operation, sound, state, again)
            assert database.dump() == sound.states[-1], "the repeated call has made it whole"
        if not faults.struck:
            assert number > 1
            return


async def expected(store: Any, operation: Operation, database: Database, faults: NthMessage) -> Expected:
    database.reset()
    states = [database.dump()]
    first = await outcome(store, operation)
    states.append(database.dump())
    second = await outcome(store, operation)
    assert database.dump() == states[-1], "a call repeated after it has taken effect changes nothing more"
    if operation.takes_steps:
        states = []
        for number in count(1):
            database.reset()
            faults.arm(FAULTS["disk full"], number, lasting=True)
            await outcome(store, operation)
            faults.heal()
            if (state := database.dump()) not in states:
                states.append(state)
            if not faults.struck:
                break
    return Expected(states, first, second)


def judge(operation: Operation, sound: Expected, fault: Fault, struck: list[str], came_of_it: Any, state: Dump) -> None:
    """The outcome is the truth about the state, and an error is one that the circumstances allow."""
    before, after = sound.states[0], sound.states[-1]
    assert state in sound.states, "half of the operation is there"
    match came_of_it:
        case AppendOutcomeUnknownError():
            assert operation.is_append
            assert fault.is_loss
            assert len(struck) > 1, "a look-up would have settled it"
        case CommitFailedError():
            assert not operation.is_append
            assert "COMMIT" in struck[-1]
        case StoreError():
            assert state == before or operation.takes_steps
            # A restore whose batches have been read cannot be made again; by then the reason has been dealt with.
            is_once_only = operation.name.startswith("restore")
            assert came_of_it.__cause__ is not None or is_once_only
            is_safe = (fault.code in _UNDONE and not is_once_only) or (fault.is_loss and operation.is_append)
            assert len(struck) > 1 or not is_safe, "what is safe is tried again"
        case AppendResult() if struck and isinstance(sound.first, AppendResult):
            # Settled by its ids: whether this call has stored them, nobody can always tell.
            assert (came_of_it.events, came_of_it.version) == (sound.first.events, sound.first.version)
            assert state == after
        case _:
            check_same(came_of_it, sound.first)
            assert state == after
