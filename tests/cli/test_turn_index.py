"""The numbers of turns, told from the user messages alone, are those of the rule over the whole log (V-5)."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given

from turnlog.cli.turn_index import read_turn_index
from turnlog.log.events import SessionEvent
from turnlog.log.session import Session
from turnlog.log.turns import turn_starts
from turnlog.storage.opening import open_store
from turnlog.testing.strategies import batches


@given(batches("s"))
def test_the_index_agrees_with_the_rule(log: list[list[SessionEvent]]) -> None:
    with open_store("memory:") as repository:
        repository.restore(Session(id="s", created_at=datetime(2026, 1, 1, tzinfo=UTC)), log)
        events = repository.events("s")
        starts = turn_starts(events)
        for until in (len(events), len(events) // 2):
            index = read_turn_index(repository, "s", until)
            assert [index.is_start(position) for position in range(1, until + 1)] == starts[:until]
            numbers = [sum(starts[:position]) for position in range(1, until + 1)]
            assert [index.number_at(position) for position in range(1, until + 1)] == numbers
