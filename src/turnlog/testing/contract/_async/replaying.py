"""REPLAY, ORDER: appending what is there already, and which of several faults is told."""

from __future__ import annotations

from typing import Any

import pytest

from turnlog.errors import (
    EventContentConflictError,
    InvalidBatchError,
    PartialReplayError,
    SessionBusyError,
    TurnInterruptedError,
    VersionConflictError,
)
from turnlog.log.events import EventType, SessionEvent
from turnlog.log.messages import AssistantMessage, Native, ToolCall, UserMessage
from turnlog.storage.protocol import AsyncSessionRepository, Turn
from turnlog.testing.clocks import START, FixedClock
from turnlog.testing.contract._async.setting import begun, state
from turnlog.testing.contract.exactness import LOOK_ALIKES, exactly, positions
from turnlog.testing.factories import assistant, boundary, calls, event, own, session, summary, user


class Replaying:
    """Event ids are stored once; what is there is recognised by its content."""

    async def test_replay_1_changes_nothing_and_says_so(self, repository: AsyncSessionRepository) -> None:
        """Appending a stored batch again returns the first write's events and changes nothing (R-4, CASE B65, B75)."""
        log = await begun(repository, [user(1), calls(2, "c")])
        before = await state(repository)
        for _ in range(2):
            result = await repository.append("s", [user(1), calls(2, "c")])
            assert exactly(list(result.events)) == exactly(log)
            assert (result.version, result.is_replay) == (2, True)
        assert await state(repository) == before

    async def test_replay_2_is_seen_before_the_version(self, repository: AsyncSessionRepository) -> None:
        """A replay is a replay whatever ``expected_version`` it comes with (R-4)."""
        await begun(repository, [user(1)], [assistant(2)])
        for expected in (0, 1, 2, 99):
            assert (await repository.append("s", [user(1)], expected_version=expected)).is_replay

    async def test_replay_3_does_not_look_at_times_and_metadata(self, repository: AsyncSessionRepository) -> None:
        """Timestamp, position, metadata and native data are not content; those of the first write stay (R-4)."""
        first = user(1).replace(
            message=UserMessage("hi", metadata={"n": 1}, native=Native("f", [1])), metadata={"a": 1}
        )
        log = await begun(repository, [first])
        again = user(1, timestamp=START, position=9).replace(
            message=UserMessage("hi", metadata={"n": 2}), metadata={"a": 2, "b": 3}
        )
        result = await repository.append("s", [again])
        assert result.is_replay
        assert exactly(list(result.events)) == exactly(log)
        assert exactly(await repository.events("s")) == exactly(log)

    async def test_replay_4_with_other_content_conflicts(self, repository: AsyncSessionRepository) -> None:
        """A stored id with other content is a conflict that names it, and nothing is written (R-4)."""
        await begun(repository, [user(1)], [assistant(2, ""), own(3, {"n": 1, "deep": [None]})])
        before = await state(repository)
        for other in self._others():
            with pytest.raises(EventContentConflictError) as caught:
                await repository.append("s", [other])
            assert (caught.value.event_id, caught.value.position) == (other.id, int(other.id[1:]))
        assert await state(repository) == before

    def _others(self) -> list[SessionEvent]:
        payloads: list[dict[str, Any]] = [
            {"n": 1},
            {"n": 1.0, "deep": [None]},
            {"n": True, "deep": [None]},
            {"n": 1, "deep": []},
        ]
        return [
            user(1, "Question"),
            user(1, "question "),
            assistant(1, "question"),
            user(1, branch="a"),
            own(1, {}),
            assistant(2, None),
            event(2, AssistantMessage("", tool_calls=(ToolCall("c", "f"),))),
            own(3, {"n": 1, "deep": [None]}, type=EventType.of("OTHER")),
            *(own(3, payload) for payload in payloads),
        ]

    async def test_replay_5_of_a_part_is_refused(self, repository: AsyncSessionRepository) -> None:
        """Some ids stored and some not is an error that names both, and nothing is written (R-4)."""
        await begun(repository, [user(1), assistant(2)])
        before = await state(repository)
        for batch in ([user(1), user(3)], [user(3), assistant(2)], [user(1), assistant(2), user(3)]):
            with pytest.raises(PartialReplayError) as caught:
                await repository.append("s", batch)
            assert caught.value.missing == ("e3",)
            assert {*caught.value.stored} == {made.id for made in batch} - {"e3"}
        assert await state(repository) == before

    async def test_replay_6_is_told_within_a_session(self, repository: AsyncSessionRepository) -> None:
        """The same id in another session is another event (R-4, CASE B118)."""
        await begun(repository, [user(1)])
        await repository.create(session("t"))
        result = await repository.append("t", [user(1, "another", session_id="t")])
        assert (result.is_replay, result.version) == (False, 1)

    async def test_replay_7_is_told_whatever_batches_the_events_came_in(
        self, repository: AsyncSessionRepository
    ) -> None:
        """Ids that are all stored are a replay, from one batch, a part of one, or several, however far back (R-4)."""
        await begun(repository, [user(1), assistant(2)], [user(3)], [user(n) for n in range(4, 40)])
        for batch in ([assistant(2)], [assistant(2), user(3)], [user(1), user(39)]):
            result = await repository.append("s", batch)
            assert positions(result.events) == [int(made.id[1:]) for made in batch]
            assert (result.version, result.is_replay) == (39, True)

    async def test_replay_8_compares_ids_by_code_point(self, repository: AsyncSessionRepository) -> None:
        """Event ids that look alike are different events (R-8)."""
        await repository.create(session())
        for n, name in enumerate(LOOK_ALIKES, 1):
            result = await repository.append("s", [user(n, name).replace(id=name)])
            assert (result.version, result.is_replay) == (n, False)
        found = await repository.find_events("s", event_ids=["AB", "ss", "e\u0301"])
        assert [made.content.text for made in found] == ["AB", "ss", "e\u0301"]

    async def test_replay_9_of_a_boundary(self, repository: AsyncSessionRepository) -> None:
        """A boundary's batch is replayed like any other, though the log has moved on (A-1, R-4)."""
        await begun(repository, [user(1), assistant(2)], summary(3, [(2, 2)]), [user(6)])
        before = await state(repository)
        assert (await repository.append("s", summary(3, [(2, 2)]), expected_version=2)).is_replay
        assert await state(repository) == before

    async def test_order_1_an_invalid_batch_before_an_unknown_session(self, repository: AsyncSessionRepository) -> None:
        """A batch that no log could take is told first."""
        with pytest.raises(InvalidBatchError):
            await repository.append("unknown", [])

    async def test_order_2_content_before_the_version(self, repository: AsyncSessionRepository) -> None:
        """Other content, and a replay in part, are told before a version conflict."""
        await begun(repository, [user(1)])
        with pytest.raises(EventContentConflictError):
            await repository.append("s", [user(1, "other")], expected_version=9)
        with pytest.raises(PartialReplayError):
            await repository.append("s", [user(1), user(2)], expected_version=9)

    async def test_order_3_the_version_before_the_turn(
        self, repository: AsyncSessionRepository, clock: FixedClock
    ) -> None:
        """A version conflict is told before anything about turns."""
        await begun(repository, [user(1)])
        await repository.take_turn("s", Turn("held"))
        for turn in (None, Turn("other"), Turn("other", take=True)):
            with pytest.raises(VersionConflictError):
                await repository.append("s", [user(2)], expected_version=0, turn=turn)
        clock.advance(1)
        for turn, error in ((None, SessionBusyError), (Turn("other"), TurnInterruptedError)):
            with pytest.raises(error):
                await repository.append("s", [user(2)], expected_version=1, turn=turn)

    async def test_order_4_a_replay_before_the_turn(self, repository: AsyncSessionRepository) -> None:
        """A replay is a replay while another holds the turn, and for one who has lost it (R-4, H-11)."""
        await begun(repository, [user(1)], [boundary(2, [], strategy="clear")])
        await repository.take_turn("s", Turn("held"))
        for turn in (None, Turn("lost"), Turn("other", take=True)):
            assert (await repository.append("s", [user(1)], turn=turn)).is_replay
        assert (await repository.append("s", [boundary(2, [], strategy="clear")])).is_replay
