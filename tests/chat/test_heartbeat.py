"""H-11: the lease of a turn is renewed by a timer while a model or a tool takes its time, in both colours."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.chat._async.talking import Talk as AsyncTalk
from tests.chat._sync.talking import Talk
from tests.chat.gates import PATIENCE
from tests.chat.speaking import asks
from turnlog import AsyncSessionService, SessionService, TurnInterruptedError
from turnlog.chat import heartbeat
from turnlog.chat._async import session_call as async_session_call
from turnlog.chat._sync import session_call as sync_session_call
from turnlog.chat.heartbeat import AsyncHeartbeat, Heartbeat


class Beats:
    """Counts renewals; at each it may do something, and enough of them are waited for."""

    def __init__(self, enough: int = 3, then: Callable[[], None] | None = None) -> None:
        self.count = 0
        self.enough = threading.Event()
        self._wanted = enough
        self._then = then

    def __call__(self) -> None:
        self.count += 1
        if self.count == self._wanted:
            self.enough.set()
            if self._then is not None:
                self._then()

    def wait(self) -> None:
        assert self.enough.wait(PATIENCE)


class TestThreads:
    def test_it_beats_until_it_is_stopped(self) -> None:
        """Stopped by its third beat; another one's beats come and go, and it stays at three."""
        made, stopping = threading.Event(), list[Heartbeat]()

        def stop() -> None:
            assert made.wait(PATIENCE)
            stopping[0].stop()

        beats = Beats(3, stop)
        stopping.append(Heartbeat(beats, 0.001))
        made.set()
        beats.wait()
        others = Beats(5)
        other = Heartbeat(others, 0.001)
        others.wait()
        other.stop()
        assert beats.count == 3

    def test_a_failed_renewal_is_tried_again(self, caplog: pytest.LogCaptureFixture) -> None:
        beats = Beats(3)

        def renew() -> None:
            beats()
            if beats.count == 1:
                raise OSError("no route")

        beat = Heartbeat(renew, 0)
        beats.wait()
        beat.stop()
        assert "renewing a turn failed: no route" in caplog.text

    def test_a_turn_that_was_taken_over_is_renewed_no_more(self, caplog: pytest.LogCaptureFixture) -> None:
        """And those of other sessions are."""
        lost, others = Beats(1), Beats(5)

        def renew() -> None:
            lost()
            raise TurnInterruptedError("s")

        beat = Heartbeat(renew, 0)
        lost.wait()
        other = Heartbeat(others, 0)
        others.wait()
        other.stop()
        beat.stop()
        assert lost.count == 1
        assert "no longer held" in caplog.text

    def test_one_that_is_due_sooner_does_not_wait_for_the_others(self) -> None:
        late = Heartbeat(Beats(), 3600)
        beats = Beats(2)
        soon = Heartbeat(beats, 0)
        beats.wait()
        soon.stop()
        late.stop()

    def test_one_that_nobody_holds_is_forgotten(self) -> None:
        """A call that died without a word renews nothing for ever."""
        forgotten = Beats(1_000_000)
        _ = Heartbeat(forgotten, 3600)
        del _
        gc.collect()
        due = [held() for _, _, held in heartbeat._beats._due]
        assert all(beat is None or beat.renew is not forgotten for beat in due)

    def test_a_forked_child_beats_for_itself(self) -> None:
        beats = Beats(1)
        beat = Heartbeat(beats, 0)
        beats.wait()
        child = os.fork()
        if not child:
            try:
                mine = Beats(2)
                held = Heartbeat(mine, 0)
                is_enough = mine.enough.wait(PATIENCE)
                held.stop()
                os._exit(0 if is_enough else 2)
            finally:
                os._exit(1)
        beat.stop()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    def test_a_call_is_renewed_while_its_tool_works(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sync_session_call, "_BEAT", 0)
        with SessionService.open("memory:") as service:
            beats = Beats(3)
            renew = service.repository.renew_turn

            def renewing(session_id: str, turn: Any) -> Any:
                beats()
                return renew(session_id, turn)

            monkeypatch.setattr(service.repository, "renew_turn", renewing)

            def work(key: str) -> str:
                beats.wait()
                return key

            talk = Talk(service, asks("c1", name="work"), "done", tools=[work])
            assert talk.client.call("hi", session_id="s").text == "done"


class TestTasks:
    async def test_it_beats_until_it_is_stopped(self) -> None:
        beats, enough = 0, asyncio.Event()

        async def renew() -> None:
            nonlocal beats
            beats += 1
            if beats == 3:
                await beat.stop()
                enough.set()

        beat = AsyncHeartbeat(renew, 0)
        await asyncio.wait_for(enough.wait(), PATIENCE)
        for _ in range(20):
            await asyncio.sleep(0)
        assert beats == 3

    @pytest.mark.parametrize(("error", "beats_after"), [(OSError("no route"), 3), (TurnInterruptedError("s"), 1)])
    async def test_a_failure_is_tried_again_unless_the_turn_is_lost(
        self, caplog: pytest.LogCaptureFixture, error: Exception, beats_after: int
    ) -> None:
        beats = 0

        async def renew() -> None:
            nonlocal beats
            beats += 1
            if beats == 1:
                raise error
            if beats == 3:
                await beat.stop()

        beat = AsyncHeartbeat(renew, 0)
        for _ in range(50):
            await asyncio.sleep(0)
        assert beats == beats_after
        assert f"renewing a turn failed: {error}" in caplog.text
        await beat.stop()

    async def test_a_call_is_renewed_while_its_tool_works(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(async_session_call, "_BEAT", 0)
        async with AsyncSessionService.open("memory:") as service:
            beats, enough, is_over = 0, asyncio.Event(), False
            renew = service.repository.renew_turn

            async def renewing(session_id: str, turn: Any) -> Any:
                nonlocal beats
                assert not is_over
                beats += 1
                if beats == 3:
                    enough.set()
                return await renew(session_id, turn)

            monkeypatch.setattr(service.repository, "renew_turn", renewing)

            async def work(key: str) -> str:
                await asyncio.wait_for(enough.wait(), PATIENCE)
                return key

            talk = AsyncTalk(service, asks("c1", name="work"), "done", tools=[work])
            assert (await talk.client.call("hi", session_id="s")).text == "done"
            is_over = True
            for _ in range(20):
                await asyncio.sleep(0)
