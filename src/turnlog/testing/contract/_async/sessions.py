"""CREATE, UPDATE, DELETE: the session itself."""

from __future__ import annotations

from datetime import timedelta

import pytest

from turnlog.errors import InvalidValueError, SessionAlreadyExistsError, SessionNotFoundError
from turnlog.log.session import SessionAttributes
from turnlog.storage.changes import SessionChange
from turnlog.storage.protocol import AsyncSessionRepository, Turn
from turnlog.testing.clocks import START, FixedClock
from turnlog.testing.contract._async.setting import begun, state
from turnlog.testing.contract.exactness import LOOK_ALIKES, exactly
from turnlog.testing.factories import conversation, session, user

OWNER = SessionAttributes.PRINCIPAL_NAME


class Sessions:
    """What can be done to a session as a whole."""

    async def test_create_1_is_found_as_given(self, repository: AsyncSessionRepository) -> None:
        """A session is found as it was given, and returned by ``create`` so (R-1)."""
        made = session(
            principal="ann",
            expires_at=START + timedelta(days=1, microseconds=1),
            time_to_live=timedelta(days=1, microseconds=1),
            created_at=START + timedelta(microseconds=999_999),
            metadata={"channel": "web", "n": [1, 1.0, True, None, ""], "deep": {"ключ": {}}},
        )
        assert exactly(await repository.create(made)) == exactly(made)
        assert exactly(await repository.find("s")) == exactly(made)

    async def test_create_2_leaves_an_existing_session_untouched(self, repository: AsyncSessionRepository) -> None:
        """Creating an id that exists raises, and changes neither the session nor its log (R-2, CASE B83)."""
        await begun(repository, conversation(1), of=session(principal="ann"))
        before = await state(repository)
        with pytest.raises(SessionAlreadyExistsError) as caught:
            await repository.create(session(principal="bob", created_at=START + timedelta(days=1)))
        assert caught.value.session_id == "s"
        assert await state(repository) == before

    async def test_create_3_begins_an_empty_log(self, repository: AsyncSessionRepository) -> None:
        """A new session has no events and the version 0, whatever its owner's other sessions hold (V-7, CASE B119)."""
        await begun(repository, [user(1, session_id="old")], of=session("old", principal="ann"))
        await repository.create(session(principal="ann"))
        assert (await repository.version("s"), await repository.events("s")) == (0, [])

    async def test_create_4_refuses_an_indexed_value_that_is_no_name(self, repository: AsyncSessionRepository) -> None:
        """A value under an indexed key that is not a name is refused, and no session comes to be (R-8)."""
        for value in (7, "", "a\nb", "x" * 256, ["web"]):
            with pytest.raises(InvalidValueError):
                await repository.create(session(metadata={"channel": value}))
        assert await repository.find("s") is None

    async def test_create_5_compares_ids_by_code_point(self, repository: AsyncSessionRepository) -> None:
        """Ids that look alike name sessions of their own, each with its own log (R-8, CASE B111, B118)."""
        for name in LOOK_ALIKES:
            await begun(repository, [user(1, name, session_id=name)], of=session(name, metadata={"is": name}))
        for name in LOOK_ALIKES:
            found = await repository.find(name)
            assert found is not None
            assert found.metadata == {"is": name}
            assert [event.content.text for event in await repository.events(name)] == [name]

    async def test_find_1_is_none_for_an_unknown_id(self, repository: AsyncSessionRepository) -> None:
        """An id that names no session is not found, and asking for it makes none (R-5, CASE B82)."""
        assert await repository.find("s") is None
        assert list(await repository.list()) == []

    async def test_update_1_replaces_metadata_but_for_the_principal(self, repository: AsyncSessionRepository) -> None:
        """``metadata=`` replaces the whole, and keeps the principal (R-1)."""
        await repository.create(session(principal="ann", metadata={"a": 1, "b": 2}))
        await repository.update("s", SessionChange(metadata={"b": 3, OWNER: "eve"}))
        found = await repository.find("s")
        assert found is not None
        assert found.metadata == {OWNER: "ann", "b": 3}

    async def test_update_2_changes_the_principal_when_told_to(self, repository: AsyncSessionRepository) -> None:
        """``principal=`` names another owner, and None takes the owner away (R-1)."""
        await repository.create(session(principal="ann", metadata={"a": 1}))
        for principal in ("bob", None):
            await repository.update("s", SessionChange(principal=principal))
            found = await repository.find("s")
            assert found is not None
            assert (found.principal, found.metadata["a"]) == (principal, 1)

    async def test_update_3_merges_single_keys(self, repository: AsyncSessionRepository) -> None:
        """``set`` and ``unset`` change the keys that they name and no other (R-1)."""
        await repository.create(session(principal="ann", metadata={"a": 1, "b": 2, "c": 3}))
        await repository.update("s", SessionChange(set={"b": 1.0, "d": None}, unset=["a", "never"]))
        found = await repository.find("s")
        assert found is not None
        assert exactly(found.metadata) == exactly({OWNER: "ann", "b": 1.0, "c": 3, "d": None})

    async def test_update_4_changes_the_expiry(self, repository: AsyncSessionRepository, clock: FixedClock) -> None:
        """``expires_at`` and ``time_to_live`` are set, counted from the store's clock, and taken away (R-7)."""
        await repository.create(session())
        clock.advance(5)
        await repository.update("s", SessionChange(time_to_live=timedelta(hours=1)))
        found = await repository.find("s")
        assert found is not None
        assert (found.expires_at, found.time_to_live) == (clock.now + timedelta(hours=1), timedelta(hours=1))
        await repository.update("s", SessionChange(expires_at=None))
        found = await repository.find("s")
        assert found is not None
        assert (found.expires_at, found.time_to_live) == (None, None)

    async def test_update_5_keeps_the_log_and_created_at(
        self, repository: AsyncSessionRepository, clock: FixedClock
    ) -> None:
        """An update changes neither ``created_at`` nor one event (R-1, CASE B141)."""
        log = await begun(repository, conversation(2))
        clock.advance(5)
        await repository.update("s", SessionChange(metadata={"a": 1}, principal="ann"))
        found = await repository.find("s")
        assert found is not None
        assert found.created_at == START
        assert exactly(await repository.events("s")) == exactly(log)

    async def test_update_6_of_an_unknown_session_raises(self, repository: AsyncSessionRepository) -> None:
        """An unknown session cannot be updated, and does not come to be by trying (R-5, CASE B82)."""
        with pytest.raises(SessionNotFoundError):
            await repository.update("s", SessionChange(set={"a": 1}))
        assert await repository.find("s") is None

    async def test_update_7_refuses_an_indexed_value_that_is_no_name(self, repository: AsyncSessionRepository) -> None:
        """An indexed value that is not a name is refused, and nothing is changed (R-8)."""
        await repository.create(session(metadata={"channel": "web"}))
        with pytest.raises(InvalidValueError):
            await repository.update("s", SessionChange(set={"channel": "a\0b", "b": 1}))
        found = await repository.find("s")
        assert found is not None
        assert found.metadata == {"channel": "web"}

    async def test_update_8_returns_what_is_stored(self, repository: AsyncSessionRepository) -> None:
        """What ``update`` returns is what ``find`` then gives (R-1)."""
        await repository.create(session(principal="ann", metadata={"a": 1}))
        updated = await repository.update("s", SessionChange(set={"b": 2}, expires_at=START + timedelta(days=1)))
        assert exactly(updated) == exactly(await repository.find("s"))

    async def test_delete_1_removes_the_session_and_its_log(self, repository: AsyncSessionRepository) -> None:
        """A deleted session is unknown, and so are its events (R-1)."""
        await begun(repository, conversation(1), of=session(principal="ann"))
        assert await repository.delete("s") is True
        assert await repository.find("s") is None
        assert (await repository.version("s"), await repository.events("s")) == (0, [])
        assert list(await repository.list(principal="ann")) == []

    async def test_delete_2_is_false_when_there_was_none(self, repository: AsyncSessionRepository) -> None:
        """Deleting what is not there says so, the second time too (R-1)."""
        await repository.create(session())
        assert await repository.delete("other") is False
        await repository.delete("s")
        assert await repository.delete("s") is False

    async def test_delete_3_leaves_nothing_to_a_session_of_the_same_id(
        self, repository: AsyncSessionRepository
    ) -> None:
        """A new session under the old id starts at 1, with free event ids and no turn held (CASE B71, B83)."""
        await begun(repository, conversation(1))
        await repository.take_turn("s", Turn("old"))
        await repository.delete("s")
        await repository.create(session())
        assert (await repository.version("s"), await repository.events("s")) == (0, [])
        result = await repository.append("s", [user(1, "something else")])
        assert (result.version, result.is_replay) == (1, False)

    async def test_delete_4_leaves_other_sessions_alone(self, repository: AsyncSessionRepository) -> None:
        """Deleting takes the session named and none that looks like it (R-8, CASE B111)."""
        for name in LOOK_ALIKES:
            await begun(repository, [user(1, session_id=name)], of=session(name))
        await repository.delete("a_")
        await repository.delete("%")
        left = {name for name in LOOK_ALIKES if await repository.version(name) == 1}
        assert left == {*LOOK_ALIKES} - {"a_", "%"}
